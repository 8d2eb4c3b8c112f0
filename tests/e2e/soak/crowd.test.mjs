// A room as full as it may be by default, everybody with camera and microphone: its longest offers are within the server's limits.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { until } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";
import { token, TOKEN_KEY } from "../support/token.mjs";

const OTHERS = 31;

describe("a full room", { only: true }, () => {
  let server;
  let crowd;
  let viewer;

  before(async () => {
    server = await startServer({ args: [...TOKEN_KEY, "--device=off", "--no-congestion-control"] });
    [crowd, viewer] = await Promise.all([openPage(), openPage()]);
  });

  after(async () => {
    await Promise.all([crowd?.close(), viewer?.close()]);
    await server?.stop();
  });

  test("whoever is in it gets everybody's camera and microphone, and stays", { only: true }, async () => {
    await viewer.page.goto(`${server.url}/check`);
    await viewer.page.evaluate(async (token) => {
      const { join } = await import("/windlass-client.js");
      window.events = [];
      window.call = await join(location.origin, { room: "hall", name: "Viewer", token, maxNetwork: "none" });
      for (const name of ["reconnecting", "disconnected", "refused"]) window.call.on(name, (event) => window.events.push(`${name} ${(event.cause ?? event.reason ?? event).code}`));
    }, token("hall", "viewer"));
    await crowd.page.goto(`${server.url}/check`);
    // All in one page, each with tiny pictures and silence. They receive nothing: the CPUs are few.
    const tokens = Array.from({ length: OTHERS }, (_, n) => token("hall", `guest-${n}`, ["publish"]));
    await crowd.page.evaluate(async (tokens) => {
      const { join } = await import("/windlass-client.js");
      const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 36 });
      const context = canvas.getContext("2d");
      setInterval(() => context.fillRect(Math.random() * 64, Math.random() * 36, 4, 4), 1000);
      const [picture] = canvas.captureStream(1).getVideoTracks();
      const [silence] = new AudioContext().createMediaStreamDestination().stream.getAudioTracks();
      window.guests = [];
      for (const [n, token] of tokens.entries()) {
        const call = await join(location.origin, { room: "hall", name: `Guest ${n}`, token });
        window.guests.push(call);
        await call.publish(new MediaStream([picture.clone(), silence.clone()]), { layers: "q", detail: "off" });
      }
    }, tokens);
    const seen = () => viewer.page.evaluate(() => ({ tracks: window.call.tracks.length, participants: window.call.participants.length, events: window.events }));
    await until(async () => (await seen()).tracks === 2 * OTHERS, "every track is received", 90_000, seen);
    const streams = () =>
      viewer.page.evaluate(async () => {
        const stats = [...(await window.call.connectionStats()).values()];
        return stats.filter(({ type, packetsReceived }) => type === "inbound-rtp" && packetsReceived > 0).length;
      });
    await until(async () => (await streams()) >= OTHERS, "packets of everybody come", 60_000, streams);
    console.log(`a full room: ${JSON.stringify(await seen())}, ${await streams()} streams with packets`);
    assert.deepEqual([(await seen()).events, viewer.errors, crowd.errors], [[], [], []]);
  });
});
