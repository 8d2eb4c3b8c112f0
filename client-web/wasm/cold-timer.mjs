// Times a track's first frames in a module that nothing has run yet; the same in Node and in a browser's worker.

import { framesOf } from "./vp9-timer.mjs";

/** HR size over LR size, as in a call. */
const SCALE = 2;
const FRAMES = 30;
const INTERVAL_MS = 1000 / 30;
const sleep = (ms) => new Promise((r) => setTimeout(r, Math.max(0, ms)));

/** Runs the module's warm-up in an instance of its own, as the SDK's worker does; ms of each step. */
export async function warmUp(module) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const handle = wasm.decoder_new(SCALE);
  const steps = [];
  for (let more = 1, step = 0; more === 1; step++) {
    const from = performance.now();
    more = wasm.warm_up(handle, step);
    steps.push(performance.now() - from);
    await sleep(0);
  }
  wasm.decoder_free(handle);
  return steps;
}

/**
 * Takes the first frames of a stream at 30 frames a second; ms of each call in `times`, and of the first frame once
 * more after the others in `again`. `what` is `rebuild`, as in a call, or `decode`, VP9 alone.
 */
export async function firstFrames(module, ivf, what) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const [make, free] = what === "decode" ? [wasm.vp9_new, wasm.vp9_free] : [wasm.decoder_new, wasm.decoder_free];
  const handle = make(SCALE);
  const times = [];
  const start = performance.now();
  const [first, ...others] = framesOf(ivf).slice(0, FRAMES);
  for (const [i, frame] of [first, ...others, first].entries()) {
    await sleep(start + i * INTERVAL_MS - performance.now());
    const at = wasm.alloc(frame.length);
    new Uint8Array(wasm.memory.buffer, at, frame.length).set(frame);
    const from = performance.now();
    const flags =
      what === "decode" ? wasm.vp9_push(handle, at, frame.length) : wasm.push_frame(handle, i * 3000, at, frame.length);
    times.push(performance.now() - from);
    wasm.dealloc(at, frame.length);
    if (flags < 0) throw new Error(`the decoder refuses frame ${i} (${flags})`);
  }
  free(handle);
  return { again: times.pop(), times };
}

/** Both: `warm` says whether the warm-up comes first. */
export async function run(module, ivf, warm, what) {
  const steps = warm ? await warmUp(module) : [];
  return { steps, ...(await firstFrames(module, ivf, what)) };
}
