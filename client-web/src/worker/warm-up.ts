/**
 * Makes the browser compile and optimise the decoder before the first frame of a track.
 *
 * WebAssembly functions are compiled at their first call, and optimised after many. The module contains a short stream
 * for that purpose, which is decoded here step by step. Compiled code belongs to the module, so one warm-up serves all
 * workers.
 */

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
