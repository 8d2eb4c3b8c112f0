// Times the WebAssembly module's hybrid decoder in Node, in ms per frame: VP9 alone, with rebuilding, and with an anchor
// once in 30 frames, each four frames late, whose cost counts for the frame that it comes after.
//   node bench.mjs MODULE.wasm [--scales 2,3] [--passes N] [--json] FILE.ivf…
// Every frame's time is its least over the passes, and the process's own time where that is less, so that a busy machine
// hardly matters. Anchors are made by the `twin`
// example (`twin.mjs` says where from). `tests/e2e/measure/bench-hybrid.mjs` does the same in Chromium.
import { readFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { print, row, timeCall } from "./hybrid-timer.mjs";
import { twin } from "./twin.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scales: { type: "string", default: "2,3" },
    passes: { type: "string", default: "5" },
    json: { type: "boolean", default: false },
  },
});
const [modulePath, ...files] = positionals;
if (files.length === 0) {
  console.error("usage: node bench.mjs MODULE.wasm [--scales 2,3] [--passes N] [--json] FILE.ivf…");
  process.exit(2);
}
const module = await WebAssembly.compile(readFileSync(modulePath));
const clocks = [
  () => performance.now(),
  () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
];
const rows = files.flatMap((file) =>
  options.scales.split(",").map((scale) => {
    const [call] = twin([file, "--call", scale]);
    return row("node", path.basename(file, ".ivf"), call, timeCall(module, readFileSync(file), call, Number(options.passes), clocks));
  }),
);
print("bench-wasm", rows, options.json);
