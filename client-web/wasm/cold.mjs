// Times the first 30 frames of a call in Node, in a module just compiled: cold, and after its warm-up.
//   node cold.mjs MODULE.wasm [--rounds N] [--decode] [--json] FILE.ivf…
// With `--decode` VP9 alone, else as in a call, with rebuilding. Every round is a process of its own; cold and warm take
// turns. `tests/e2e/measure/cold.mjs` does the same in Chromium.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { report } from "./cold-report.mjs";
import { run } from "./cold-timer.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "3" },
    decode: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    // Times one run in this process and prints it: cold, warm.
    one: { type: "string" },
  },
});
const [modulePath, ...files] = positionals;
if (files.length === 0) {
  console.error("usage: node cold.mjs MODULE.wasm [--rounds N] [--decode] [--json] FILE.ivf…");
  process.exit(2);
}
const what = options.decode ? "decode" : "rebuild";
if (options.one) {
  const module = await WebAssembly.compile(readFileSync(modulePath));
  console.log(JSON.stringify(await run(module, readFileSync(files[0]), options.one === "warm", what)));
} else {
  const time = (file, how) =>
    JSON.parse(execFileSync(process.execPath, [import.meta.filename ?? process.argv[1], modulePath, file, "--one", how, ...(options.decode ? ["--decode"] : [])]));
  await report(`node ${what}`, files.map((f) => [path.basename(f, ".ivf"), (how) => time(f, how)]), Number(options.rounds), options.json);
}
