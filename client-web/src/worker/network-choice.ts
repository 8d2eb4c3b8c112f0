/**
 * Chooses the network that runs on every frame of a track, by the time that this machine takes. Times are milliseconds
 * and arguments.
 *
 * A track begins without a network. Where frames take little of the time between them, the cheapest network is tried; by
 * what it took, the next is estimated, and tried where it fits. A network that takes too long is dropped at once, and is
 * tried again after 15 seconds, twice as long after each relapse. Another size of pictures begins anew.
 */

/** The networks, by cost: their work for each low pixel, in thousands of multiplications, by scale. */
const COSTS: readonly { name: NetworkTier; cost: number }[] = [
  { name: "none", cost: 0 },
  { name: "xxs", cost: 1.9 },
  { name: "xs", cost: 9.2 },
];

/** A network that runs on every frame, or none. */
export type NetworkTier = "none" | "xxs" | "xs";

/** All of them, the cheapest first; the decoder knows them by their number here. */
export const NETWORKS: readonly NetworkTier[] = COSTS.map(({ name }) => name);

/** Frames that a step up rests on. */
const WINDOW = 24;
/** Frames that dropping a network rests on. */
const SHORT_WINDOW = 8;
/** Share of the time between frames that work may take after a step up, by estimate. */
const MAX_SHARE = 0.55;
/** Share beyond which a network is dropped. */
const TOO_LONG_SHARE = 0.75;
/** Queued frames beyond which a network is dropped, if work takes more than {@link MAX_SHARE} too. */
const MAX_QUEUED = 3;
/** First time until a dropped network is tried again. */
const FIRST_WAIT_MS = 15_000;
/** Longest such time. */
const MAX_WAIT_MS = 32 * FIRST_WAIT_MS;

/** See the module's head. */
export class NetworkChoice {
  private index = 0;
  /** Work of the last frames with the network of now, and the time between them. */
  private samples: { workMs: number; intervalMs: number }[] = [];
  /** Median work of a frame without a network, and with each that was tried; of the present size of pictures. */
  private readonly work = new Map<number, number>();
  private size = "";
  /** When a network beyond that of now may be tried. */
  private notBefore = Number.NEGATIVE_INFINITY;
  private waitMs = FIRST_WAIT_MS;

  /** `max`: the largest network that may be chosen. */
  constructor(private max: NetworkTier) {}

  /** Sets the largest network that may be chosen. */
  limit(max: NetworkTier): void {
    this.max = max;
    const index = NETWORKS.indexOf(max);
    if (this.index > index) this.set(index);
  }

  /** The network to run on the next frame. */
  get network(): NetworkTier {
    return COSTS[this.index]?.name ?? "none";
  }

  /**
   * Takes a frame: the time of all work on it, the media time since the frame before, the queue length, and the size of
   * its picture, as text. May change {@link network}.
   */
  frame(now: number, workMs: number, intervalMs: number, queued: number, size: string): void {
    if (size !== this.size) {
      this.size = size;
      this.index = 0;
      this.samples = [];
      this.work.clear();
      return;
    }
    if (intervalMs <= 0) return;
    this.samples.push({ workMs, intervalMs });
    if (this.samples.length > WINDOW) this.samples.shift();
    const share = this.share();
    const enough = this.samples.length >= SHORT_WINDOW;
    if (this.index > 0 && enough && (share > TOO_LONG_SHARE || (queued > MAX_QUEUED && share > MAX_SHARE))) {
      this.drop(now);
      return;
    }
    if (this.samples.length < WINDOW) return;
    this.work.set(this.index, median(this.samples.map((s) => s.workMs)));
    if (now >= this.notBefore && queued <= 1 && this.nextFits()) this.set(this.index + 1);
  }

  /** Drops the network: the machine is too slow, as others have found. */
  drop(now: number): void {
    if (this.index === 0) return;
    this.set(0);
    this.notBefore = now + this.waitMs;
    this.waitMs = Math.min(this.waitMs * 2, MAX_WAIT_MS);
  }

  private set(index: number): void {
    this.index = index;
    this.samples = [];
  }

  /** Whether the next network would leave time, by what was measured. */
  private nextFits(): boolean {
    const next = COSTS[this.index + 1];
    if (next === undefined || this.index >= NETWORKS.indexOf(this.max)) return false;
    const interval = median(this.samples.map((s) => s.intervalMs));
    const before = this.work.get(0) ?? 0;
    const now = this.work.get(this.index) ?? 0;
    const cost = COSTS[this.index]?.cost ?? 0;
    // Without a measurement yet, the cheapest is taken to need as much as all else.
    const estimate = cost === 0 ? 2 * now : before + (Math.max(now - before, 0) * next.cost) / cost;
    return estimate <= MAX_SHARE * interval;
  }

  /** The share of the time between the last frames that work took. */
  private share(): number {
    const last = this.samples.slice(-SHORT_WINDOW);
    const spent = last.reduce((sum, s) => sum + s.workMs, 0);
    const given = last.reduce((sum, s) => sum + s.intervalMs, 0);
    return given > 0 ? spent / given : 0;
  }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}
