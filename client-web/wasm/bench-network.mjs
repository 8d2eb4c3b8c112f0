// Times the frame networks of the WebAssembly module in Node, in ms per frame: decoding and rebuilding without a network,
// and what each network adds.
//   node bench-network.mjs MODULE.wasm [--scales 2,4] [--passes N] FILE.ivf…
// Every frame's time is its least over the passes, so that a busy machine hardly matters. A frame of which parts have not
// changed takes less; `full` is the mean of the tenth of frames that take the most.
import { readFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { framesOf } from "./vp9-timer.mjs";

const NETWORKS = ["none", "xxs", "xs"];

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { scales: { type: "string", default: "2,4" }, passes: { type: "string", default: "5" } },
});
const [modulePath, ...files] = positionals;
if (files.length === 0) {
  console.error("usage: node bench-network.mjs MODULE.wasm [--scales 2,4] [--passes N] FILE.ivf…");
  process.exit(2);
}
const module = await WebAssembly.compile(readFileSync(modulePath));

/** The least time of each frame, by network; and the size of the low picture. */
function times(ivf, scale, passes) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const chunks = framesOf(ivf).map((bytes) => {
    const at = wasm.alloc(bytes.length);
    new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
    return [at, bytes.length];
  });
  const best = NETWORKS.map(() => []);
  let size = "";
  // One pass more, in which the engine optimises the code.
  for (let pass = 0; pass <= passes; pass++) {
    for (const [tier, list] of best.entries()) {
      const decoder = wasm.decoder_new(scale);
      if (wasm.set_network(decoder, tier) < 0) throw new Error(`the module has no network ${NETWORKS[tier]}`);
      chunks.forEach(([at, length], i) => {
        const from = performance.now();
        if (wasm.push_frame(decoder, i * 3000, at, length) < 0) throw new Error("the decoder refuses a frame");
        const ms = performance.now() - from;
        if (pass > 0) list[i] = Math.min(list[i] ?? Number.POSITIVE_INFINITY, ms);
      });
      size = `${wasm.lr_width(decoder)}x${wasm.lr_height(decoder)}`;
      wasm.decoder_free(decoder);
    }
  }
  return { best, size };
}

const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
const most = (list) => mean([...list].sort((a, b) => b - a).slice(0, Math.ceil(list.length / 10)));

console.log("| stream | picture | scale | without, ms | xxs adds | xs adds | xs adds, full |\n| --- | --- | --- | --- | --- | --- | --- |");
for (const file of files) {
  for (const scale of options.scales.split(",").map(Number)) {
    const { best, size } = times(readFileSync(file), scale, Number(options.passes));
    const added = (tier) => best[tier].map((ms, i) => ms - best[0][i]);
    const figures = [mean(best[0]), mean(added(1)), mean(added(2)), most(added(2))].map((ms) => ms.toFixed(1));
    console.log(`| ${path.basename(file, ".ivf")} | ${size} | ${scale} | ${figures.join(" | ")} |`);
  }
}
