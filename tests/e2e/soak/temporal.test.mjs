// A viewer whose link carries less than the smallest layer: with temporal layers, as other pages send them, the server leaves some out; without, as our SDK
// sends, it asks the publisher for less.
// Runs beside one other file.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nativeFrames, publish, receivedVideo, remote, sleep, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";
import { standing } from "../support/standing.mjs";

/** To be run in a page before its scripts: what it sends has three temporal layers. */
function sendTemporalLayers() {
  const add = RTCPeerConnection.prototype.addTransceiver;
  RTCPeerConnection.prototype.addTransceiver = function (track, init) {
    for (const encoding of init?.sendEncodings ?? []) encoding.scalabilityMode = "L1T3";
    return add.call(this, track, init);
  };
}

/** Publishes a picture that is new everywhere, in a codec; resolves to whether the browser has it. */
const send = (page, codec) =>
  page.evaluate(async (codec) => {
    const codecs = RTCRtpSender.getCapabilities("video").codecs;
    if (!codecs.some(({ mimeType }) => mimeType.toLowerCase() === `video/${codec}`)) return false;
    const canvas = Object.assign(document.createElement("canvas"), { width: 1280, height: 720 });
    const context = canvas.getContext("2d");
    let n = 0;
    setInterval(() => {
      n += 1;
      for (let at = 0; at < 64; at++) {
        context.fillStyle = `hsl(${(at * 47 + n * 5) % 360} 80% ${30 + ((at * 13 + n) % 40)}%)`;
        context.fillRect((at % 8) * 160, Math.floor(at / 8) * 90, 160, 90);
      }
    }, 33);
    const [track] = canvas.captureStream(30).getVideoTracks();
    await window.windlass.room.publish(track, { codec, layers: "q", content: "camera" });
    return true;
  }, codec);

/** What a viewer has shown in some seconds. */
async function watch(page, seconds) {
  const before = await receivedVideo(page);
  await sleep(1000 * seconds);
  const after = await receivedVideo(page);
  const grown = (name) => after[name] - before[name];
  return {
    fps: grown("framesDecoded") / seconds,
    kbps: (grown("bytesReceived") * 8) / 1000 / seconds,
    lost: grown("packetsLost"),
    frozen: grown("totalFreezesDuration"),
  };
}

describe("a viewer on a link of 120 kbit/s", { only: true }, () => {
  for (const codec of ["vp9", "vp8", "av1"]) {
    test(`sees fewer frames of 150 kbit/s in ${codec}, smoothly`, { only: codec === "vp9" }, async (t) => {
      const server = await startServer({ link: ["--profile", "120k", "--down-only"], args: ["--device", "off"] });
      t.after(() => server.stop());
      const publisher = await subscribe(server, { name: "Publisher", init: sendTemporalLayers });
      t.after(() => publisher.close());
      if (!(await send(publisher.page, codec))) return t.skip(skipped(t.name, `this browser has no ${codec}`));
      const viewer = await subscribe(server);
      t.after(() => viewer.close());
      await until(async () => (await nativeFrames(viewer.page)) > 10, "the picture moves", 30_000);
      const leftOut = async () => (await server.metrics()).windlass_sfu_rtp_higher_layer_total;
      await until(async () => (await leftOut()) > 50, "frames are left out", 30_000, leftOut);
      await sleep(3000);
      const seen = await watch(viewer.page, 10);
      console.log("temporal:", JSON.stringify({ codec, ...seen, rung: (await remote(viewer.page)).rung }));
      assert.ok(seen.fps > 5 && seen.fps < 22, `${seen.fps} fps`);
      assert.ok(seen.kbps < 115, `${seen.kbps} kbit/s`);
      // Without temporal layers the picture stands still. Of AV1 the base layer alone takes two thirds of the link.
      assert.ok(seen.frozen <= 3, `frozen ${seen.frozen} s`);
      assert.deepEqual([...viewer.errors, ...publisher.errors], []);
    });
  }

  test("sees all frames of one temporal layer, as the publisher is asked for less", async (t) => {
    const server = await startServer({ link: ["--profile", "120k", "--down-only"], args: ["--device", "off"] });
    t.after(() => server.stop());
    const scene = makeScene({ clip: "d13", width: 1280, height: 720, frames: 150 });
    const publisher = await publish(server, scene, { layers: "q" });
    t.after(() => publisher.close());
    const viewer = await subscribe(server);
    t.after(() => viewer.close());
    const limits = async () => (await server.metrics()).windlass_sfu_smallest_layer_limits_total;
    await until(async () => (await limits()) > 0, "the layer is limited", 30_000, limits);
    const smooth = async () => (await watch(viewer.page, 2)).fps > 20;
    await until(smooth, "the picture moves", 60_000, () => standing(server, publisher, viewer));
    const seen = await watch(viewer.page, 10);
    console.log("narrow:", JSON.stringify({ ...seen, limits: await limits(), rung: (await remote(viewer.page)).rung }));
    assert.ok(seen.fps > 20, `${seen.fps} fps`);
    assert.ok(seen.kbps < 115, `${seen.kbps} kbit/s`);
    assert.ok(seen.frozen <= 3, `frozen ${seen.frozen} s`);
    assert.deepEqual([...viewer.errors, ...publisher.errors], []);
  });
});
