// Checks the WebAssembly module against the native decoder, bit for bit, and times it.
//
//   cargo run -p windlass-hybrid --example twin FILE.ivf > twin.json
//   node client-web/wasm/check.mjs windlass.wasm FILE.ivf twin.json
//
// Exits with 1 and a plain sentence at the first difference.
import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";

const [wasmPath, ivfPath, twinPath] = process.argv.slice(2);
if (!twinPath) {
  console.error("usage: node check.mjs MODULE.wasm FILE.ivf TWIN.json");
  process.exit(2);
}
const fail = (text) => {
  console.error(text);
  process.exit(1);
};

const module = new WebAssembly.Module(readFileSync(wasmPath));
const imports = WebAssembly.Module.imports(module);
if (imports.length) fail(`the module imports ${JSON.stringify(imports)}, but must import nothing`);
const wasm = new WebAssembly.Instance(module, {}).exports;
for (const name of ["alloc", "dealloc", "decoder_new", "decoder_free", "push_frame", "push_message",
  "hr_ptr", "lr_ptr", "hr_width", "hr_height", "lr_width", "lr_height", "stride", "stat", "reset", "warm_up"]) {
  if (typeof wasm[name] !== "function") fail(`the module does not export ${name}`);
}

const withBytes = (bytes, use) => {
  const at = wasm.alloc(bytes.length);
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
  const result = use(at, bytes.length);
  wasm.dealloc(at, bytes.length);
  return result;
};
const md5 = (handle, which) => {
  const hash = createHash("md5");
  const [pointer, w, h] = which === 0
    ? [wasm.hr_ptr, wasm.hr_width(handle), wasm.hr_height(handle)]
    : [wasm.lr_ptr, wasm.lr_width(handle), wasm.lr_height(handle)];
  for (let plane = 0; plane < 3; plane++) {
    const [pw, ph] = plane ? [(w + 1) >> 1, (h + 1) >> 1] : [w, h];
    const stride = wasm.stride(handle, which, plane);
    const from = pointer(handle, plane);
    for (let y = 0; y < ph; y++) {
      hash.update(new Uint8Array(wasm.memory.buffer, from + y * stride, pw));
    }
  }
  return hash.digest("hex");
};

const ivf = readFileSync(ivfPath);
const twin = JSON.parse(readFileSync(twinPath, "utf8"));
const handle = wasm.decoder_new();
const times = { frame: [], message: [] };
let offset = 32;
twin.forEach((expected, i) => {
  const frame = ivf.subarray(offset + 12, offset + 12 + expected.size);
  offset += 12 + expected.size;
  let from = performance.now();
  const flags = withBytes(frame, (at, n) => wasm.push_frame(handle, expected.timestamp, at, n));
  times.frame.push(performance.now() - from);
  if (flags < 0) fail(`frame ${i}: error ${flags}`);
  if (Boolean(flags & 1) !== expected.shown) fail(`frame ${i}: shown differs`);
  from = performance.now();
  for (const hex of expected.messages) {
    const outcome = withBytes(Buffer.from(hex, "hex"), (at, n) => wasm.push_message(handle, at, n));
    if (outcome < 0) fail(`frame ${i}: message refused with ${outcome}`);
  }
  if (expected.messages.length) times.message.push(performance.now() - from);
  if (md5(handle, 1) !== expected.lr) fail(`frame ${i}: the low picture differs`);
  if (md5(handle, 0) !== expected.hr) fail(`frame ${i}: the high picture differs`);
});
if (withBytes(new Uint8Array([1, 2, 3]), (at, n) => wasm.push_frame(handle, 0, at, n)) >= 0) {
  fail("three stray bytes were taken for a frame");
}
if (withBytes(new Uint8Array(30), (at, n) => wasm.push_message(handle, at, n)) !== -2) {
  fail("thirty zeros were taken for an anchor message");
}
const warmedUp = wasm.decoder_new();
let steps = 0;
while (wasm.warm_up(warmedUp, steps++) === 1) if (steps > 1000) fail("the warm-up has no end");
if (wasm.stat(warmedUp, 1) > 0 || !(wasm.stat(warmedUp, 2) > 0)) fail("the warm-up stream is not decoded as it should be");
wasm.decoder_free(warmedUp);
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1]?.toFixed(2) ?? "-";
console.log(
  `${twin.length} frames equal; median push_frame ${median(times.frame)} ms, anchor ${median(times.message)} ms; ` +
    `anchors applied ${wasm.stat(handle, 3)}, late ${wasm.stat(handle, 4)}, early ${wasm.stat(handle, 6)}`,
);
wasm.decoder_free(handle);
