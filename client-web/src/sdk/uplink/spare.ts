/**
 * Computes the bandwidth that an uplink can spare for stills; the layers of the camera come first. Pure; times are
 * milliseconds and arguments.
 *
 * Stills go by a data channel, outside the congestion control of video. The spare bandwidth is a share of the estimate
 * less what the smallest layer may take, and a half layer that leads, once every layer has had enough for a while. It
 * is zero where that is very little, while the machine is too slow, and while the smallest layer lacks frames or bits.
 */
import { USABLE_SHARE } from "./sample.js";

/** A sample of the sender's statistics. */
export interface UplinkSample {
  /** The bandwidth estimate, kbit/s; null while there is none. */
  availableKbps: number | null;
  /** What the smallest layer may take, kbit/s: its cap, or the rest that a leading half layer leaves it. */
  lowCapKbps: number;
  /** What the layers that come before stills may take, kbit/s: the smallest, and a half layer that leads. */
  firstKbps: number;
  /** The target of its encoder, kbit/s; null: it sends nothing. */
  lowTargetKbps: number | null;
  /** The frame rate that the smallest layer should have; null while unknown. */
  wantedFps: number | null;
  /** The frame rate that it has; null while unknown. */
  lowFps: number | null;
  /** What limits the smallest layer (`qualityLimitationReason`). */
  limited: "none" | "cpu" | "bandwidth" | "other";
  /** Whether every active layer has about its cap, or the uplink has what it lacks. */
  served: boolean;
  /** Share of one core that the encoders of the camera take. */
  encodeShare: number;
}

/** The layers whose lack of bits counts: all, for a camera, or the smallest, for a screen. */
export type Guarded = "all" | "smallest";

/** Spare bandwidth below this counts as none, kbit/s. */
const MIN_KBPS = 30;
/** Share of one core for encoding from which on the machine is too slow. */
const SLOW_SHARE = 0.9;
/** Time for which all layers must have had enough, milliseconds. */
const SERVED_MS = 2000;
/** Poor samples in a row that count as a lack of frames or bits. */
const POOR_SAMPLES = 2;

/** The bandwidth beside the layers that come first, kbit/s. */
const roomOf = (availableKbps: number | null, firstKbps: number): number =>
  availableKbps === null ? 0 : availableKbps * USABLE_SHARE - firstKbps;

/** Estimates the bandwidth that an uplink can spare for stills. */
export class SpareUplink {
  private spare = 0;
  private servedSince: number | null = null;
  private poor = 0;

  /** The spare bandwidth, kbit/s. */
  get kbps(): number {
    return this.spare;
  }

  /** Takes a sample, once a second. */
  onSample(now: number, sample: UplinkSample, guarded: Guarded): void {
    const room = roomOf(sample.availableKbps, sample.firstKbps);
    const overloaded = this.isOverloaded(sample, room, guarded);
    this.servedSince = sample.served && !overloaded ? (this.servedSince ?? now) : null;
    const served = this.servedSince !== null && now - this.servedSince >= SERVED_MS;
    this.spare = served ? room : 0;
  }

  /** Takes an estimate between two samples: a path that narrows is full within a fraction of a second. */
  onEstimate(availableKbps: number | null, firstKbps: number): void {
    if (availableKbps === null || roomOf(availableKbps, firstKbps) >= MIN_KBPS) return;
    this.spare = 0;
    this.servedSince = null;
  }

  /** Whether nothing can be spared, whatever bits the layers have. */
  private isOverloaded(sample: UplinkSample, room: number, guarded: Guarded): boolean {
    if (room < MIN_KBPS || sample.limited === "cpu" || sample.encodeShare > SLOW_SHARE) return true;
    const { wantedFps, lowFps, lowTargetKbps, lowCapKbps, served } = sample;
    const fewFrames = wantedFps !== null && lowFps !== null && lowFps < wantedFps * 0.7;
    const fewBits = sample.limited === "bandwidth" && lowTargetKbps !== null && lowTargetKbps < lowCapKbps * 0.6;
    this.poor = fewFrames || fewBits || (guarded === "all" && !served) ? this.poor + 1 : 0;
    return this.poor >= POOR_SAMPLES;
  }
}
