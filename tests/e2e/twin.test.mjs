// The WebAssembly module in Chromium gives the native decoder's pictures, bit for bit.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { twin } from "../../client-web/wasm/twin.mjs";
import { openPage } from "./support/browser.mjs";
import { serveFiles } from "./support/files.mjs";
import { MODULE, pageFiles } from "./wasm/files.mjs";

for (const stream of ["realtime", "altref"]) {
  test(`every picture of ${stream}, with anchors of every kind, is the native one`, { timeout: 180_000 }, async () => {
    const file = path.join(import.meta.dirname, `../../hybrid/tests/fixtures/${stream}.ivf`);
    const cases = twin([file]);
    const files = await serveFiles(pageFiles(MODULE, { "/stream": file, "/cases.json": Buffer.from(JSON.stringify(cases)) }));
    const tab = await openPage();
    try {
      await tab.page.goto(files.url);
      const found = await tab.page.evaluate(() => window.inWorker({ what: "check", stream: "/stream", cases: "/cases.json" }));
      assert.deepEqual(found.map((one) => `${one.scale} ${one.codec}`), ["2 jpeg", "2 htj2k", "3 jpeg", "3 htj2k"]);
      for (const { scale, codec, frames, ...anchors } of found) {
        assert.ok(frames >= 20, `${frames} frames`);
        for (const [kind, count] of Object.entries(anchors)) assert.ok(count > 0, `no anchor was ${kind} at scale ${scale}, ${codec}`);
      }
      assert.deepEqual(tab.errors, []);
    } finally {
      await tab.close();
      files.close();
    }
  });
}
