// Times the WebAssembly module on a stream, stage by stage, in ms per frame.
//
//   cargo run --release -p windlass-hybrid --example twin FILE.ivf > twin.json
//   node client-web/wasm/bench.mjs windlass.wasm FILE.ivf twin.json [PASSES]
//
// Every frame's time is its least over the passes, so that a busy machine hardly matters.
import { readFileSync } from "node:fs";

const [wasmPath, ivfPath, twinPath, passes = "5"] = process.argv.slice(2);
const wasm = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(wasmPath)), {}).exports;
const twin = JSON.parse(readFileSync(twinPath, "utf8"));
const ivf = readFileSync(ivfPath);
const frames = [];
for (let at = 32; at < ivf.length; ) {
  const size = ivf.readUInt32LE(at);
  frames.push(ivf.subarray(at + 12, at + 12 + size));
  at += 12 + size;
}
const put = (bytes) => {
  const at = wasm.alloc(bytes.length);
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
  return [at, bytes.length];
};
const chunks = frames.map(put);
const messages = twin.map((t) => t.messages.map((hex) => put(Buffer.from(hex, "hex"))));
const best = { vp9: [], plain: [], detail: [], message: [] };
const late = [];
const time = (list, i, run) => {
  const from = performance.now();
  run();
  list[i] = Math.min(list[i] ?? Infinity, performance.now() - from);
};
for (let pass = 0; pass < Number(passes); pass++) {
  const [vp9, plain, full] = [wasm.vp9_new(), wasm.decoder_new(), wasm.decoder_new()];
  chunks.forEach(([at, size], i) => {
    const timestamp = twin[i].timestamp;
    time(best.vp9, i, () => wasm.vp9_push(vp9, at, size));
    time(best.plain, i, () => wasm.push_frame(plain, timestamp, at, size));
    time(best.detail, i, () => wasm.push_frame(full, timestamp, at, size));
    if (messages[i].length) {
      const applied = wasm.stat(full, 3);
      time(best.message, i, () => messages[i].forEach(([m, n]) => wasm.push_message(full, m, n)));
      late[i] = wasm.stat(full, 3) > applied ? wasm.stat(full, 8) : undefined;
    }
  });
  wasm.vp9_free(vp9);
  wasm.decoder_free(plain);
  wasm.decoder_free(full);
}
// The first frames are the key frame and those without detail.
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const steady = (list) => mean(list.slice(8));
const decode = steady(best.vp9);
const row = {
  stream: ivfPath.split("/").pop(),
  hr: `${2 * ivf.readUInt16LE(12)}x${2 * ivf.readUInt16LE(14)}`,
  decode_ms: decode,
  upsample_ms: steady(best.plain) - decode,
  reconstruct_ms: steady(best.detail) - decode,
};
for (const n of new Set(late.filter((n) => n !== undefined))) {
  row[`anchor_${n}_late_ms`] = mean(best.message.filter((_, i) => late[i] === n));
}
console.log(JSON.stringify(row, (_, v) => (typeof v === "number" ? Number(v.toFixed(2)) : v)));
