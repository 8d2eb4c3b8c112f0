// What a viewer sees in a real call, and what `windlass-lab eval` makes of the same clip, size and bits: the same clip without anchors, by
// super-resolution, and with stills of the publisher or of the full layer, each in a call of its own. Prints a table; see lab/notes/captured-anchors.md.
//
//   cargo build --release -p windlass -p windlass-lab && WINDLASS_BIN=../../target/release/windlass node measure/measure-quality.mjs [CLIP…] [--seconds S] [--only NAME,…] [--uplink KBPS]
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { nativeFrames, publish, remote, showLarge, sleep, subscribe, until } from "../support/call.mjs";
import { capture, quality } from "../support/capture.mjs";
import { makeScene } from "../support/scene.mjs";
import { labBinary, startServer } from "../support/server.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "10" },
    only: { type: "string" },
    uplink: { type: "string" },
  },
});
const SMALL = { width: 640, height: 360 };
// Chromium sends no third layer of a smaller camera.
const LARGE = { width: 960, height: 540 };
const HD = { width: 1280, height: 720 };
const CALLS = {
  "no anchors": { args: ["--compute-cap", "0", "--captured=off"], method: "no-anchors" },
  enhanced: { args: ["--captured=off"], method: "hybrid" },
  stills: { args: ["--compute-cap", "0"], query: "&detail=1", method: "captured@regions" },
  "stills of q": { size: HD, args: ["--compute-cap", "0"], layers: "q", query: "&detail=1", method: "captured@regions", scale: 4 },
  "from f to q": { size: HD, args: [], layers: "qhf", watch: "&maxRung=q%2B", method: "captured@f", scale: 4 },
  "from f": { size: LARGE, args: [], layers: "qhf", watch: "&maxRung=h%2B", method: "captured@f" },
};
const only = values.only?.split(",");
const f = (v, digits = 2) => v.toFixed(digits);

/** What the evaluation makes of the scene's clip at these bits. */
function evaluated({ clean, fps, width, height }, { method, scale = 2 }, { video, anchors }) {
  const run = (more) => {
    const args = ["eval", clean, "--height", `${height}`, "--fps", `${fps}`, "--uplink", f(video, 0), "--methods", `lanczos,${method}`];
    args.push(...(scale === 2 ? [] : ["--model", `../../models/xs-x${scale}.safetensors`]));
    const out = execFileSync(labBinary(), [...args, ...more, "--json"], { stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1e8 });
    const { rows } = JSON.parse(out);
    if (rows[0].size !== `${width}x${height}`) throw new Error(`evaluated at ${rows[0].size}`);
    return { lanczos: rows[0], method: rows[1] };
  };
  if (method !== "captured@regions") return run([]);
  const stills = (kbps) => run(["--stills-fps", "0.5", "--stills-kbps", f(kbps, 0)]);
  // What a rate control is given is not what it uses.
  return stills((anchors * anchors) / stills(anchors).method.anchor_kbps);
}

console.log("| clip, call | video, anchors, kbit/s | live: Lanczos, shown | eval: video, anchors | eval: Lanczos, shown | difference | over Lanczos: live, eval | decoding and rebuilding |");
console.log("| --- | --- | --- | --- | --- | --- | --- | --- |");
for (const clip of positionals.length > 0 ? positionals : ["d13"]) {
  for (const [name, call] of Object.entries(CALLS)) {
    if (only && !only.includes(name)) continue;
    const scene = makeScene({ clip, ...(call.size ?? SMALL), clean: true });
    const path = values.uplink ? {} : undefined;
    const server = await startServer({ args: ["--no-congestion-control", ...call.args], path });
    if (values.uplink) server.proxy.uplinkKbps = Number(values.uplink);
    const publisher = await publish(server, scene, { layers: call.layers ?? "qh", query: call.query ?? "" });
    const viewer = await subscribe(server, { query: call.watch ?? "" });
    await showLarge(viewer.page, scene);
    await until(async () => (await nativeFrames(viewer.page)) > 30, "the picture is received", 60_000);
    const wide = async () => (await remote(viewer.page))?.stats?.hr?.width === scene.width;
    await until(wide, `the rebuilt picture is ${scene.width} pixels wide`, 60_000);
    await sleep(10_000);
    const rates = { video: [], anchors: [], ms: [] };
    const sampler = setInterval(async () => {
      const stats = (await remote(viewer.page).catch(() => null))?.stats;
      if (!stats) return;
      rates.video.push(stats.videoKbps);
      rates.anchors.push(stats.anchorKbps);
      rates.ms.push(stats.decodeMs);
    }, 1000);
    const seen = quality(await capture(viewer.page, Number(values.seconds)), scene, 1);
    clearInterval(sampler);
    await viewer.close();
    await publisher.close();
    await server.stop();
    const mean = (list) => list.reduce((sum, v) => sum + v, 0) / list.length;
    const kbps = { video: mean(rates.video), anchors: mean(rates.anchors) };
    const live = seen.enhanced;
    const head = `| ${clip}, ${name} (${seen.pairs} frames) | ${f(kbps.video, 0)}, ${f(kbps.anchors, 0)} | ${f(seen.lanczos)}, ${f(live)} | `;
    if (call.method !== "no-anchors" && kbps.anchors < 1) {
      // A picture that stands still has been given all, before this began: no rate says what it cost.
      console.log(`${head}– | – | – | ${f(live - seen.lanczos)}, – | ${f(mean(rates.ms), 1)} ms |`);
      continue;
    }
    const offline = evaluated(scene, call, kbps);
    const evaluation = offline.method.psnr_y_db;
    console.log(
      `${head}${f(offline.method.video_kbps, 0)}, ${f(offline.method.anchor_kbps, 0)} | ${f(offline.lanczos.psnr_y_db)}, ${f(evaluation)} | ` +
        `${f(live - evaluation)} | ${f(live - seen.lanczos)}, ${f(evaluation - offline.lanczos.psnr_y_db)} | ${f(mean(rates.ms), 1)} ms |`,
    );
  }
}
