// A subscriber that is given less than the publisher's full layer: anchors come of that layer, not of super-resolution.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhancedAt, publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { capture, means, numbers, scored } from "../support/capture.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { standing } from "../support/standing.mjs";

describe("a rung between h and f", () => {
  let scene;
  let server;
  let publisher;
  let viewer;
  let captured;
  let pairs;
  let shown;
  let during;

  before(async () => {
    // Chromium sends no third layer of a smaller camera; at 15 frames a second slow machines code and rebuild all of it in time.
    scene = makeScene({ clip: "s18", width: 960, height: 540, fps: 15, frames: 150 });
    // Three such layers take more than a CPU to code, and where two do everything pictures come late: they are used all the same.
    server = await startServer({ args: ["--no-congestion-control", "--anchor-fraction", "0.2"] });
    publisher = await publish(server, scene, { layers: "qhf" });
    viewer = await subscribe(server, { query: "&maxRung=h%2B" });
    await enhancedAt(viewer.page, scene.width);
    const state = () => standing(server, publisher, viewer);
    // Chromium sends the full layer once its estimate has climbed, and sender reports tell which frames belong together.
    const flows = async () => (await server.metrics()).windlass_enhancer_captured_anchors_total >= 2;
    await until(flows, "anchors are made of the full layer", 60_000, state);
    // Counted before pixels are copied, which takes what CPU there is for several times as long as it captures.
    const before = await server.metrics();
    const anchors = async () => (await server.metrics()).windlass_enhancer_anchors_total - before.windlass_enhancer_anchors_total;
    await until(async () => (await anchors()) >= 16, "sixteen more anchors", 60_000, state);
    const after = await server.metrics();
    // All parts of the clip, as layers are coarse for seconds after its cut. To copy pixels may take so much of the CPU that the
    // viewer shows the native picture for a while.
    captured = { enhanced: [], plain: [] };
    pairs = [];
    for (let tries = 0; tries < 8 && pairs.length < 100; tries++) {
      await enhancedAt(viewer.page, scene.width);
      const part = await capture(viewer.page, 3);
      captured.enhanced.push(...part.enhanced);
      pairs.push(...scored(part, scene, 1));
    }
    const grown = (name) => after[name] - before[name];
    during = {
      anchors: grown("windlass_enhancer_anchors_total"),
      captured: grown("windlass_enhancer_captured_anchors_total"),
      frames: grown("windlass_sfu_captured_frames_total"),
      unaligned: grown("windlass_sfu_captured_unaligned_total"),
      asked: after.windlass_sfu_region_requests_total,
    };
    shown = await remote(viewer.page);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("anchors are the publisher's own pixels while it sends them", () => {
    console.log(`captured: ${JSON.stringify(during)}, ${JSON.stringify(shown.stats)}`);
    assert.equal(shown.rung, "h+");
    assert.ok(during.frames > 60, JSON.stringify(during));
    assert.equal(during.unaligned, 0, "every frame's low frame is known");
    assert.equal(during.asked, 0, "nothing is asked of a publisher whose user has not agreed to stills");
    assert.ok(during.captured >= 3 && during.captured >= 0.8 * during.anchors, JSON.stringify(during));
  });

  test("the picture is better than the low layer alone can be, in order", () => {
    const list = numbers(captured.enhanced, scene);
    assert.equal(list.filter((n) => n < 0).length, 0, `numbers ${list}`);
    const q = means(pairs);
    const worst = pairs.reduce((a, b) => (b.enhanced - b.lanczos < a.enhanced - a.lanczos ? b : a));
    console.log(
      `captured from f: PSNR-Y over ${q.pairs} frames: ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)} dB, Lanczos ${q.lanczos.toFixed(2)} dB`,
      `worst frame: ${JSON.stringify(worst)}`,
    );
    assert.ok(q.pairs >= 40, `only ${q.pairs} pairs`);
    assert.ok(q.enhanced > q.lanczos + 0.5, JSON.stringify(q));
  });

  test("when nobody needs it any more the full layer is no longer decoded", async () => {
    await viewer.page.evaluate(() => window.windlass.remoteVideos()[0].setMaxRung("f"));
    await sleep(2000);
    const before = (await server.metrics()).windlass_enhancer_captured_decoded_total;
    await sleep(2000);
    assert.equal((await server.metrics()).windlass_enhancer_captured_decoded_total, before);
    assert.equal((await remote(viewer.page)).rung, "f");
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
