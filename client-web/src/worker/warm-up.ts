/**
 * Makes the browser compile and optimise the decoder before a track's first frame has to wait for it.
 *
 * WebAssembly functions are compiled when they are first called, and optimised when they have been called often. The
 * module brings a short stream for that purpose; it is decoded here in slices, one a task, while no frame has come.
 * From the first frame on nothing more is done: at worst that frame waits for the slice under way, whose
 * compilation it would otherwise need itself. Compiled code belongs to the module, so one warm-up serves all tracks.
 */

/** What is warmed up: a decoder of its own. */
export interface WarmUpDecoder {
  /** Decodes one piece of the stream, counted from 0; true when another follows. */
  warmUp(step: number): boolean;
  free(): void;
}

/** See the module's head. `later` runs a slice in a task of its own, after whatever has arrived meanwhile. */
export class WarmUp {
  private decoder: WarmUpDecoder | null = null;
  private step = 0;
  private framesCome = false;

  constructor(private readonly later: (slice: () => void) => void) {}

  /** Begins, unless frames come already. What fails here is left to the track's own decoder to report. */
  start(make: () => WarmUpDecoder): void {
    if (this.framesCome || this.decoder !== null) return;
    try {
      this.decoder = make();
    } catch {
      return;
    }
    this.later(() => this.slice());
  }

  /** A frame has come: the track's decoder needs the thread from now on. */
  frame(): void {
    this.framesCome = true;
    this.end();
  }

  private slice(): void {
    if (this.decoder === null) return;
    try {
      if (this.decoder.warmUp(this.step++)) this.later(() => this.slice());
      else this.end();
    } catch {
      this.decoder = null; // a trap: its memory is not to be trusted
    }
  }

  private end(): void {
    this.decoder?.free();
    this.decoder = null;
  }
}
