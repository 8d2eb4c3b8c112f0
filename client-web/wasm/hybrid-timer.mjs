// Times the WebAssembly module on a call: frames at a scale, and anchors that come late; the same in Node and in a
// browser's worker.
import { fromHex } from "./twin-check.mjs";
import { framesOf } from "./vp9-timer.mjs";

/**
 * Milliseconds of each frame, every one its least over the passes after one more pass in which the engine optimises the
 * code: `decode` VP9 alone, `plain` with rebuilding before any anchor, `full` with anchors. What an anchor's messages
 * cost counts for the frame that they come after, and stands in `anchor` too. `clocks` tell milliseconds, each at least
 * those that the decoder ran; what counts is the least.
 */
export function timeCall(module, ivf, { scale, frames: call }, passes, clocks = [() => performance.now()]) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const put = (bytes) => {
    const at = wasm.alloc(bytes.length);
    new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
    return [at, bytes.length];
  };
  const chunks = framesOf(ivf).map(put);
  const messages = call.map((frame) => frame.messages.map((hex) => put(fromHex(hex))));
  const bytes = messages.map((list) => list.reduce((sum, [, size]) => sum + size, 0));
  const best = { decode: [], plain: [], full: [], anchor: [] };
  const timed = (run) => {
    const from = clocks.map((now) => now());
    if (run() < 0) throw new Error("the decoder refuses a frame or a message");
    return Math.min(...clocks.map((now, i) => now() - from[i]));
  };
  for (let pass = 0; pass <= passes; pass++) {
    const [vp9, plain, full] = [wasm.vp9_new(), wasm.decoder_new(scale), wasm.decoder_new(scale)];
    const keep = (list, i, ms) => {
      if (pass > 0) list[i] = Math.min(list[i] ?? Number.POSITIVE_INFINITY, ms);
    };
    // One after the other, as in a call: each has the caches to itself.
    chunks.forEach(([at, size], i) => keep(best.decode, i, timed(() => wasm.vp9_push(vp9, at, size))));
    chunks.forEach(([at, size], i) => keep(best.plain, i, timed(() => wasm.push_frame(plain, call[i].timestamp, at, size))));
    chunks.forEach(([at, size], i) => {
      const frame = timed(() => wasm.push_frame(full, call[i].timestamp, at, size));
      const anchor = messages[i].reduce((sum, [m, n]) => sum + timed(() => wasm.push_message(full, m, n)), 0);
      keep(best.full, i, frame + anchor);
      if (messages[i].length > 0) keep(best.anchor, i, anchor);
    });
    const anchors = bytes.filter((n) => n > 0).length;
    if (wasm.stat(full, 3) !== anchors) throw new Error(`${wasm.stat(full, 3)} of ${anchors} anchors were applied`);
    wasm.vp9_free(vp9);
    wasm.decoder_free(plain);
    wasm.decoder_free(full);
  }
  const sizes = bytes.filter((n) => n > 0);
  return { ...best, anchor: best.anchor.filter((ms) => ms !== undefined), anchorBytes: sizes.reduce((a, b) => a + b, 0) / Math.max(1, sizes.length) };
}

const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))];

/** A row of the table: percentiles over the frames after the first, which is the key frame of the start. */
export function row(target, stream, { scale }, times) {
  const of = (list, q) => quantile(list.slice(1), q);
  return {
    target,
    stream,
    scale,
    frames: times.full.length,
    decode_ms: of(times.decode, 0.5),
    decode_p99_ms: of(times.decode, 0.99),
    plain_ms: of(times.plain, 0.5),
    plain_p99_ms: of(times.plain, 0.99),
    frame_ms: of(times.full, 0.5),
    p99_ms: of(times.full, 0.99),
    longest_ms: Math.max(...times.full.slice(1)),
    key_ms: times.full[0],
    anchor_ms: quantile(times.anchor, 0.5),
    anchors: times.anchor.length,
    anchor_bytes: Math.round(times.anchorBytes),
  };
}

/** Prints rows, for people or as JSON. */
export function print(command, rows, json) {
  if (json) return console.log(JSON.stringify({ command, rows }));
  for (const { target, stream, scale, frames, anchors, anchor_bytes, ...ms } of rows) {
    const figures = Object.entries(ms).map(([key, value]) => `${key} ${value?.toFixed(2) ?? "-"}`);
    console.log(`${target} ${stream}, scale ${scale} (${frames} frames, ${anchors} anchors of ${anchor_bytes} bytes): ${figures.join(", ")}`);
  }
}
