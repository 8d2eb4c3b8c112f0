/**
 * The playout of rebuilt pictures: a clock and a bounded queue. Times are milliseconds and arguments.
 *
 * The clock maps the media timeline to this machine's. Its offset is one at which nearly all recent pictures were ready
 * in time. It rises at once and sinks slowly, so that jitter does not judder. It never runs ahead of the native player,
 * where the times of that are known.
 */

/** Unwraps 32-bit RTP timestamps (90 kHz) to a continuous timeline. */
export class RtpTimeline {
  private last: number | null = null;
  private unwrapped = 0;

  /** The media time of `rtp`, milliseconds from an arbitrary start. */
  toMs(rtp: number): number {
    if (this.last === null) {
      this.unwrapped = rtp;
      this.last = rtp;
      return this.unwrapped / 90;
    }
    const value = this.unwrapped + ((rtp - this.last) | 0);
    if (value > this.unwrapped) {
      this.unwrapped = value;
      this.last = rtp;
    }
    return value / 90;
  }
}

/** Share of recent pictures that must be ready in time. */
const READY_SHARE = 0.95;
/** Number of recent pictures: 3 s at 30 per second. */
const WINDOW = 90;
/** A jump of the timeline beyond this resets the clock. */
const JUMP_MS = 1000;
/** Sink rate of the clock, milliseconds per picture. */
const SINK_MS = 0.5;

/** Maps media times to the times of showing. */
export class PlayoutClock {
  private offsets: number[] = [];
  private current: number | null = null;
  private native: number | null = null;
  private usual: number | null = null;

  /** `maxDelayMs`: max delay above the quickest picture. */
  constructor(private readonly maxDelayMs = 200) {}

  /** Notes that the picture of `mediaMs` was ready at `now`. */
  ready(mediaMs: number, now: number): void {
    const offset = now - mediaMs;
    if (this.current !== null && Math.abs(offset - this.current) > JUMP_MS + this.maxDelayMs) {
      this.reset();
    }
    this.offsets.push(offset);
    if (this.offsets.length > WINDOW) this.offsets.shift();
    const sorted = [...this.offsets].sort((a, b) => a - b);
    const min = sorted[0] as number;
    const usual = sorted[Math.floor((sorted.length - 1) * READY_SHARE)] as number;
    const max = min + this.maxDelayMs;
    this.usual = Math.min(usual, max);
    const target = Math.min(max, Math.max(usual, Math.min(this.native ?? usual, max)));
    if (this.current === null || target > this.current) this.current = target;
    else this.current = Math.min(max, Math.max(target, this.current - SINK_MS));
  }

  /** Notes that the native player showed the frame of `mediaMs` at `now`. */
  nativeShown(mediaMs: number, now: number): void {
    const offset = now - mediaMs;
    this.native = this.native === null ? offset : this.native + (offset - this.native) * 0.1;
  }

  /** When to show the picture of `mediaMs`. */
  due(mediaMs: number): number {
    return mediaMs + (this.current ?? 0);
  }

  /** The delay above the quickest recent picture. */
  get delayMs(): number {
    return this.current === null ? 0 : this.current - Math.min(...this.offsets);
  }

  /**
   * Usual time from the native player showing a frame to the rebuilt picture being ready; negative where the picture is
   * ready first, null while unknown.
   */
  get lagMs(): number | null {
    return this.usual === null || this.native === null ? null : this.usual - this.native;
  }

  /** Discards all samples. */
  reset(): void {
    this.offsets = [];
    this.current = null;
    this.native = null;
    this.usual = null;
  }
}

interface Waiting<T> {
  mediaMs: number;
  picture: T;
}

/** The pictures that wait to be shown, oldest first. */
export class PlayoutQueue<T> {
  /** Pictures dropped because too many waited, or their time was long past. */
  dropped = 0;
  private waiting: Waiting<T>[] = [];
  private lastShown = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly clock: PlayoutClock,
    private readonly discard: (picture: T) => void,
    private readonly capacity = 8,
    private readonly minGapMs = 8,
    private readonly lateMs = 150,
  ) {}

  /** The number of pictures that wait. */
  get length(): number {
    return this.waiting.length;
  }

  /** Adds the newest picture. */
  push(mediaMs: number, picture: T): void {
    this.waiting.push({ mediaMs, picture });
    if (this.waiting.length > this.capacity) this.dropHead();
  }

  /** Replaces the picture of `mediaMs`; false where that was shown already. */
  replace(mediaMs: number, picture: T): boolean {
    const found = this.waiting.find((w) => w.mediaMs === mediaMs);
    if (found === undefined) return false;
    this.discard(found.picture);
    found.picture = picture;
    return true;
  }

  /** Takes the picture that is due at `now`; null: none is. */
  take(now: number): T | null {
    while (this.waiting.length > 1 && now - this.clock.due((this.waiting[0] as Waiting<T>).mediaMs) > this.lateMs) {
      this.dropHead();
    }
    if (this.waitMs(now) !== 0) return null;
    this.lastShown = now;
    return (this.waiting.shift() as Waiting<T>).picture;
  }

  /** Time until {@link take} returns a picture; null where none waits. */
  waitMs(now: number): number | null {
    const head = this.waiting[0];
    if (head === undefined) return null;
    return Math.max(0, this.clock.due(head.mediaMs) - now, this.lastShown + this.minGapMs - now);
  }

  /** Drops everything. */
  clear(): void {
    for (const { picture } of this.waiting) this.discard(picture);
    this.waiting = [];
  }

  private dropHead(): void {
    const head = this.waiting.shift();
    if (head === undefined) return;
    this.dropped++;
    this.discard(head.picture);
  }
}
