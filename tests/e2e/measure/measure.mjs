// Figures of a real call for lab/notes/a-real-call.md: anchor latency by stage, CPU by role, browser times.
//   cargo build --release -p windlass && WINDLASS_BIN=target/release/windlass node measure/measure.mjs [--layers q|qh] [--json]
//     [--size WxH] [--browser] [--no-congestion-control] [--budget-ms N]
// Run it in tests/e2e on a machine that does nothing else. `--size` is the camera's (else 1280x720 for q, 640x360 for
// qh); `--browser` measures the subscriber's browser alone: pictures by second, share enhanced, ms of each decoder call.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { enhanced, publish, remote, sleep, subscribe } from "../support/call.mjs";
import { takeTimes, timeDecoder } from "../support/decoder_times.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

const { values: options } = parseArgs({
  options: {
    layers: { type: "string", default: "qh" },
    size: { type: "string" },
    browser: { type: "boolean", default: false },
    "no-congestion-control": { type: "boolean", default: false },
    "budget-ms": { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const { layers } = options;
const [width, height] = (options.size ?? (layers === "q" ? "1280x720" : "640x360")).split("x").map(Number);
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
const meanMs = (metrics, name, labels) => (1000 * metrics[`${name}_sum${labels}`]) / metrics[`${name}_count${labels}`];
const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

const scene = makeScene({ clip: "d13", width, height });
const serverArgs = ["--log", "warn"];
if (options["no-congestion-control"]) serverArgs.push("--no-congestion-control");
if (options["budget-ms"]) serverArgs.push("--budget", `${options["budget-ms"]}ms`);
const server = await startServer({ args: serverArgs });
const rows = [];

/** What the subscriber's page shows over `SECONDS`, from its first enhanced picture on, and how long its decoder takes. */
async function measureBrowser() {
  const publisher = await publish(server, scene, { layers });
  await sleep(3000);
  const viewer = await subscribe(server, { init: timeDecoder });
  // A machine that is too slow may never get there; then the figures say so.
  await enhanced(viewer.page, 20_000).catch(() => null);
  await sleep(3000);
  await takeTimes(viewer.page);
  const seen = [];
  while (seen.length < SECONDS) {
    await sleep(1000);
    seen.push(await remote(viewer.page));
  }
  const { push_frame, push_message } = await takeTimes(viewer.page);
  const of = (figure) => mean(seen.map((s) => s.stats?.[figure] ?? 0));
  const { lr } = seen.at(-1).stats;
  rows.push({
    figure: `browser at ${seen.at(-1).rung}, low layer ${lr?.width}x${lr?.height}`,
    received_fps: of("receivedFps"),
    shown_fps: of("shownFps"),
    enhanced_fps: of("enhancedFps"),
    enhanced_share: of("enhancedFps") / of("shownFps"),
    seconds_enhanced: seen.filter((s) => s.state === "enhanced").length / seen.length,
    pauses: seen.at(-1).stats.pauses,
    decoded_fps: push_frame.length / SECONDS,
    rebuild_p50_ms: percentile(push_frame, 0.5),
    rebuild_p95_ms: percentile(push_frame, 0.95),
    message_p50_ms: percentile(push_message, 0.5),
    message_p95_ms: percentile(push_message, 0.95),
  });
  await viewer.close();
  await publisher.close();
}

async function measureAll() {
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
  for (const stage of ["decode", "schedule", "infer", "encode"]) {
    rows.push({ figure: `server ${stage}`, mean_ms: meanMs(metrics, "windlass_enhancer_stage_seconds", `{stage="${stage}"}`) });
  }
  rows.push({ figure: "server total", mean_ms: meanMs(metrics, "windlass_enhancer_anchor_seconds", "") });
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
    anchor_apply_ms: stats.anchorApplyMs,
    shown_fps: stats.shownFps,
    enhanced_fps: stats.enhancedFps,
    anchors_per_s: stats.anchorsPerSecond,
    video_kbps: stats.videoKbps,
    anchor_kbps: stats.anchorKbps,
  });
  void second;
  await viewer.close();
  await publisher.close();
}

try {
  await (options.browser ? measureBrowser() : measureAll());
} finally {
  await server.stop();
}
if (options.json) console.log(JSON.stringify({ command: `measure --layers ${layers} --size ${width}x${height}`, rows }));
else for (const { figure, ...values } of rows) {
  console.log(`${figure}: ${Object.entries(values).map(([k, v]) => `${k} ${v?.toFixed?.(v < 1 ? 3 : 1) ?? "-"}`).join(", ")}`);
}
