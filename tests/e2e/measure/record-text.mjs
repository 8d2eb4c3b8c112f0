// The small text of the page /demo as a clip without losses, for `windlass-lab eval --display`:
//   node measure/record-text.mjs OUT.mkv [seconds]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { openPage } from "../support/browser.mjs";

/** Frames a second of the page's text. */
const FPS = 10;
const [out, seconds = "8"] = process.argv.slice(2);
if (out === undefined) throw new Error("say where the clip is to be written");

const clientWeb = new URL("../../../client-web/", import.meta.url);
const { transform } = createRequire(clientWeb)("esbuild");
const source = await readFile(new URL("src/show/text.ts", clientWeb), "utf8");
const { code } = await transform(source, { loader: "ts", format: "iife", globalName: "text" });

const { page, close } = await openPage();
const ffmpeg = spawn("ffmpeg", [
  ...["-v", "error", "-y", "-f", "image2pipe", "-framerate", String(FPS), "-i", "-"],
  ...["-c:v", "ffv1", "-pix_fmt", "yuv420p", "-vf", "scale=out_color_matrix=bt709:out_range=tv", out],
], { stdio: ["pipe", "inherit", "inherit"] });
try {
  await page.addScriptTag({ content: code });
  for (let frame = 0; frame < Number(seconds) * FPS; frame++) {
    const url = await page.evaluate((at) => {
      const canvas = Object.assign(document.createElement("canvas"), text.TEXT_SIZE);
      text.drawText(canvas.getContext("2d", { alpha: false }), at);
      return canvas.toDataURL("image/png");
    }, frame / FPS);
    ffmpeg.stdin.write(Buffer.from(url.slice(url.indexOf(",") + 1), "base64"));
  }
  ffmpeg.stdin.end();
  const [status] = await once(ffmpeg, "close");
  if (status !== 0) throw new Error(`ffmpeg ended with ${status}`);
} finally {
  await close();
}
