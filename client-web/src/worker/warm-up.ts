/**
 * Makes the browser compile and optimise the decoder before the first frame of a track.
 *
 * WebAssembly functions are compiled at their first call, and optimised after many. The module contains a short stream
 * for that purpose, which is decoded here step by step. Compiled code belongs to the module, so one warm-up serves all
 * workers.
 */

import { NETWORKS } from "./network-choice.js";

/** The part of the decoder that is used. */
export interface WarmUpDecoder {
  /** Decodes one step of the stream, counted from 0; true where another follows. */
  warmUp(step: number): boolean;
}

/** Max steps, more than any stream has. */
const MAX_STEPS = 1000;

/** Warms a decoder up; returns the number of steps. Failures are reported by the decoders of the tracks. */
export function warmUp(make: () => WarmUpDecoder): number {
  let step = 0;
  try {
    const decoder = make();
    while (step < MAX_STEPS && decoder.warmUp(step++));
  } catch {
    // The decoders of the tracks fail in the same way, and report it.
  }
  return step;
}

/** The part of the decoder that is measured. */
export interface MeasuredDecoder extends WarmUpDecoder {
  /** Frames decoded so far. */
  readonly frames: number;
  hr(): { width: number; height: number } | null;
}

/** Duration of the measurement, milliseconds. */
const MEASURE_MS = 600;

/**
 * Pixels of rebuilt pictures per second, without a network: the stream is decoded again and again once the browser has
 * compiled everything. 0 where nothing can be decoded.
 */
export function measureSpeed(make: () => MeasuredDecoder, now = () => performance.now()): number {
  // The stream is decoded once without a network, and once with each.
  const steps = warmUp(make) / NETWORKS.length;
  try {
    const decoder = make();
    let [pixels, step] = [0, 0];
    const from = now();
    while (now() - from < MEASURE_MS) {
      const before = decoder.frames;
      decoder.warmUp(step % steps);
      const { width, height } = decoder.hr() ?? { width: 0, height: 0 };
      pixels += (decoder.frames - before) * width * height;
      step++;
    }
    return (pixels * 1000) / (now() - from);
  } catch {
    return 0;
  }
}
