/**
 * Tells what an uplink has to spare for stills beside a camera's layers, which come first. Pure; times are milliseconds
 * and arguments.
 *
 * Stills go by a data channel, which knows nothing of the congestion control of video: what layers lack is theirs. There is
 * to spare a share of what is estimated, less the bits of the smallest layer, and only once every layer has had enough for a
 * while. There is nothing while that is next to none, while the machine is too slow, and while the smallest layer loses
 * frames or bits.
 */
import { USABLE } from "./sample.js";

/** What one look at the sender's statistics says. */
export interface UplinkSample {
  /** Estimate of what can be sent; null while there is none. */
  availableKbps: number | null;
  /** What the smallest layer may use, and what its encoder is given at the moment; null: it sends nothing. */
  lowCapKbps: number;
  lowTargetKbps: number | null;
  /** Frames per second that the smallest layer should send, and those that it does; null while not known. */
  wantedFps: number | null;
  lowFps: number | null;
  /** Why the smallest layer is worse than it might be. */
  limited: "none" | "cpu" | "bandwidth" | "other";
  /** Whether every layer that is sent is given about all that it may use, or the uplink has what it lacks. */
  served: boolean;
  /** Share of one core that all encoders of the camera take. */
  encodeShare: number;
}

/** Whose lack of bits counts like frames that are lost: any layer's, as of a camera, or the smallest one's, as of a screen. */
export type Guarded = "all" | "smallest";

/** Less room is none. */
const LEAST_KBPS = 30;
const SLOW_SHARE = 0.9;
/** There is something to spare when layers have had enough for so long. */
const SERVED_MS = 2000;
/** Samples in a row that make a lack of frames or bits one. */
const PATIENCE = 2;

const roomOf = (availableKbps: number | null, lowCapKbps: number): number =>
  availableKbps === null ? 0 : availableKbps * USABLE - lowCapKbps;

/** See the module's head. */
export class SpareUplink {
  private spare = 0;
  private servedSince: number | null = null;
  private poor = 0;

  /** What may be sent beside the layers, by the last look. */
  get kbps(): number {
    return this.spare;
  }

  /** Looks at the uplink, once a second. */
  look(now: number, sample: UplinkSample, guarded: Guarded): void {
    const room = roomOf(sample.availableKbps, sample.lowCapKbps);
    const faulty = this.faulty(sample, room, guarded);
    this.servedSince = sample.served && !faulty ? (this.servedSince ?? now) : null;
    const served = this.servedSince !== null && now - this.servedSince >= SERVED_MS;
    this.spare = served ? room : 0;
  }

  /** Looks at the estimate alone, between two looks: a path that gets narrow is full within a fraction of a second. */
  glance(availableKbps: number | null, lowCapKbps: number): void {
    if (availableKbps === null || roomOf(availableKbps, lowCapKbps) >= LEAST_KBPS) return;
    this.spare = 0;
    this.servedSince = null;
  }

  /** Whether something is wrong at the moment, whatever the layers are given. */
  private faulty(sample: UplinkSample, room: number, guarded: Guarded): boolean {
    if (room < LEAST_KBPS || sample.limited === "cpu" || sample.encodeShare > SLOW_SHARE) return true;
    const { wantedFps, lowFps, lowTargetKbps, lowCapKbps, served } = sample;
    const fewFrames = wantedFps !== null && lowFps !== null && lowFps < wantedFps * 0.7;
    const fewBits = sample.limited === "bandwidth" && lowTargetKbps !== null && lowTargetKbps < lowCapKbps * 0.6;
    this.poor = fewFrames || fewBits || (guarded === "all" && !served) ? this.poor + 1 : 0;
    return this.poor >= PATIENCE;
  }
}
