// The same call where things go wrong: loss and jitter, layer switches, no enhancer, late joiners.
// Runs beside one other file.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhanced, enhancedAt, nativeFrames, publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { capture, numbers, quality } from "../support/capture.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/**
 * Holds what a publisher's browser takes its uplink for above what two layers need: on a busy machine jitter can look like a queue to it, and
 * it then sends less. Answers say so in Chromium's own parameter of a codec.
 */
const wideUplink = () => {
  const set = RTCPeerConnection.prototype.setRemoteDescription;
  RTCPeerConnection.prototype.setRemoteDescription = function (description, ...rest) {
    const sdp = description.sdp.replace(/^(a=fmtp:\d+ profile-id=0.*)$/gm, "$1;x-google-min-bitrate=800");
    return set.call(this, { type: description.type, sdp }, ...rest);
  };
};

describe("a call over a path with 5 % loss and 50 ms of jitter", { only: true }, () => {
  let scene;
  let server;
  let publisher;
  let viewer;

  before(async () => {
    scene = makeScene(fewFrames);
    // Without congestion control the rung is what the test says, not what loss makes of the estimate.
    server = await startServer({ args: ["--no-congestion-control"], path: { loss: 0.05, jitterMs: 50, seed: 7 } });
    // Nor is it what loss makes of the publisher's: Chromium once turned the half layer off for the rest of the call.
    const browser = { args: ["--force-fieldtrials=WebRTC-Bwe-LossBasedBweV2/Enabled:false/"] };
    publisher = await publish(server, scene, { browser, init: wideUplink });
    viewer = await subscribe(server);
    await enhancedAt(viewer.page, scene.width);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("most frames are still enhanced, and never worse than bicubic on the whole", { only: true }, async () => {
    const captured = await capture(viewer.page, 10);
    const share = captured.enhanced.length / captured.plain.length;
    const q = quality(captured, scene);
    console.log(
      `impaired: native ${captured.plain.length}, enhanced ${captured.enhanced.length}; PSNR-Y enhanced ${q.enhanced.toFixed(2)}, bicubic ${q.bicubic.toFixed(2)}; ` +
        `path dropped ${server.proxy.counts.dropped} of ${server.proxy.counts.dropped + server.proxy.counts.forwarded}`,
    );
    assert.ok(server.proxy.counts.dropped > 50);
    assert.ok(captured.plain.length >= 40, `native frames ${captured.plain.length}`);
    assert.ok(share >= 0.5, `${share}`);
    assert.ok(q.pairs >= 10 && q.enhanced > q.bicubic, JSON.stringify(q));
    assert.equal(numbers(captured.enhanced, scene).filter((n) => n < 0).length, 0);
  });

  test("a layer switch in the middle begins a new epoch and is enhanced again", async () => {
    const epoch = await viewer.page.evaluate(() => window.windlass.remoteVideos()[0].rung.epoch);
    await viewer.page.evaluate(() => window.windlass.remoteVideos()[0].setMaxRung("q+"));
    await until(async () => (await remote(viewer.page)).rung === "q+", "the rung is q+");
    await enhancedAt(viewer.page, scene.width / 2);
    await viewer.page.evaluate(() => window.windlass.remoteVideos()[0].setMaxRung("f"));
    // At one and the same time: what the publisher sends may change in between.
    const back = async () => (await enhancedAt(viewer.page, scene.width)).rung === "h+";
    await until(back, "the rung is h+", 40_000, () => remote(viewer.page));
    const later = await viewer.page.evaluate(() => window.windlass.remoteVideos()[0].rung.epoch);
    assert.notEqual(later, epoch);
  });

  test("video goes on when the enhancer dies, and is enhanced again when it is back", async () => {
    await server.setEnhancer(false);
    const from = await nativeFrames(viewer.page);
    // Its picture is rebuilt all the same, with the detail that has come before.
    const isPlain = async () => !(await remote(viewer.page)).rung.endsWith("+");
    await until(isPlain, "the rung is plain", 10_000);
    await sleep(3000);
    const frames = (await nativeFrames(viewer.page)) - from;
    assert.ok(frames >= 18, `${frames} frames decoded without an enhancer`);
    const used = async () => (await remote(viewer.page)).stats.anchorsUsed;
    const before = await used();
    await server.setEnhancer(true);
    await until(async () => (await used()) > before, "anchors are used again", 30_000);
  });

  test("a second and after it a third subscriber join late and see the same", async () => {
    const second = await subscribe(server, { name: "Second", browser: viewer });
    // Of twelve frames a second fewer become anchors, and of these some are lost.
    await enhanced(second.page, 60_000);
    // Three pages that rebuild are more than two slow CPUs have.
    await second.closePage();
    const third = await subscribe(server, { name: "Third", browser: viewer });
    await until(async () => (await nativeFrames(third.page)) > 10, "the third sees video", 20_000);
    await enhanced(third.page, 60_000);
    assert.deepEqual([...second.errors, ...third.errors, ...viewer.errors, ...publisher.errors], []);
    await third.closePage();
  });
});

describe("a call with congestion control over the same path", () => {
  test("video goes on and is enhanced on whatever rung fits", async () => {
    const scene = makeScene(fewFrames);
    const server = await startServer({ path: { loss: 0.05, jitterMs: 50, seed: 8 } });
    const publisher = await publish(server, scene);
    const viewer = await subscribe(server);
    try {
      await enhanced(viewer.page, 40_000);
      const from = await nativeFrames(viewer.page);
      await sleep(5000);
      const frames = (await nativeFrames(viewer.page)) - from;
      const { rung } = await remote(viewer.page);
      console.log(`impaired, congestion control: ${frames} frames in 5 s at ${rung}`);
      assert.ok(frames >= 24, `${frames}`);
      assert.deepEqual([...viewer.errors, ...publisher.errors], []);
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  });
});
