// Figures of the VP9 decoder in Chromium for lab/notes/in-the-browser.md: steady state and the first three seconds of a call.
//   node measure/bench-vp9.mjs [--passes N] [--rounds N] [--module FILE] [--json] FILE.ivf…
// Every round is a browser of its own that has never seen the module. Every frame counts with the least time it took:
// over the rounds for the first frames, over the rounds and passes for the others. A stall is a first frame of more than
// 40 ms (`cold.mjs` tells what the module's warm-up makes of it). Browsers tell wall-clock time only: on a busy machine
// take more rounds, or the median. The module is client-web/dist/windlass.wasm unless named (`cargo xtask wasm` builds
// it); `windlass-lab bench vp9` makes streams and keeps them (`--keep DIR`).
import { existsSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { openPage } from "../support/browser.mjs";
import { serveFiles } from "../support/files.mjs";

const STALL_MS = 40;
const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    passes: { type: "string", default: "2" },
    rounds: { type: "string", default: "3" },
    module: { type: "string", default: path.join(import.meta.dirname, "../../../client-web/dist/windlass.wasm") },
    json: { type: "boolean", default: false },
  },
});
const fail = (sentence) => {
  console.error(sentence);
  process.exit(2);
};
if (files.length === 0) fail("Name one or more IVF files of VP9; `windlass-lab bench vp9 --keep DIR` makes some.");
for (const file of files) if (!existsSync(file)) fail(`${file} is not there.`);
if (!existsSync(options.module)) fail(`${options.module} is not there: build it with \`cargo xtask wasm\`.`);

const here = (file) => path.join(import.meta.dirname, file);
const served = {
  "/": here("bench/page.html"),
  "/worker.mjs": here("bench/worker.mjs"),
  "/vp9-timer.mjs": here("../../../client-web/wasm/vp9-timer.mjs"),
  "/windlass.wasm": options.module,
  ...Object.fromEntries(files.map((file, i) => [`/stream/${i}`, file])),
};

const least = (best, times) => times.map((ms, i) => Math.min(best?.[i] ?? Infinity, ms));
const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.floor(list.length * q)];

const server = await serveFiles(served);
const found = files.map(() => ({}));
try {
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [i, times] of found.entries()) {
      console.error(`round ${round + 1}: ${files[i]}`);
      const browser = await openPage();
      try {
        await browser.page.goto(server.url);
        const passes = Number(options.passes);
        const { cold, steady } = await browser.page.evaluate(([url, n]) => window.timeStream(url, n), [`/stream/${i}`, passes]);
        times.cold = least(times.cold, cold);
        times.steady = least(times.steady, steady);
      } finally {
        await browser.close();
      }
    }
  }
} finally {
  server.close();
}
const rows = found.map(({ cold, steady }, i) => ({
  target: "chromium",
  stream: path.basename(files[i], ".ivf"),
  variant: "decode",
  frames: steady.length,
  frame_ms: mean(steady),
  median_ms: quantile(steady, 0.5),
  p99_ms: quantile(steady, 0.99),
  first_ms: cold[0],
  stall_ms: Math.max(...cold.slice(1)),
  first_second_ms: mean(cold.slice(1, 30)),
  stalls: cold.filter((ms) => ms > STALL_MS).length,
}));
if (options.json) {
  console.log(JSON.stringify({ command: "bench-vp9", rounds: Number(options.rounds), passes: Number(options.passes), rows }));
} else {
  for (const { stream, frames, stalls, ...row } of rows) {
    const ms = (key) => row[key].toFixed(2);
    console.log(
      `${stream}: ${frames} frames, steady ${ms("frame_ms")} ms (median ${ms("median_ms")}, p99 ${ms("p99_ms")}); just loaded: first frame ${ms("first_ms")} ms, ` +
        `then at most ${ms("stall_ms")} ms (mean of a second ${ms("first_second_ms")}); ${stalls} above ${STALL_MS} ms`,
    );
  }
}
