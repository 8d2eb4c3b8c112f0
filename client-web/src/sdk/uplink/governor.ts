/**
 * Decides how much of the detail stream that the server wishes is sent: the low layers come first. Pure; times are
 * milliseconds and arguments.
 *
 * Once a second it sees the uplink, and its estimate more often. The room for detail is a share of what the congestion control estimates, less
 * the bits of the smallest layer. It lowers the bitrate to the room, and pauses at once when the room is below what Chromium gives every
 * sender (30 kbit/s, `docs/detail-stream.md`), when the machine is too slow, when the smallest layer loses frames or bits, or,
 * of a camera, when any layer lacks bits: a face gains more from them (`docs/benchmarks.md`).
 * It raises and resumes only after a while without trouble; after each relapse that while is twice as long.
 */
import type { DetailWish } from "../protocol.js";
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
  /** RIDs of the layers that frames came of since the last look. */
  flowing: readonly string[];
  /** Whether every layer that is sent is given about all that it may use, or the uplink has what it lacks. */
  served: boolean;
  /** Share of one core that all encoders of the camera take. */
  encodeShare: number;
}

/**
 * Whose lack of bits pauses detail: any layer's; or the smallest one's alone, as of a screen, where stills show more than
 * the larger layers do.
 */
export type Guarded = "all" | "smallest";

/** Why detail is not sent as wished. */
export type Restraint = "uplink" | "processor" | "low-layer";

/** What to send. `detail` null: pause. */
export interface Verdict {
  detail: DetailWish | null;
  restraint: Restraint | null;
}

/** Least that a sender gets, whatever it is set to. */
const LEAST_KBPS = 30;
/** Most that is ever sent. */
const MOST_KBPS = 150;
const MOST_FPS = 2;
/** Resuming needs so much more room than going on. */
const RESUME = 1.2;
const HOLD_MS = 5000;
const LONGEST_HOLD_MS = 60_000;
/** A pause so soon after resuming is a relapse. */
const RELAPSE_MS = 20_000;
const SLOW_SHARE = 0.9;
/** There is something to spare when layers have had enough for so long. */
const SERVED_MS = 2000;
/** Samples in a row that make a lack of frames or bits one. */
const PATIENCE = 2;

const roomOf = (availableKbps: number | null, lowCapKbps: number): number =>
  availableKbps === null ? 0 : availableKbps * USABLE - lowCapKbps;

/** See the module's head. */
export class DetailGovernor {
  private wish: DetailWish | null = null;
  private sentKbps: number | null = null;
  private holdMs = HOLD_MS;
  private calmSince: number | null = null;
  private resumedAt: number | null = null;
  private poor = 0;
  private restraint: Restraint | null = null;
  private spare = 0;
  private servedSince: number | null = null;

  /** What may be sent beside the low layers and the detail stream, by the last look. */
  get spareKbps(): number {
    return this.spare;
  }

  /** Takes the server's wish; null: no detail. */
  setWish(wish: DetailWish | null): void {
    if (wish === null) {
      this.sentKbps = null;
      this.restraint = null;
      this.calmSince = null;
    }
    this.wish = wish;
  }

  /** Looks at the uplink and decides. */
  look(now: number, sample: UplinkSample, guarded: Guarded): Verdict {
    const room = roomOf(sample.availableKbps, sample.lowCapKbps);
    const fault = this.fault(sample, room, guarded);
    const verdict = this.judge(now, room, fault);
    // Regions go by a channel that knows nothing of the congestion control of video: what layers lack is theirs.
    this.servedSince = sample.served && fault === null ? (this.servedSince ?? now) : null;
    const served = this.servedSince !== null && now - this.servedSince >= SERVED_MS;
    this.spare = served ? Math.max(0, room - (verdict.detail?.kbps ?? 0)) : 0;
    return verdict;
  }

  /**
   * Looks at the estimate alone, between two looks: a path that gets narrow is full within a fraction of a second. Null:
   * nothing changes.
   */
  glance(now: number, availableKbps: number | null, lowCapKbps: number): Verdict | null {
    if (availableKbps === null || roomOf(availableKbps, lowCapKbps) >= LEAST_KBPS) return null;
    // What is asked for by and by has nothing to go by either.
    this.spare = 0;
    this.servedSince = null;
    if (this.sentKbps === null) return null;
    this.calmSince = null;
    this.stop(now);
    this.restraint = "uplink";
    return { detail: null, restraint: "uplink" };
  }

  private judge(now: number, room: number, fault: Restraint | null): Verdict {
    const { wish } = this;
    if (wish === null || !(wish.kbps > 0) || !(wish.fps > 0)) return { detail: null, restraint: null };
    const wanted = Math.min(MOST_KBPS, Math.max(LEAST_KBPS, wish.kbps));
    if (fault !== null) {
      this.calmSince = null;
      if (this.sentKbps !== null) this.stop(now);
      this.restraint = fault;
      return { detail: null, restraint: fault };
    }
    if (this.sentKbps !== null && this.sentKbps > room) {
      this.sentKbps = room; // still enough, or it were a fault
      this.calmSince = null;
      this.restraint = "uplink";
    } else if (this.sentKbps !== null && this.sentKbps > wanted) {
      this.sentKbps = wanted;
    } else if (this.sentKbps === null || this.sentKbps < wanted) {
      this.rise(now, room, wanted);
    }
    if (this.resumedAt !== null && now - this.resumedAt > LONGEST_HOLD_MS) this.holdMs = HOLD_MS;
    if (this.sentKbps === null) return { detail: null, restraint: this.restraint };
    const detail = { kbps: Math.floor(this.sentKbps), fps: Math.min(MOST_FPS, wish.fps) };
    return { detail, restraint: this.restraint };
  }

  /** Begins or goes up when there has been room for a while; at the very start at once. */
  private rise(now: number, room: number, wanted: number): void {
    const fresh = this.sentKbps === null && this.restraint === null;
    if (!fresh && room < LEAST_KBPS * RESUME) {
      this.calmSince = null;
      return;
    }
    this.calmSince ??= now;
    if (!fresh && now - this.calmSince < this.holdMs) return;
    if (this.sentKbps === null && !fresh) this.resumedAt = now;
    this.sentKbps = Math.min(wanted, fresh ? room : room / RESUME);
    if (this.sentKbps < LEAST_KBPS) this.sentKbps = LEAST_KBPS;
    this.restraint = this.sentKbps < wanted ? "uplink" : null;
    this.calmSince = null;
  }

  private stop(now: number): void {
    this.sentKbps = null;
    const relapse = this.resumedAt !== null && now - this.resumedAt < RELAPSE_MS;
    this.holdMs = relapse ? Math.min(LONGEST_HOLD_MS, this.holdMs * 2) : HOLD_MS;
  }

  /** What forbids any detail at the moment. */
  private fault(sample: UplinkSample, room: number, guarded: Guarded): Restraint | null {
    if (room < LEAST_KBPS) return "uplink";
    if (sample.limited === "cpu" || sample.encodeShare > SLOW_SHARE) return "processor";
    const { wantedFps, lowFps, lowTargetKbps, lowCapKbps } = sample;
    const fewFrames = wantedFps !== null && lowFps !== null && lowFps < wantedFps * 0.7;
    const fewBits = sample.limited === "bandwidth" && lowTargetKbps !== null && lowTargetKbps < lowCapKbps * 0.6;
    const lacking = guarded === "all" && !sample.served;
    this.poor = fewFrames || fewBits || lacking ? this.poor + 1 : 0;
    // What lacks bits before there is any detail has none to give.
    return this.poor >= PATIENCE || (lacking && this.sentKbps === null) ? "low-layer" : null;
  }
}
