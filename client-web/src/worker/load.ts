/**
 * Adapts the enhancement of a track to the speed of this machine: full, with less thorough searches, with smaller
 * pictures, or paused. Times are milliseconds and arguments.
 *
 * The machine is too slow if decoding took more than `share` of the time between frames over one second while frames
 * queue up, or over three seconds; or if more than `queueLimit` frames waited for a second. A single hiccup is no
 * matter, nor are the first `warmUpMs`, while the browser compiles the decoder's functions.
 *
 * A machine that is too slow takes a step down: first searches become less thorough, then pictures smaller. After a
 * minute with time to spare, twice as long after each relapse, the last step is taken back. Below the last step
 * enhancement pauses: for 4 s, doubled each time up to 64 s. A minute without trouble resets that.
 */
import type { Effort } from "./wasm.js";

/** First pause. */
const FIRST_PAUSE_MS = 4000;
/** Longest pause. */
const MAX_PAUSE_MS = 64_000;
/** Time without trouble after which the next pause is a first one. */
const FORGIVEN_MS = 60_000;
/** Window of slowness with a queue. */
const SPAN_MS = 1000;
/** Window of slowness without a queue. */
const LONG_SPAN_MS = 3000;
/** Share of the time below which a step can be taken back: each step down saves about half of the time. */
const SPARE_SHARE = 0.35;
/** First time to spare before a step is taken back. */
const FIRST_RECOVERY_MS = 60_000;
/** Longest such time. */
const MAX_RECOVERY_MS = 16 * FIRST_RECOVERY_MS;
/** The steps, from full enhancement down. `maxScale`: max HR over LR size. */
const STEPS: readonly { effort: Effort; maxScale: number }[] = [
  { effort: "full", maxScale: Number.POSITIVE_INFINITY },
  { effort: "little", maxScale: Number.POSITIVE_INFINITY },
  { effort: "little", maxScale: 3 },
  { effort: "little", maxScale: 2 },
];
/** Frames in the queue from which on one second of slowness counts. */
const MIN_QUEUE = 3;

/** Lowers the enhancement of a track while this machine is too slow, and raises it again. */
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
  private recoveryMs = FIRST_RECOVERY_MS;

  constructor(
    private readonly share = 0.85,
    private readonly queueLimit = 8,
    private readonly warmUpMs = 1500,
  ) {}

  /** Number of pauses so far. */
  pauses = 0;

  /** How thoroughly the decoder should search. */
  get effort(): Effort {
    return STEPS[this.step]?.effort ?? "full";
  }

  /** Max HR over LR size. */
  get maxScale(): number {
    return STEPS[this.step]?.maxScale ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Takes a decoded frame: its decode time, the media time since the frame before, the queue length, and the scale of
   * its picture. Returns whether to pause now. May change {@link effort} and {@link maxScale}.
   */
  frame(now: number, decodeMs: number, intervalMs: number, queued: number, scale: number): boolean {
    this.startedAt ??= now;
    if (now - this.startedAt < this.warmUpMs) return false;
    this.busy.push({ at: now, decodeMs, intervalMs });
    while ((this.busy[0]?.at ?? now) < now - LONG_SPAN_MS) this.busy.shift();
    if (queued <= this.queueLimit) this.queueLongSince = null;
    else this.queueLongSince ??= now;
    const queueTooLong = this.queueLongSince !== null && now - this.queueLongSince >= SPAN_MS;
    const queueing = queued >= MIN_QUEUE && this.slow(now, SPAN_MS);
    if (queueTooLong || queueing || this.slow(now, LONG_SPAN_MS))
      return this.stepDown(now, scale) ? false : this.pause(now);
    if (this.step > 0 && now - this.steppedAt >= this.recoveryMs && !this.slow(now, LONG_SPAN_MS, SPARE_SHARE)) {
      this.recoveryMs = Math.min(this.recoveryMs * 2, MAX_RECOVERY_MS);
      this.step--;
      this.steppedAt = now;
    }
    return false;
  }

  /** Takes the next step down that makes a difference; false where there is none. */
  private stepDown(now: number, scale: number): boolean {
    const { effort } = this;
    const next = STEPS.findIndex((s, i) => i > this.step && (s.effort !== effort || s.maxScale < scale));
    if (next < 0) return false;
    this.step = next;
    this.steppedAt = now;
    this.discardSamples();
    return true;
  }

  /** Discards the samples: they do not hold for another step. */
  private discardSamples(): void {
    this.busy = [];
    this.queueLongSince = null;
  }

  /** Whether decoding took more than `share` of the last `spanMs`. */
  private slow(now: number, spanMs: number, share = this.share): boolean {
    const recent = this.busy.filter((b) => b.at >= now - spanMs);
    const spent = recent.reduce((sum, b) => sum + b.decodeMs, 0);
    const given = recent.reduce((sum, b) => sum + b.intervalMs, 0);
    const seen = now - (recent[0]?.at ?? now);
    return seen >= spanMs * 0.8 && recent.length >= 5 && spent > share * given;
  }

  /** Pauses, also after other failures. Returns true. */
  pause(now: number): true {
    const calm = this.resumedAt !== null && now - this.resumedAt > FORGIVEN_MS;
    if (calm) this.pauseMs = FIRST_PAUSE_MS;
    this.pausedUntil = now + this.pauseMs;
    this.pauseMs = Math.min(this.pauseMs * 2, MAX_PAUSE_MS);
    this.pauses++;
    this.discardSamples();
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
