/** Statistics of the anchors of one track. Times are milliseconds and arguments. */
import type { AnchorSource, WorkerStats } from "./messages.js";
import type { AnchorOutcome, Decay } from "./wasm.js";
import { RateWindow, SampleWindow } from "./windows.js";

/** What the statistics of a track say of anchors. */
export type AnchorStats = Pick<
  WorkerStats,
  | "anchorsPerSecond"
  | "anchorKbps"
  | "detailFrom"
  | "anchorsUsed"
  | "anchorsLate"
  | "anchorsLost"
  | "anchorsDuplicate"
  | "anchorsFormerEpoch"
  | "anchorP50Ms"
  | "anchorP95Ms"
  | "anchorApplyMs"
  | "decay"
  | "decayFrames"
>;

/** Counts the anchors of a track by what became of them, and measures their delay and what they are worth. */
export class AnchorCounts {
  private source: AnchorSource | null = null;
  private used = 0;
  private late = 0;
  private lost = 0;
  private duplicate = 0;
  private formerEpoch = 0;
  private readonly bits = new RateWindow();
  private readonly rate = new RateWindow(2000);
  private readonly applying = new SampleWindow(50, 10_000);
  private readonly delays = new SampleWindow(200, 10_000);
  /** Loss of quality per frame after an anchor. */
  private readonly decays = new SampleWindow(50, 10_000);
  private readonly decayFrames = new SampleWindow(50, 10_000);
  /** The sums of the decoder at the last sample. */
  private lastDecay: Decay = { lost: 0, frames: 0 };

  /** Counts from zero: statistics are of one track. */
  reset(): void {
    this.source = null;
    this.used = 0;
    this.late = 0;
    this.lost = 0;
    this.duplicate = 0;
    this.formerEpoch = 0;
  }

  /** Counts the bytes of a message. */
  received(now: number, bytes: number): void {
    this.bits.add(now, bytes * 8);
  }

  /** Counts an anchor that cannot be used. */
  unusable(): void {
    this.lost++;
  }

  /** Counts what the decoder made of an anchor. */
  taken(outcome: AnchorOutcome, source: AnchorSource): void {
    if (outcome === "applied" || outcome === "applied-late" || outcome === "early") this.source = source;
    if (outcome === "applied-late") this.late++;
    if (outcome === "duplicate") this.duplicate++;
    if (outcome === "former-epoch") this.formerEpoch++;
    if (outcome === "lost") this.lost++;
  }

  /** Counts an anchor that was applied, `delayMs` after its frame arrived. */
  applied(now: number, delayMs: number): void {
    this.used++;
    this.rate.add(now);
    this.delays.add(now, delayMs);
  }

  /** Notes how long the decoder took to apply an anchor. */
  tookMs(now: number, ms: number): void {
    this.applying.add(now, ms);
  }

  /** Takes the decoder's sums of what quality was lost after anchors. */
  decayed(now: number, decay: Decay): void {
    // A new decoder begins at zero.
    const before = decay.frames < this.lastDecay.frames ? { lost: 0, frames: 0 } : this.lastDecay;
    const frames = decay.frames - before.frames;
    this.lastDecay = decay;
    if (frames === 0) return;
    this.decays.add(now, (decay.lost - before.lost) / frames);
    this.decayFrames.add(now, frames);
  }

  stats(now: number): AnchorStats {
    return {
      anchorsPerSecond: this.rate.perSecond(now),
      anchorKbps: this.bits.perSecond(now) / 1000,
      detailFrom: this.source,
      anchorsUsed: this.used,
      anchorsLate: this.late,
      anchorsLost: this.lost,
      anchorsDuplicate: this.duplicate,
      anchorsFormerEpoch: this.formerEpoch,
      anchorP50Ms: this.delays.percentile(now, 0.5),
      anchorP95Ms: this.delays.percentile(now, 0.95),
      anchorApplyMs: this.applying.mean(now),
      decay: this.decays.mean(now),
      decayFrames: this.decayFrames.mean(now),
    };
  }
}
