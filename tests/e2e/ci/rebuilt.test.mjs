// A call whose server can make no anchors: the subscriber's browser rebuilds the pictures all the same.
// Runs beside one other file.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { capture, numbers, quality } from "../support/capture.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

describe("a call without anchors", () => {
  let scene;
  let server;
  let publisher;
  let viewer;
  let captured;
  let seen;
  const states = [];

  before(async () => {
    scene = makeScene(fewFrames);
    server = await startServer({ args: ["--no-congestion-control", "--compute-cap", "0"] });
    publisher = await publish(server, scene);
    viewer = await subscribe(server);
    const wide = async () => {
      const now = await remote(viewer.page);
      return now?.state === "rebuilt" && now.stats?.hr?.width === scene.width;
    };
    await until(wide, `the rebuilt picture is ${scene.width} pixels wide`, 40_000);
    captured = await capture(viewer.page, 6);
    // Longer than anchors may stay away for any reason.
    for (let second = 0; second < 8; second++) {
      await sleep(1000);
      states.push((await remote(viewer.page)).state);
    }
    seen = await remote(viewer.page);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("the picture is rebuilt, stays so, and says that no anchor has a part in it", async () => {
    assert.equal(seen.rung, "h+");
    assert.deepEqual([...new Set(states)], ["rebuilt"]);
    assert.equal(seen.stats.anchorsUsed, 0);
    assert.equal(seen.stats.enhancedFps, 0);
    assert.equal((await server.metrics()).windlass_enhancer_anchors_total, 0);
    assert.match(await viewer.page.locator(".tile .badge").getAttribute("title"), /^Rung h\+, rebuilt/);
    assert.equal(await viewer.page.locator(".tile video.enhanced").evaluate((v) => getComputedStyle(v).opacity), "1");
  });

  test("rebuilt pictures are at full size, in order, and better than bicubic", () => {
    const list = numbers(captured.enhanced, scene);
    assert.equal(list.filter((n) => n < 0).length, 0, `numbers ${list}`);
    const q = quality(captured, scene);
    console.log(
      `without anchors: PSNR-Y over ${q.pairs} frames: rebuilt ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)} dB, Lanczos ${q.lanczos.toFixed(2)} dB`,
    );
    assert.ok(q.pairs >= 10, `only ${q.pairs} pairs`);
    assert.ok(q.enhanced > q.bicubic, JSON.stringify(q));
  });

  test("a plain rung is rebuilt too, as large as it is shown, and the size changes without a key frame", async () => {
    const { page } = viewer;
    const show = (width, height) =>
      page.evaluate(([width, height]) => window.windlass.remoteVideos()[0].setView({ width, height }), [width, height]);
    const now = async () => {
      const { rung, state, reason, stats } = await remote(page);
      return { rung, state, reason, width: stats?.hr?.width };
    };
    const becomes = (wanted, what) => {
      const there = async () => {
        const seen = await now();
        return Object.entries(wanted).every(([key, value]) => seen[key] === value);
      };
      return until(there, what, 20_000, now);
    };
    const { width, height } = scene;
    await page.evaluate(() => window.windlass.remoteVideos()[0].setMaxRung("q"));
    await show(width, height);
    await becomes({ rung: "q", state: "rebuilt", width }, "the quarter layer is rebuilt four times as large");
    const keyFrames = async () => (await server.metrics()).windlass_sfu_keyframe_requests_in_total;
    const before = await keyFrames();
    await show((width * 3) / 4, (height * 3) / 4);
    await becomes({ rung: "q", state: "rebuilt", width: (width * 3) / 4 }, "a smaller tile has a smaller picture");
    await show(width / 2, height / 2);
    await becomes({ rung: "q", state: "rebuilt", width: width / 2 }, "and a still smaller one");
    assert.equal(await keyFrames(), before);
    await show(width / 4, height / 4);
    await becomes({ state: "native", reason: "fills" }, "a picture that fills its tile is the native one");
    await show(width, height);
    await becomes({ state: "rebuilt", width }, "it is rebuilt again where the tile grows");
    assert.equal((await server.metrics()).windlass_enhancer_streams, 0, "the server has no part in it");
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
