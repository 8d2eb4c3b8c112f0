// Figures of a real call for docs/benchmarks.md: anchor latency by stage, CPU by role, browser times.
//   cargo build --release -p windlass && WINDLASS_BIN=target/release/windlass node measure.mjs [--layers q|qh] [--json]
// Run it in tests/e2e on a machine that does nothing else.
import { readFileSync } from "node:fs";
import { enhanced, publish, remote, sleep, subscribe } from "./support/call.mjs";
import { makeScene } from "./support/scene.mjs";
import { startServer } from "./support/server.mjs";

const args = process.argv.slice(2);
const layers = args[args.indexOf("--layers") + 1] || "qh";
const SECONDS = 20;

/** CPU seconds that a process has used. */
function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function cpuShare(pid) {
  const from = cpuSeconds(pid);
  await sleep(SECONDS * 1000);
  return (cpuSeconds(pid) - from) / SECONDS;
}

const percentile = (list, p) => list.sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * p))];

const size = layers === "q" ? { width: 1280, height: 720 } : { width: 640, height: 360 };
const scene = makeScene({ clip: "d13", ...size, out: "output" });
const server = await startServer({ args: ["--log", "warn"] });
const rows = [];
try {
  const idle = await cpuShare(server.pid);
  const publisher = await publish(server, scene, { layers });
  await sleep(5000);
  const alone = await cpuShare(server.pid);
  const viewer = await subscribe(server);
  await enhanced(viewer.page);
  await sleep(3000);
  const latencies = [];
  const sampler = setInterval(async () => {
    const r = await remote(viewer.page).catch(() => null);
    if (r?.stats?.anchorP50Ms) latencies.push([r.stats.anchorP50Ms, r.stats.anchorP95Ms]);
  }, 1000);
  const one = await cpuShare(server.pid);
  clearInterval(sampler);
  const { rung, state, stats } = await remote(viewer.page);
  const metrics = await server.metrics();
  const stage = (name, q) => metrics[`windlass_enhancer_latency_seconds{stage="${name}",quantile="${q}"}`] * 1000;
  for (const name of ["decode", "schedule", "infer", "encode", "total"]) {
    rows.push({ figure: `server ${name}`, p50_ms: stage(name, 0.5), p95_ms: stage(name, 0.95), p99_ms: stage(name, 0.99) });
  }
  rows.push({
    figure: "frame at the browser to anchor usable",
    p50_ms: percentile(latencies.map((l) => l[0]), 0.5),
    p95_ms: percentile(latencies.map((l) => l[1]), 0.5),
    p99_ms: percentile(latencies.map((l) => l[1]), 0.99),
  });
  const second = await subscribe(server, { name: "Second", browser: viewer });
  await sleep(4000);
  const two = await cpuShare(server.pid);
  rows.push({ figure: "server CPU, idle", cores: idle });
  rows.push({ figure: "server CPU, a publisher that nobody watches", cores: alone - idle });
  rows.push({ figure: "server CPU, added by its first enhanced subscriber (tap, SR and forwarding)", cores: one - alone });
  rows.push({ figure: "server CPU, added by its second subscriber", cores: two - one });
  rows.push({
    figure: `browser at ${rung}, ${state}: ${stats.lr.width}x${stats.lr.height} to ${stats.hr.width}x${stats.hr.height}`,
    rebuild_ms: stats.decodeMs,
    catch_up_ms: stats.catchUpMs,
    shown_fps: stats.shownFps,
    enhanced_fps: stats.enhancedFps,
    anchors_per_s: stats.anchorsPerSecond,
    video_kbps: stats.videoKbps,
    anchor_kbps: stats.anchorKbps,
  });
  void second;
  await viewer.close();
  await publisher.close();
} finally {
  await server.stop();
}
if (args.includes("--json")) console.log(JSON.stringify({ command: `measure --layers ${layers}`, rows }));
else for (const { figure, ...values } of rows) {
  console.log(`${figure}: ${Object.entries(values).map(([k, v]) => `${k} ${v?.toFixed?.(v < 1 ? 3 : 1) ?? "-"}`).join(", ")}`);
}
