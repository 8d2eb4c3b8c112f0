// The WebAssembly module in Chromium gives the native decoder's pictures, bit for bit.
//
// Of clips the first WINDLASS_TWIN_SECONDS (2) seconds are compared.
//
// Runs first, beside any file.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { twin } from "../../../client-web/wasm/twin.mjs";
import { openPage } from "../support/browser.mjs";
import { serveFiles } from "../support/files.mjs";
import { CLIPS, clipsFolder, lowLayer } from "../support/scene.mjs";
import { skipped } from "../support/skips.mjs";
import { MODULE, pageFiles } from "../wasm/files.mjs";

const SECONDS = Number(process.env.WINDLASS_TWIN_SECONDS ?? 2);

/** Checks every picture of the file in Chromium against the native decoder's. */
async function same(file) {
  const cases = twin([file]);
  const files = await serveFiles(pageFiles(MODULE, { "/stream": file, "/cases.json": Buffer.from(JSON.stringify(cases)) }));
  const tab = await openPage();
  try {
    await tab.page.goto(files.url);
    const found = await tab.page.evaluate(() => window.inWorker({ what: "check", stream: "/stream", cases: "/cases.json" }));
    assert.deepEqual(found.map((one) => one.scale), [2, 3, 4]);
    for (const { scale, frames, ...anchors } of found) {
      assert.ok(frames >= 20, `${frames} frames`);
      for (const [kind, count] of Object.entries(anchors)) assert.ok(count > 0, `no anchor was ${kind} at scale ${scale}`);
    }
    assert.deepEqual(tab.errors, []);
    return found[0].frames;
  } finally {
    await tab.close();
    files.close();
  }
}

for (const stream of ["realtime", "altref"]) {
  test(`every picture of ${stream}, with anchors of every kind, is the native one`, { only: true }, async () => {
    await same(path.join(import.meta.dirname, `../../../hybrid/vp9/tests/fixtures/${stream}.ivf`));
  });
}

const missing = clipsFolder() === null && "no clips: set WINDLASS_CLIPS";
for (const clip of Object.keys(CLIPS)) {
  const name = `every picture of ${clip}, with anchors of every kind, is the native one`;
  test(name, { only: ["d13", "notebook"].includes(clip), skip: skipped(name, missing) }, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "windlass-twin-"));
    try {
      const file = path.join(folder, `${clip}.ivf`);
      lowLayer(clip, SECONDS, file);
      const frames = await same(file);
      assert.ok(frames >= SECONDS * 20, `${frames} frames`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
