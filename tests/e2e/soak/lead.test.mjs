// A publisher on a weak uplink sends the size that is worth most of what it has.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { publish, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** Size of the picture that a viewer decodes, and how many it has decoded. */
const received = (page) =>
  page.evaluate(async () => {
    for (const s of (await window.windlass.room.connectionStats()).values()) {
      if (s.type === "inbound-rtp" && s.kind === "video") return { width: s.frameWidth, frames: s.framesDecoded };
    }
    return null;
  });

/** What the publisher's browser is told of its layers, what it sends of them, and its estimate: for messages. */
const sending = (page) =>
  page.evaluate(async () => {
    const { sender } = window.windlass.room.published.find((p) => p.kind === "video");
    const stats = [...(await sender.getStats()).values()];
    return {
      told: sender.getParameters().encodings.map(({ rid, active, maxBitrate }) => ({ rid, active, maxBitrate })),
      sent: stats.filter((s) => s.type === "outbound-rtp").map(({ rid, targetBitrate, frameWidth }) => ({ rid, targetBitrate, frameWidth })),
      estimate: stats.find((s) => s.type === "candidate-pair" && s.nominated)?.availableOutgoingBitrate,
    };
  });

/** A call whose publisher's uplink is this narrow; `steady` waits until pictures of a width have come for five seconds. */
async function weakUplink(kbps) {
  const server = await startServer({ args: ["--device=off"], path: {} });
  server.proxy.uplinkKbps = kbps;
  const publisher = await publish(server, makeScene({ clip: "s18", width: 1280, height: 720 }), { layers: "qh" });
  const viewer = await subscribe(server);
  const steady = async (width, withinMs = 60_000) => {
    let since = null;
    let from = 0;
    await until(
      async () => {
        const now = await received(viewer.page);
        if (now?.width !== width) since = null;
        else if (since === null) [since, from] = [performance.now(), now.frames];
        return since !== null && performance.now() - since >= 5000 && now.frames - from >= 25;
      },
      `pictures of ${width} columns come`,
      withinMs,
      () => sending(publisher.page),
    );
    console.log(`at ${server.proxy.uplinkKbps} kbit/s: ${JSON.stringify(await sending(publisher.page))}`);
  };
  const close = async () => {
    await viewer.close();
    await publisher.close();
    await server.stop();
  };
  return { server, publisher, viewer, steady, close };
}

describe("a camera on an uplink for a quarter of its size", { only: true }, () => {
  test("sends a quarter of its size from the beginning", { only: true }, async () => {
    const call = await weakUplink(80);
    try {
      await call.steady(320);
    } finally {
      await call.close();
    }
  });
});

describe("a camera on a weak uplink", () => {
  let call;

  before(async () => {
    call = await weakUplink(220);
  });

  after(() => call?.close());

  test("sends its half size where the bits do for that", async () => {
    await call.steady(640);
  });

  test("sends its quarter size to those who can take no other, and its half size again", async () => {
    const most = (rung) => call.viewer.page.evaluate((most) => window.windlass.remoteVideos()[0].setMaxRung(most), rung);
    await most("q");
    await call.steady(320);
    await most("f");
    await call.steady(640);
  });

  test("sends its quarter size where they do not", async () => {
    call.server.proxy.uplinkKbps = 80;
    await call.steady(320);
  });

  test("sends its half size again when the uplink is wider", async () => {
    call.server.proxy.uplinkKbps = 220;
    // After losses Chromium holds its estimate for up to 60 s before it tries for more (libwebrtc, `loss_based_bwe_v2`, kMaxHoldDuration).
    await call.steady(640, 150_000);
    assert.deepEqual([...call.publisher.errors, ...call.viewer.errors], []);
  });
});
