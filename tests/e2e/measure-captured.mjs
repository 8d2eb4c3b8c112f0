// How much the publisher's own pixels give in a real call: the same clip with no anchors, by super-resolution, and with a
// detail stream, regions or the full layer, each in a call of its own. Prints a table; see docs/benchmarks.md.
//
//   WINDLASS_BIN=../../target/release/windlass node measure-captured.mjs [CLIP] [--seconds S] [--only NAME,…] [--uplink KBPS]
import { parseArgs } from "node:util";
import { nativeFrames, publish, remote, sleep, subscribe, until } from "./support/call.mjs";
import { capture, quality } from "./support/capture.mjs";
import { makeScene } from "./support/scene.mjs";
import { startServer } from "./support/server.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "4" },
    only: { type: "string" },
    uplink: { type: "string" },
  },
});
const clip = positionals[0] ?? "d13";
const SMALL = { width: 640, height: 360 };
// Chromium sends no third layer of a smaller camera.
const LARGE = { width: 960, height: 540 };
const CALLS = {
  "no anchors": { size: SMALL, args: ["--compute-cap", "0", "--no-captured"], layers: "qh" },
  enhanced: { size: SMALL, args: ["--no-captured"], layers: "qh" },
  detail: { size: SMALL, args: ["--compute-cap", "0"], layers: "qh", query: "&detail=1" },
  regions: { size: SMALL, args: ["--compute-cap", "0", "--detail-as", "regions"], layers: "qh", query: "&detail=1" },
  "detail and enhanced": { size: SMALL, args: [], layers: "qh", query: "&detail=1" },
  "h+ enhanced, 540 lines": { size: LARGE, args: ["--no-captured"], layers: "qhf", wanted: "h+" },
  "h+ from f, 540 lines": { size: LARGE, args: [], layers: "qhf", wanted: "h+" },
};
const only = values.only?.split(",");

for (const [name, call] of Object.entries(CALLS)) {
  if (only && !only.includes(name)) continue;
  const scene = makeScene({ clip, ...call.size, out: "output" });
  const path = values.uplink ? {} : undefined;
  const server = await startServer({ args: ["--no-congestion-control", ...call.args], path });
  if (values.uplink) server.proxy.uplinkKbps = Number(values.uplink);
  const publisher = await publish(server, scene, { layers: call.layers, query: call.query ?? "" });
  const viewer = await subscribe(server, { query: call.wanted ? `&maxRung=${encodeURIComponent(call.wanted)}` : "" });
  await until(async () => (await nativeFrames(viewer.page)) > 30, "the picture is received", 60_000);
  const wide = async () => (await remote(viewer.page))?.stats?.hr?.width === scene.width;
  await until(wide, `the rebuilt picture is ${scene.width} pixels wide`, 60_000);
  await sleep(12_000);
  const rates = [];
  for (let n = 0; n < 5; n++) {
    const { stats } = await remote(viewer.page);
    rates.push([stats.videoKbps, stats.anchorKbps]);
    await sleep(1000);
  }
  const seen = quality(await capture(viewer.page, Number(values.seconds)), scene);
  const mean = (at) => rates.reduce((sum, rate) => sum + rate[at], 0) / rates.length;
  const f = (v) => v.toFixed(2);
  console.log(
    `${clip} ${name}: ${f(seen.enhanced)} dB (Lanczos ${f(seen.lanczos)}, bicubic ${f(seen.bicubic)}; ${seen.pairs} frames), ` +
      `video ${mean(0).toFixed(0)} and anchors ${mean(1).toFixed(0)} kbit/s`,
  );
  await viewer.close();
  await publisher.close();
  await server.stop();
}
