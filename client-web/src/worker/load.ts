/**
 * Decides how much of enhancing a track this machine can bear: all of it, less thorough searches, smaller pictures, or for a while nothing.
 *
 * Too slow: over the last second decoding took more than `share` of the time between frames and frames pile up; or
 * it did so over three seconds, piling up or not; or more than `queueLimit` frames waited for a second. A single
 * hiccup that is made up for does no harm, nor does the first while, in which the browser still compiles the decoder's
 * functions as they are called. Then the next step down is taken: first searches become less thorough, then pictures smaller. The last
 * step is taken back where the machine has had time to spare for a minute, or twice as long after each time that it was too slow again.
 * Where the last step down is too slow as well enhancement pauses, 4 s at first and twice as long each time up to 64 s; a minute
 * without trouble forgets the past. Times are milliseconds and arguments.
 */
import type { Effort } from "./wasm.js";

const FIRST_PAUSE_MS = 4000;
const LONGEST_PAUSE_MS = 64_000;
const FORGIVEN_MS = 60_000;
const SPAN_MS = 1000;
const LONG_SPAN_MS = 3000;
/** Each step down takes about half of the time away: with less than this share there is time for more. */
const SPARE = 0.35;
const FIRST_EASE_MS = 60_000;
const LONGEST_EASE_MS = 16 * FIRST_EASE_MS;
/** What is done, from all of it to the least. Pictures of no more than `maxScale` times the size of the low ones are made. */
const STEPS: readonly { effort: Effort; maxScale: number }[] = [
  { effort: "full", maxScale: Number.POSITIVE_INFINITY },
  { effort: "little", maxScale: Number.POSITIVE_INFINITY },
  { effort: "little", maxScale: 3 },
  { effort: "little", maxScale: 2 },
];
/** Frames that must wait for a second of slowness to count. */
const PILE = 3;

/** See the module's head. */
export class LoadGuard {
  private busy: { at: number; decodeMs: number; intervalMs: number }[] = [];
  private queueLongSince: number | null = null;
  private startedAt: number | null = null;
  private pausedUntil: number | null = null;
  private pauseMs = FIRST_PAUSE_MS;
  private resumedAt: number | null = null;
  private step = 0;
  /** When the last step down or up was taken. */
  private steppedAt = 0;
  private easeMs = FIRST_EASE_MS;

  constructor(
    private readonly share = 0.85,
    private readonly queueLimit = 8,
    private readonly warmUpMs = 1500,
  ) {}

  /** Times that enhancement was paused. */
  pauses = 0;

  /** How thoroughly to search. */
  get effort(): Effort {
    return STEPS[this.step]?.effort ?? "full";
  }

  /** By how much pictures may be enlarged. */
  get maxScale(): number {
    return STEPS[this.step]?.maxScale ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Notes one decoded frame, the media time since the one before it, how many still wait, and by how much its picture was enlarged;
   * true: pause now. Changes `effort` and `maxScale`.
   */
  frame(now: number, decodeMs: number, intervalMs: number, queued: number, scale: number): boolean {
    this.startedAt ??= now;
    if (now - this.startedAt < this.warmUpMs) return false;
    this.busy.push({ at: now, decodeMs, intervalMs });
    while ((this.busy[0]?.at ?? now) < now - LONG_SPAN_MS) this.busy.shift();
    if (queued <= this.queueLimit) this.queueLongSince = null;
    else this.queueLongSince ??= now;
    const queueTooLong = this.queueLongSince !== null && now - this.queueLongSince >= SPAN_MS;
    const piling = queued >= PILE && this.slow(now, SPAN_MS);
    if (queueTooLong || piling || this.slow(now, LONG_SPAN_MS)) return this.ease(now, scale) ? false : this.pause(now);
    if (this.step > 0 && now - this.steppedAt >= this.easeMs && !this.slow(now, LONG_SPAN_MS, SPARE)) {
      this.easeMs = Math.min(this.easeMs * 2, LONGEST_EASE_MS);
      this.step--;
      this.steppedAt = now;
    }
    return false;
  }

  /** Takes the next step down that makes a difference; false where there is none. */
  private ease(now: number, scale: number): boolean {
    const { effort } = this;
    const next = STEPS.findIndex((s, i) => i > this.step && (s.effort !== effort || s.maxScale < scale));
    if (next < 0) return false;
    this.step = next;
    this.steppedAt = now;
    this.forget();
    return true;
  }

  /** What was seen before says nothing of what comes. */
  private forget(): void {
    this.busy = [];
    this.queueLongSince = null;
  }

  /** Whether decoding took too much of the last `spanMs`. */
  private slow(now: number, spanMs: number, share = this.share): boolean {
    const recent = this.busy.filter((b) => b.at >= now - spanMs);
    const spent = recent.reduce((sum, b) => sum + b.decodeMs, 0);
    const given = recent.reduce((sum, b) => sum + b.intervalMs, 0);
    const seen = now - (recent[0]?.at ?? now);
    return seen >= spanMs * 0.8 && recent.length >= 5 && spent > share * given;
  }

  /** Starts a pause, also for other faults; always true. */
  pause(now: number): true {
    const calm = this.resumedAt !== null && now - this.resumedAt > FORGIVEN_MS;
    if (calm) this.pauseMs = FIRST_PAUSE_MS;
    this.pausedUntil = now + this.pauseMs;
    this.pauseMs = Math.min(this.pauseMs * 2, LONGEST_PAUSE_MS);
    this.pauses++;
    this.forget();
    this.startedAt = null;
    return true;
  }

  /** True while paused. */
  paused(now: number): boolean {
    if (this.pausedUntil === null) return false;
    if (now < this.pausedUntil) return true;
    this.pausedUntil = null;
    this.resumedAt = now;
    return false;
  }
}
