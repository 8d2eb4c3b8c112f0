// Times a track's first frames in a module that nothing has run yet; the same in Node and in a browser's worker.

const FRAMES = 30;
const INTERVAL_MS = 1000 / 30;
const sleep = (ms) => new Promise((r) => setTimeout(r, Math.max(0, ms)));

function framesOf(ivf, count) {
  const view = new DataView(ivf.buffer, ivf.byteOffset, ivf.byteLength);
  const frames = [];
  for (let at = 32; at + 12 <= ivf.length && frames.length < count; ) {
    const size = view.getUint32(at, true);
    frames.push(ivf.subarray(at + 12, at + 12 + size));
    at += 12 + size;
  }
  return frames;
}

/** Runs the module's warm-up in an instance of its own, as the SDK's worker does; ms of each step. */
export async function warmUp(module) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const handle = wasm.decoder_new();
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

/** Decodes and rebuilds the first frames of a stream at 30 frames a second; ms of each call. */
export async function firstFrames(module, ivf) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const handle = wasm.decoder_new();
  const times = [];
  const start = performance.now();
  for (const [i, frame] of framesOf(ivf, FRAMES).entries()) {
    await sleep(start + i * INTERVAL_MS - performance.now());
    const at = wasm.alloc(frame.length);
    new Uint8Array(wasm.memory.buffer, at, frame.length).set(frame);
    const from = performance.now();
    const flags = wasm.push_frame(handle, i * 3000, at, frame.length);
    times.push(performance.now() - from);
    wasm.dealloc(at, frame.length);
    if (flags < 0) throw new Error(`the decoder refuses frame ${i} (${flags})`);
  }
  wasm.decoder_free(handle);
  return times;
}

/** Both: `warm` says whether the warm-up comes first. */
export async function run(module, ivf, warm) {
  const steps = warm ? await warmUp(module) : [];
  const times = await firstFrames(module, ivf);
  return { steps, times };
}
