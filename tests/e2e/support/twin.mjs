// The WebAssembly module in a browser, held against the native decoder.
import assert from "node:assert/strict";
import { MODULE, pageFiles } from "../wasm/files.mjs";
import { serveFiles } from "./files.mjs";

/**
 * Checks that every picture of the file is the native decoder's, which made the `cases` of it, with anchors of every
 * kind. `codec` is named where it is another one than VP9. `page` is one of Playwright's, or a browser of `webkit.mjs`.
 * Returns how many pictures there were; `null` where this browser does not decode the codec.
 */
export async function checkTwin(page, { file, cases, codec = null, more = {} }) {
  const files = await serveFiles(pageFiles(MODULE, { "/stream": file, "/cases.json": Buffer.from(JSON.stringify(cases)), ...more }));
  try {
    await page.goto(files.url);
    const found = await page.evaluate((codec) => window.inWorker({ what: "check", stream: "/stream", cases: "/cases.json", codec }), codec);
    if (found === null) return null;
    assert.deepEqual(found.map((one) => one.scale), [2, 3, 4]);
    for (const { scale, frames, ...anchors } of found) {
      assert.ok(frames >= 20, `${frames} frames`);
      for (const [kind, count] of Object.entries(anchors)) assert.ok(count > 0, `no anchor was ${kind} at scale ${scale}`);
    }
    return found[0].frames;
  } finally {
    files.close();
  }
}
