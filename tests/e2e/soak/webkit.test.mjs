// WebKit as far as it can be had here. That of WebKitGTK has no WebRTC, and so no calls; the page says so. The parts behind WebRTC run
// in it: the decoder, bit for bit, and the rebuilder, whose pictures a canvas shows.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { twin } from "../../../client-web/wasm/twin.mjs";
import { framesOf } from "../../../client-web/wasm/vp9-timer.mjs";
import { until } from "../support/call.mjs";
import { serveFiles } from "../support/files.mjs";
import { CODE_ROWS, fewFrames, makeScene, readNumber } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";
import { checkTwin } from "../support/twin.mjs";
import { openWebkit, webkitMissing } from "../support/webkit.mjs";
import { bundle } from "../wasm/bundle.mjs";
import { MODULE, pageFiles } from "../wasm/files.mjs";

const FIXTURE = path.join(import.meta.dirname, "../../../hybrid/vp9/tests/fixtures/realtime.ivf");
const file = (name) => path.join(import.meta.dirname, "..", name);

describe("WebKit", { only: true, skip: skipped("WebKit", webkitMissing) }, () => {
  let webkit;

  before(async () => {
    webkit = await openWebkit();
    console.log(`WebKitGTK ${webkit.version}`);
  });

  after(() => webkit?.close());

  test("a page without WebRTC says that it cannot join, and which browsers can", { only: true }, async () => {
    const server = await startServer();
    try {
      await webkit.goto(`${server.url}/?room=call&name=Wanda&auto=1&source=none`);
      const said = () => webkit.evaluate(() => document.body.innerText);
      await until(async () => (await said()).includes("This browser cannot join. Use a current Chrome, Edge or Firefox."), "it is said", 15_000, said);
      await webkit.goto(`${server.url}/check`);
      await until(async () => /do not work\. No call is possible from here/.test(await said()), "the check has ended", 30_000, said);
      assert.doesNotMatch(await said(), /ended with an error/);
      assert.match(await said(), /Media over UDP: does not work\nThis browser has no WebRTC\.\nUse a current Chrome, Edge or Firefox/);
    } finally {
      await server.stop();
    }
  });

  test("every picture of the decoder is the native one", { only: true }, async () => {
    await checkTwin(webkit, { file: FIXTURE, cases: twin([FIXTURE]) });
  });

  test("a film of a call is rebuilt with its anchors, and shown by a canvas", { only: true }, async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), "windlass-webkit-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const scene = makeScene(fewFrames);
    const film = path.join(folder, "film.ivf");
    const coding = ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "7", "-b:v", "300k", "-f", "ivf"];
    execFileSync("ffmpeg", ["-v", "error", "-i", scene.file, "-vf", "scale=320:180:flags=area", ...coding, film]);
    const cases = twin([film, "--call", "2"]);
    const { length } = framesOf(readFileSync(film));
    const files = await serveFiles(pageFiles(MODULE, {
      "/player.html": file("wasm/player.html"),
      "/sdk.mjs": bundle("../sdk/output.ts", "../sdk/rebuilder.ts"),
      "/worker.js": file("../../client-web/dist/worker.js"),
      "/stream": film,
      "/cases.json": Buffer.from(JSON.stringify(cases)),
    }));
    try {
      await webkit.goto(`${files.url}player.html`);
      const ready = () => webkit.evaluate(() => typeof window.play === "function");
      await until(ready, "the page's script has run");
      const digest = createHash("sha256").update(readFileSync(MODULE)).digest("hex");
      const seen = await webkit.evaluate((what) => window.play(what), { fps: scene.fps, rows: CODE_ROWS, digest });
      const { hr, anchorsUsed, decodeMs, faults } = seen.stats;
      const numbers = seen.pictures.map(({ width, luma }) => readNumber(luma, width, scene.width));
      console.log(`WebKit: ${seen.states}; ${numbers.length} of ${length} pictures, ${anchorsUsed} anchors, ${decodeMs?.toFixed(1)} ms a picture`);
      assert.deepEqual(seen.failures, []);
      assert.equal(seen.output, "post");
      assert.ok(seen.states.includes("enhanced"), `${seen.states}`);
      assert.deepEqual([hr.width, hr.height, faults], [scene.width, scene.height, 0]);
      assert.ok(anchorsUsed > 0);
      assert.ok(numbers.length > length / 2, `${numbers}`);
      assert.ok(numbers.every((n, i) => n >= 0 && (i === 0 || n >= numbers[i - 1])), `${numbers}`);
    } finally {
      files.close();
    }
  });
});
