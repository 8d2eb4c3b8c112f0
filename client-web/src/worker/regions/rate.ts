/**
 * Finds the bitrate at which an encoder makes a key frame of nearly so many bytes. Pure.
 *
 * The size of Chromium's first key frame at a constant bitrate grows with about the 0.72th power of it
 * (`docs/detail-stream.md`).
 */

const POWER = 0.72;
const LEAST = 10_000;
const MOST = 20_000_000;
/** A frame that fills this share of its bytes is good enough; aimed at is this one. */
const FULL = 0.75;
const AIM = 0.9;
/** Bits per second for each byte of the first frame of all. */
const FIRST = 32;

/** One search; begins where the last one ended. */
export class RateSearch {
  private bitrate: number;
  private tooMuch = Number.POSITIVE_INFINITY;

  /** `last`: a bitrate, and the bytes that came of it. */
  constructor(
    private readonly bytes: number,
    last: { bitrate: number; bytes: number } | null,
  ) {
    const { bitrate, bytes: made } = last ?? { bitrate: bytes * FIRST, bytes };
    this.bitrate = this.towards(bitrate, made);
  }

  /** What to try. */
  get next(): number {
    return this.bitrate;
  }

  /** Takes what came of it; whether that is good enough to end. */
  done(made: number): boolean {
    if (made <= this.bytes && made >= this.bytes * FULL) return true;
    if (made > this.bytes && this.bitrate <= LEAST) return true;
    if (made > this.bytes) this.tooMuch = Math.min(this.tooMuch, this.bitrate);
    const before = this.bitrate;
    this.bitrate = Math.min(this.towards(before, made), this.tooMuch * 0.95);
    return Math.abs(this.bitrate - before) < before * 0.01;
  }

  private towards(bitrate: number, made: number): number {
    const wanted = bitrate * ((this.bytes * AIM) / Math.max(1, made)) ** (1 / POWER);
    return Math.round(Math.min(MOST, Math.max(LEAST, wanted)));
  }
}
