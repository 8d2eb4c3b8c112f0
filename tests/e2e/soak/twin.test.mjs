// The WebAssembly module in Chromium gives the native decoder's pictures, bit for bit. So it does with the pictures that
// Chromium's decoders make of other codecs, held against those that FFmpeg's make.
//
// Of clips the first WINDLASS_TWIN_SECONDS (2) seconds are compared.
//
// Runs first, beside any file.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { twin } from "../../../client-web/wasm/twin.mjs";
import { openPage } from "../support/browser.mjs";
import { CLIPS, clipsFolder, lowLayer } from "../support/scene.mjs";
import { skipped } from "../support/skips.mjs";
import { checkTwin } from "../support/twin.mjs";
import { bundle } from "../wasm/bundle.mjs";

const SECONDS = Number(process.env.WINDLASS_TWIN_SECONDS ?? 2);

/** As `checkTwin`, in a Chromium of its own. Of another codec than VP9 `pictures` are a native decoder's. */
async function same(file, codec, pictures) {
  const cases = twin(codec ? [pictures, "--pictures", "320x180"] : [file]);
  const more = codec ? { "/picture-decoder.mjs": bundle("picture-decoder.ts") } : {};
  const tab = await openPage();
  try {
    const frames = await checkTwin(tab.page, { file, cases, codec, more });
    assert.deepEqual(tab.errors, []);
    return frames;
  } finally {
    await tab.close();
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

/** How FFmpeg codes each codec as calls do, and by which decoder it reads it. */
const OTHERS = {
  vp8: { coder: ["libvpx", "-deadline", "realtime", "-cpu-used", "7", "-lag-in-frames", "0", "-f", "ivf"], decoder: "vp8" },
  av1: { coder: ["libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-lag-in-frames", "0", "-f", "ivf"], decoder: "libaom-av1" },
  h264: { coder: ["libx264", "-profile:v", "baseline", "-tune", "zerolatency", "-x264-params", "aud=1", "-f", "h264"], decoder: "h264" },
};

for (const [codec, { coder, decoder }] of Object.entries(OTHERS)) {
  const name = `every picture of d13 in ${codec}, with anchors of every kind, is the native one`;
  test(name, { skip: skipped(name, missing) }, async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), "windlass-twin-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const [low, coded, pictures] = ["low.ivf", "coded", "pictures.yuv"].map((file) => path.join(folder, file));
    const ffmpeg = (...args) => execFileSync("ffmpeg", ["-v", "error", ...args], { stdio: ["ignore", "ignore", "inherit"] });
    lowLayer("d13", SECONDS, low);
    ffmpeg("-i", low, "-b:v", "200k", "-c:v", ...coder, coded);
    ffmpeg("-c:v", decoder, "-i", coded, "-f", "rawvideo", "-pix_fmt", "yuv420p", pictures);
    const frames = await same(coded, codec, pictures);
    if (frames === null) return t.skip(skipped(name, `this browser does not decode ${codec}`));
    assert.ok(frames >= SECONDS * 20, `${frames} frames`);
  });
}
