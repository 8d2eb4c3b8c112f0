// Replays a case of the `twin` example in the WebAssembly module and compares every picture with the native decoder's,
// bit for bit; the same in Node and in a browser's worker. What differs is thrown as a plain sentence.
import { md5 } from "./md5.mjs";

const EXPORTS = ["alloc", "dealloc", "decoder_new", "decoder_free", "set_network", "push_frame", "push_picture", "push_message", "refresh", "hr_ptr", "lr_ptr",
  "hr_width", "hr_height", "lr_width", "lr_height", "stride", "kept_ptr", "stat", "reset", "warm_up",
  "stills_new", "stills_free", "stills_follow", "stills_reset", "stills_camera", "stills_make", "stills_payload"];
/** As in the example: bytes of a still, and between how many frames one is made. */
const STILL_BYTES = 3000;
const STILL_EVERY = 5;

const fail = (sentence) => {
  throw new Error(sentence);
};

/** The bytes that hex digits stand for. */
export const fromHex = (hex) => Uint8Array.from({ length: hex.length / 2 }, (_, i) => parseInt(hex.slice(2 * i, 2 * i + 2), 16));

function withBytes(wasm, bytes, use) {
  const at = wasm.alloc(bytes.length);
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
  const result = use(at, bytes.length);
  wasm.dealloc(at, bytes.length);
  return result;
}

function pictureMd5(wasm, handle, which) {
  const [pointer, w, h] =
    which === 0
      ? [wasm.hr_ptr, wasm.hr_width(handle), wasm.hr_height(handle)]
      : [wasm.lr_ptr, wasm.lr_width(handle), wasm.lr_height(handle)];
  const rows = [];
  for (let plane = 0; plane < 3; plane++) {
    const [pw, ph] = plane ? [(w + 1) >> 1, (h + 1) >> 1] : [w, h];
    const [stride, from] = [wasm.stride(handle, which, plane), pointer(handle, plane)];
    for (let y = 0; y < ph; y++) rows.push(new Uint8Array(wasm.memory.buffer, from + y * stride, pw));
  }
  return md5(rows);
}

/** The MD5 of the still of a frame, of the camera and the tiles that the example has. */
function stillMd5(wasm, handle, { timestamp, scale, low, frame }) {
  const [width, height] = low.map((side) => Math.floor((side * scale * 3) / 2));
  // Making room for it may move the memory.
  const place = wasm.stills_camera(handle, width, height);
  const [halfWidth, halfHeight] = [(width + 1) >> 1, (height + 1) >> 1];
  const camera = new Uint8Array(wasm.memory.buffer, place, width * height + 2 * halfWidth * halfHeight);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) camera[y * width + x] = ((((x >> 3) ^ (y >> 3)) + frame) % 8) * 20 + 40;
  for (const n of [2, 3]) {
    const at = width * height + (n - 2) * halfWidth * halfHeight;
    for (let i = 0; i < halfWidth * halfHeight; i++) {
      const [x, y] = [i % halfWidth, Math.floor(i / halfWidth)];
      camera[at + i] = ((((x >> 2) ^ (y >> 2)) + n * frame) % 8) * 10 + 90;
    }
  }
  const [columns, rows] = low.map((side) => Math.ceil(side / 64));
  const tiles = new Uint8Array(Math.ceil((columns * rows) / 8));
  for (let i = 0; i < columns * rows; i++) {
    const chosen = frame % (2 * STILL_EVERY) !== 0 || ((i % columns) + Math.floor(i / columns)) % 2 === 0;
    if (chosen) tiles[i >> 3] |= 1 << (i & 7);
  }
  const length = withBytes(wasm, tiles, (at, n) => wasm.stills_make(handle, timestamp, scale, at, n, STILL_BYTES));
  if (length <= 0) fail(`frame ${frame}: no still, but ${length}`);
  return md5([new Uint8Array(wasm.memory.buffer, wasm.stills_payload(handle), length)]);
}

/** The module's interface, its warm-up, and how it takes rubbish. */
export function checkModule(module) {
  const imports = WebAssembly.Module.imports(module);
  if (imports.length) fail(`the module imports ${JSON.stringify(imports)}, but must import nothing`);
  const wasm = new WebAssembly.Instance(module, {}).exports;
  for (const name of EXPORTS) if (typeof wasm[name] !== "function") fail(`the module does not export ${name}`);
  if (wasm.decoder_new(1) !== 0 || wasm.decoder_new(5) !== 0) fail("a decoder of an unknown scale was made");
  const handle = wasm.decoder_new(4);
  if (withBytes(wasm, new Uint8Array([1, 2, 3]), (at, n) => wasm.push_frame(handle, 0, at, n)) >= 0) {
    fail("three stray bytes were taken for a frame");
  }
  if (withBytes(wasm, new Uint8Array(30), (at, n) => wasm.push_message(handle, at, n)) !== -2) {
    fail("thirty zeros were taken for an anchor message");
  }
  wasm.decoder_free(handle);
  const warmedUp = wasm.decoder_new(2);
  let steps = 0;
  while (wasm.warm_up(warmedUp, steps++) === 1) if (steps > 1000) fail("the warm-up has no end");
  if (wasm.stat(warmedUp, 1) > 0 || !(wasm.stat(warmedUp, 2) > 0)) fail("the warm-up stream is not decoded as it should be");
  wasm.decoder_free(warmedUp);
}

/** By cell whether no network makes it better, 1 or 0; empty where the module does not know. */
function cellsOf(wasm, handle, count) {
  const pointer = wasm.kept_ptr(handle) >>> 0;
  return pointer === 0 ? "" : [...new Uint8Array(wasm.memory.buffer, pointer, count)].join("");
}

/** What the decoder makes of a frame: bytes of VP9, or the picture of another decoder (`data`, `width`, `height`). */
function push(wasm, handle, timestamp, frame) {
  if (frame instanceof Uint8Array) return withBytes(wasm, frame, (at, n) => wasm.push_frame(handle, timestamp, at, n));
  return withBytes(wasm, frame.data, (at, n) => wasm.push_picture(handle, timestamp, at, n, frame.width, frame.height));
}

/** One case over its frames; how many pictures were equal, and what came of the anchors. */
export function checkCase(module, chunks, { scale, frames }) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const handle = wasm.decoder_new(scale);
  const publisher = wasm.stills_new();
  const isVp9 = chunks[0] instanceof Uint8Array;
  let [stills, mixed] = [0, 0];
  if (chunks.length !== frames.length) fail(`the stream has ${chunks.length} frames, the case ${frames.length}`);
  frames.forEach((expected, i) => {
    const where = `scale ${scale}, frame ${i}`;
    if (wasm.set_network(handle, expected.network) !== 0) fail(`${where}: there is no network ${expected.network}`);
    const flags = push(wasm, handle, expected.timestamp, chunks[i]);
    if (flags < 0) fail(`${where}: error ${flags}`);
    if (Boolean(flags & 1) !== expected.shown) fail(`${where}: shown differs`);
    if (isVp9 && withBytes(wasm, chunks[i], (at, n) => wasm.stills_follow(publisher, expected.timestamp, at, n)) !== 0) fail(`${where}: the publisher's decoder differs`);
    if (expected.still !== null) {
      const low = [wasm.lr_width(handle), wasm.lr_height(handle)];
      const made = stillMd5(wasm, publisher, { timestamp: expected.timestamp, scale, low, frame: i });
      if (made !== expected.still) fail(`${where}: the still differs`);
      stills++;
    }
    expected.messages.forEach((hex, k) => {
      const outcome = withBytes(wasm, fromHex(hex), (at, n) => wasm.push_message(handle, at, n));
      if (outcome !== expected.outcomes[k]) fail(`${where}: message ${k} came to ${outcome}, not ${expected.outcomes[k]}`);
    });
    // What anchors have changed is shown with the next frame, or when asked for.
    const stale = wasm.stat(handle, 9);
    if (wasm.refresh(handle) !== stale || wasm.stat(handle, 9) !== 0) fail(`${where}: the picture is not refreshed`);
    if (cellsOf(wasm, handle, expected.kept.length) !== expected.kept) fail(`${where}: the kept cells differ`);
    if (expected.kept.includes("1") && expected.kept.includes("0")) mixed++;
    if (pictureMd5(wasm, handle, 1) !== expected.lr) fail(`${where}: the low picture differs`);
    if (pictureMd5(wasm, handle, 0) !== expected.hr) fail(`${where}: the high picture differs`);
  });
  const [applied, late, early, duplicate, former] = [3, 4, 6, 13, 14].map((index) => wasm.stat(handle, index));
  wasm.decoder_free(handle);
  wasm.stills_free(publisher);
  if (isVp9 && stills === 0) fail("no still was compared");
  if (mixed === 0) fail("no picture with some kept cells was compared");
  return { scale, frames: frames.length, applied, late, early, duplicate, former };
}
