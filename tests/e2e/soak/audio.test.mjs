// Audio in a real call: heard, told who speaks, next to nothing in silence, and repeated where a publisher wants that.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { heard, span, speak } from "../support/audio.mjs";
import { publish, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

describe("audio in a call", { only: true }, () => {
  let server;
  let publisher;
  let viewer;
  let plain;

  before(async () => {
    server = await startServer({ args: ["--device=off"] });
    publisher = await publish(server, makeScene(), { layers: "q" });
    viewer = await subscribe(server);
    await speak(publisher.page);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("a tone is heard, and who makes it is told as the speaker", { only: true }, async () => {
    await until(async () => (await heard(viewer.page, "tone"))?.totalAudioEnergy > 0.05, "the tone is heard");
    plain = await span(viewer.page, "tone");
    assert.ok(plain.packetsReceived > 120, JSON.stringify(plain));
    const id = await publisher.page.evaluate(() => window.windlass.room.participant);
    await until(() => viewer.page.evaluate((id) => window.windlass.room.speaker?.id === id, id), "the speaker is told");
  });

  test("silence takes next to nothing, and is not taken for loss", async () => {
    await publisher.page.evaluate(() => window.hush(true));
    const quiet = async () => {
      const silent = await span(viewer.page, "tone");
      return silent.packetsReceived < 30 && silent;
    };
    const silent = await until(quiet, "few packets come", 20_000);
    console.log("three seconds of silence:", silent, "of a tone:", plain);
    await publisher.page.evaluate(() => window.hush(false));
    await until(async () => (await span(viewer.page, "tone")).totalAudioEnergy > 0.05, "the tone is heard again");
  });

  test("a publisher that wants it sends each packet twice, and it is heard", async () => {
    await publisher.page.evaluate(() => window.windlass.room.unpublish(window.spoken));
    await speak(publisher.page, { name: "repeated", redundancy: true });
    await until(async () => (await heard(viewer.page, "repeated"))?.totalAudioEnergy > 0.05, "the tone is heard");
    const repeated = await span(viewer.page, "repeated");
    const each = (s) => s.bytesReceived / s.packetsReceived;
    console.log(`${each(repeated)} bytes a packet, ${each(plain)} without redundancy`);
    assert.ok(each(repeated) > 1.6 * each(plain), JSON.stringify({ repeated, plain }));
    assert.ok(repeated.packetsReceived > 120 && repeated.totalAudioEnergy > 0.05, JSON.stringify(repeated));
  });
});
