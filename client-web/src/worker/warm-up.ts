/**
 * Makes the browser compile and optimise the decoder before a track's first frame has to wait for it.
 *
 * WebAssembly functions are compiled when they are first called, and optimised when they have been called often. The
 * module brings a short stream for that purpose, which is decoded here piece by piece. Compiled code belongs to the
 * module, so one warm-up, in whatever worker, serves all tracks.
 */

/** What is warmed up: a decoder of its own. */
export interface WarmUpDecoder {
  /** Decodes one piece of the stream, counted from 0; true when another follows. */
  warmUp(step: number): boolean;
}

/** No stream has so many pieces. */
const MAX_STEPS = 1000;

/** Warms `decoder` up; the number of pieces decoded. What fails here is left to the tracks' own decoders to report. */
export function warmUp(make: () => WarmUpDecoder): number {
  let step = 0;
  try {
    const decoder = make();
    while (step < MAX_STEPS && decoder.warmUp(step++));
  } catch {
    // the tracks' decoders will fail in the same way, and say so
  }
  return step;
}
