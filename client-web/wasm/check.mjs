// Checks the WebAssembly module against the native decoder, bit for bit: every case of the `twin` example.
//
//   cargo run -p windlass-hybrid --example twin FILE.ivf > twin.json
//   node client-web/wasm/check.mjs windlass.wasm FILE.ivf twin.json
//
// Exits with 1 and a plain sentence at the first difference. `tests/e2e/soak/twin.test.mjs` does the same in Chromium.
import { readFileSync } from "node:fs";
import { checkCase, checkModule } from "./twin-check.mjs";
import { framesOf } from "./vp9-timer.mjs";

const [wasmPath, ivfPath, twinPath] = process.argv.slice(2);
if (!twinPath) {
  console.error("usage: node check.mjs MODULE.wasm FILE.ivf TWIN.json");
  process.exit(2);
}
try {
  const module = new WebAssembly.Module(readFileSync(wasmPath));
  checkModule(module);
  const stream = framesOf(readFileSync(ivfPath));
  for (const one of JSON.parse(readFileSync(twinPath, "utf8"))) {
    const { scale, frames, ...anchors } = checkCase(module, stream, one);
    const counts = Object.entries(anchors).map(([what, count]) => `${what} ${count}`);
    console.log(`scale ${scale}: ${frames} frames equal; anchors ${counts.join(", ")}`);
  }
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
