// Times the WebAssembly module's VP9 decoder on a stream, frame by frame; the same in Node and in a browser's worker.

/** Frames of an IVF file. */
export function framesOf(ivf) {
  const view = new DataView(ivf.buffer, ivf.byteOffset, ivf.byteLength);
  const frames = [];
  for (let at = 32; at + 12 <= ivf.length; ) {
    const size = view.getUint32(at, true);
    frames.push(ivf.subarray(at + 12, at + 12 + size));
    at += 12 + size;
  }
  return frames;
}

/** The first three seconds of a call. */
const COLD_FRAMES = 90;
const INTERVAL_MS = 1000 / 30;

/** A module with the frames of one stream in its memory. */
export class Vp9Timer {
  #wasm;
  #chunks;
  #clocks;

  /** `clocks` tell milliseconds, each at least those that the decoder ran; what counts is the least. */
  constructor(module, ivf, clocks = [() => performance.now()]) {
    this.#clocks = clocks;
    this.#wasm = new WebAssembly.Instance(module, {}).exports;
    this.#chunks = framesOf(ivf).map((bytes) => {
      const at = this.#wasm.alloc(bytes.length);
      new Uint8Array(this.#wasm.memory.buffer, at, bytes.length).set(bytes);
      return [at, bytes.length];
    });
  }

  get frames() {
    return this.#chunks.length;
  }

  /** A new decoder; each call of the function given back decodes the next frame and tells its time in ms. */
  decoder() {
    const handle = this.#wasm.vp9_new();
    let next = 0;
    const push = () => {
      const [at, size] = this.#chunks[next];
      const from = this.#clocks.map((now) => now());
      const pictures = this.#wasm.vp9_push(handle, at, size);
      const ms = Math.min(...this.#clocks.map((now, i) => now() - from[i]));
      if (pictures < 0) throw new Error(`the decoder refuses frame ${next} (${pictures})`);
      next++;
      return ms;
    };
    return { push, free: () => this.#wasm.vp9_free(handle) };
  }

  /** Times of the first frames, which come as in a call, 30 per second, while the engine still optimises the code. */
  async cold() {
    const { push, free } = this.decoder();
    const times = [];
    const start = performance.now();
    while (times.length < Math.min(COLD_FRAMES, this.frames)) {
      await new Promise((r) => setTimeout(r, Math.max(0, start + times.length * INTERVAL_MS - performance.now())));
      times.push(push());
    }
    free();
    return times;
  }

  /** The least time of every frame over `passes`, after one more pass in which the engine optimises the code. */
  steady(passes) {
    const best = new Array(this.frames).fill(Infinity);
    for (let pass = 0; pass <= passes; pass++) {
      const { push, free } = this.decoder();
      for (let i = 0; i < this.frames; i++) {
        const ms = push();
        if (pass > 0) best[i] = Math.min(best[i], ms);
      }
      free();
    }
    return best;
  }
}
