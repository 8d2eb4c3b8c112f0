// Records what Chromium's VP9 encoder makes of a call's camera: one IVF file per encoding (q, h, f) and scalability mode.
//   node measure/record-vp9.mjs [--out DIR] [--minutes N] [--modes L1T1,L1T2,L1T3] [--plans usual|starved,…] [--source clips|drawn]
// Every plan is recorded in every mode for N minutes. Plans (record/page.js) are what happens in each minute: key frame
// requests, lower and higher bitrates, other frame rates and camera sizes, resizes by the encoder itself.
// Prints one line of JSON per file: frames, seconds, sizes of key frames.
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { openPage } from "../support/browser.mjs";
import { IvfWriter } from "../support/ivf.mjs";
import { clipsFolder } from "../support/scene.mjs";

const { values: options } = parseArgs({
  options: {
    out: { type: "string", default: "output/chromium-vp9" },
    minutes: { type: "string", default: "7" },
    modes: { type: "string", default: "L1T1,L1T2,L1T3" },
    plans: { type: "string", default: "usual" },
    source: { type: "string", default: "clips" },
  },
});
const CLIPS = clipsFolder();
const RECORD_HEAD = 14;
/** What the page's server has beside the page. */
const SCRIPTS = Object.fromEntries(["page.js", "tap.js"].map((f) => [`/${f}`, path.join(import.meta.dirname, "record", f)]));

/** Parts of the camera's loop: file, crop to 16:9, seconds. */
const PARTS = [
  ["LivePortrait__d13.mp4", "720:405:0:300", 10],
  ["chor2bspl__screencast.mp4", "1066:600:0:0", 8],
  ["LivePortrait__s18.mp4", "1280:720:0:0", 8],
  ["LatentSync__assets_demo2_video.mp4", "1080:608:0:100", 8],
  ["gh-scoped-creds__screencast.mp4", "1616:909:0:0", 10],
  ["LivePortrait__d6.mp4", "480:270:0:80", 8],
  ["LatentSync__assets_demo1_video.mp4", "1080:608:0:480", 8],
];

/** A camera file for Chromium: clips one after another, or moving drawn pictures with noise. */
function makeCamera(dir) {
  const parts = options.source === "clips" && CLIPS !== null ? PARTS.filter(([file]) => existsSync(path.join(CLIPS, file))) : [];
  if (options.source === "clips" && parts.length === 0) console.error("no clips, set WINDLASS_CLIPS: using drawn pictures");
  const same = "fps=30,scale=1280:720:flags=area,setsar=1,format=yuvj420p";
  const drawn = ["-f", "lavfi", "-i", "mandelbrot=s=640x360:r=30,noise=alls=3:allf=t,format=yuv420p"];
  const inputs = parts.length ? parts.flatMap(([file]) => ["-i", path.join(CLIPS, file)]) : [...drawn, "-t", "20"];
  const graph = parts.map(([, crop, t], i) => `[${i}:v]trim=duration=${t},setpts=PTS-STARTPTS,crop=${crop},${same}[v${i}]`);
  graph.push(`${parts.map((_, i) => `[v${i}]`).join("")}concat=n=${parts.length}`);
  const filter = parts.length ? ["-filter_complex", graph.join(";")] : ["-vf", same];
  const file = path.join(dir, "camera.mjpeg");
  const run = spawnSync("ffmpeg", ["-v", "error", "-y", ...inputs, ...filter, "-q:v", "4", "-f", "mjpeg", file]);
  if (run.status !== 0) throw new Error(`ffmpeg could not make the camera's file: ${run.stderr ?? run.error}`);
  return path.resolve(file);
}

/** Serves the page and takes the frames that its worker posts. */
async function serve(take) {
  const server = createServer(async (request, response) => {
    if (request.method === "POST") {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      for (let at = 0; at < body.length; ) {
        const size = body.readUInt32BE(at);
        const from = at + RECORD_HEAD;
        take({
          ssrc: body.readUInt32BE(at + 4),
          rtp: body.readUInt32BE(at + 8),
          key: body[at + 12] === 1,
          temporal: body[at + 13],
          data: body.subarray(from, from + size),
        });
        at = from + size;
      }
      return response.end();
    }
    const script = SCRIPTS[request.url];
    response.setHeader("content-type", script ? "text/javascript" : "text/html");
    return response.end(script ? readFileSync(script) : '<!doctype html><script src="page.js"></script>');
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return { url: `http://localhost:${server.address().port}/`, close: () => server.close() };
}

/** One call with all encodings in `mode`; gives a row per file. */
async function record(plan, mode, camera) {
  const writers = new Map();
  const fileOf = (name) => path.join(options.out, `${mode.toLowerCase()}-${plan === "usual" ? "" : `${plan}-`}${name}.ivf`);
  const server = await serve((frame) => {
    if (!writers.has(frame.ssrc)) writers.set(frame.ssrc, new IvfWriter(fileOf(frame.ssrc)));
    writers.get(frame.ssrc).add(frame);
  });
  // Where Chromium scales the camera's picture down itself, libvpx never does.
  const args = plan.endsWith("starved") ? ["--force-fieldtrials=WebRTC-VP9QualityScaler/Disabled/"] : [];
  const tab = await openPage({ camera, args });
  let expected;
  let rids;
  try {
    await tab.page.goto(server.url);
    expected = await tab.page.evaluate((args) => window.recorder.start(...args), [plan, mode]);
    const seconds = Number(options.minutes) * 60;
    const refused = await tab.page.evaluate((args) => window.recorder.live(...args), [plan, seconds]);
    for (const [what, why] of Object.entries(refused)) console.error(`${mode}: ${what}: ${why}`);
    await tab.page.evaluate(() => window.recorder.flush());
    rids = await tab.page.evaluate(() => window.recorder.ridsBySsrc());
    if (tab.errors.length) throw new Error(`the page reports: ${tab.errors.join("; ")}`);
  } finally {
    await tab.close();
    server.close();
    for (const writer of writers.values()) writer.close();
  }
  const sent = new Set([...writers.keys()].map((ssrc) => rids[ssrc]));
  const missing = expected.filter((rid) => !sent.has(rid));
  if (missing.length) throw new Error(`${mode}: no frames came of ${missing.join(", ")}`);
  return [...writers].flatMap(([ssrc, writer]) => {
    // Encodings that a plan turns off send a frame or two before.
    if (!expected.includes(rids[ssrc])) {
      rmSync(fileOf(ssrc));
      return [];
    }
    const file = fileOf(rids[ssrc]);
    renameSync(fileOf(ssrc), file);
    const { frames, keyFrames, layers, seconds } = writer;
    const sizes = writer.sizes.map((s) => `${s.width}x${s.height}`);
    return [{ file, frames, keyFrames, layers, seconds: Math.round(seconds), sizes }];
  });
}

mkdirSync(options.out, { recursive: true });
const camera = makeCamera(options.out);
for (const plan of options.plans.split(",")) {
  for (const mode of options.modes.split(",")) {
    for (const row of await record(plan, mode, camera)) console.log(JSON.stringify(row));
  }
}
rmSync(camera);
