/**
 * Chooses the network that runs on every frame of a track, by the time that this machine takes. Times are milliseconds
 * and arguments.
 *
 * A track begins without a network. Where frames take little of the time between them, the cheapest network is tried;
 * by what it took, the next is estimated, and tried where it fits. One that takes too long gives way to the next
 * cheaper within eight frames. It may come back after 15 seconds, twice as long after each relapse, half as long after
 * each calm minute. Another size of pictures begins from scratch.
 */

/** A network that runs on every frame, or none. */
export type NetworkTier = "none" | "xxs" | "xs";

/**
 * Why none runs: it may not (`off`), the machine has no time (`slow`), there is none for the size of the pictures
 * (`size`), or one may run soon (`trying`).
 */
export type NetworkAbsence = "off" | "slow" | "size" | "trying";

/** All of them, the cheapest first; the decoder knows them by their number here. */
export const NETWORKS: readonly NetworkTier[] = ["none", "xxs", "xs"];

/** Multiplications for each low sample, in thousands, of the networks that there are, by scale. */
const COSTS: Readonly<Record<number, Partial<Record<NetworkTier, number>>>> = {
  2: { none: 0, xxs: 1.8, xs: 8.2 },
  3: { none: 0, xs: 9.6 },
  4: { none: 0, xxs: 3.5, xs: 11.7 },
};

/** Frames that a step up rests on. */
const WINDOW = 24;
/** Frames that a step down rests on. */
export const SHORT_WINDOW = 8;
/** Share of the time between frames that work may take after a step up, by estimate. */
export const MAX_SHARE = 0.55;
/** Share beyond which a network is too slow. */
export const TOO_LONG_SHARE = 0.75;
/** Queued frames beyond which a network is too slow, if work takes more than {@link MAX_SHARE} too. */
const MAX_QUEUED = 3;
/** Time per thousand multiplications for each low sample, over that of all other work, until a network was measured. */
const UNMEASURED_COST = 0.5;
/** First time until a network that was too slow is tried again. */
const FIRST_WAIT_MS = 15_000;
/** Longest such time. */
const MAX_WAIT_MS = 32 * FIRST_WAIT_MS;
/** Time without trouble after which the next wait is half as long. */
const CALM_MS = 60_000;

/** The largest network that there is for a scale, up to `max`. */
export function largestNetwork(scale: number, max: NetworkTier): NetworkTier {
  const costs = COSTS[scale] ?? {};
  return NETWORKS.slice(0, NETWORKS.indexOf(max) + 1).findLast((tier) => costs[tier] !== undefined) ?? "none";
}

/** What is known of a network at the present size of pictures. */
interface Known {
  /** Work of a frame with it; null before it has run. */
  workMs: number | null;
  /** When it may be tried. */
  notBefore: number;
  waitMs: number;
}

/** Chooses the network that a track runs on every frame, by how long frames take here. */
export class NetworkChoice {
  private tier: NetworkTier = "none";
  /** Work of the last frames with the network of now, and the time between them. */
  private samples: { workMs: number; intervalMs: number }[] = [];
  private readonly known = new Map<NetworkTier, Known>();
  private size = "";
  private scale = 0;
  /** Whether the machine has no time for any, as {@link rest} says. */
  private resting = false;
  /** Since when nothing was too slow, or a wait was halved. */
  private calmSince = 0;

  /** `max`: the largest network that may be chosen. `random`: 0 to 1, so that tracks do not try at the same time. */
  constructor(
    private max: NetworkTier,
    private readonly random: () => number = Math.random,
  ) {}

  /** The network to run on the next frame. */
  get network(): NetworkTier {
    return this.tier;
  }

  /** Why none runs; null while one does. */
  absence(now: number): NetworkAbsence | null {
    if (this.tier !== "none") return null;
    if (this.max === "none") return "off";
    const next = this.next();
    if (next === null) return this.scale === 0 ? "trying" : "size";
    const tooSlow = this.samples.length >= WINDOW && !this.fits(next);
    return this.resting || now < this.of(next).notBefore || tooSlow ? "slow" : "trying";
  }

  /** Sets the largest network that may be chosen. */
  limit(max: NetworkTier): void {
    this.max = max;
    if (NETWORKS.indexOf(this.tier) > NETWORKS.indexOf(max)) this.set(largestNetwork(this.scale, max));
  }

  /** Before each frame: the size of the low picture, as text, and the scale. Another one begins from scratch. */
  begin(size: string, scale: number): void {
    if (size === this.size && scale === this.scale) return;
    this.size = size;
    this.scale = scale;
    this.known.clear();
    this.set("none");
  }

  /** Takes a frame: the time of all work on it, the media time since the frame before, and the queue length. */
  frame(now: number, workMs: number, intervalMs: number, queued: number): void {
    if (intervalMs <= 0) return;
    this.resting = false;
    this.samples.push({ workMs, intervalMs });
    if (this.samples.length > WINDOW) this.samples.shift();
    if (this.tooSlow(queued)) {
      this.drop(now);
      return;
    }
    if (this.samples.length < WINDOW) return;
    this.of(this.tier).workMs = percentile(this.works(), 0.8);
    if (now - this.calmSince >= CALM_MS) this.forgive(now);
    const next = this.next();
    if (next !== null && queued <= 1 && now >= this.of(next).notBefore && this.fits(next)) this.set(next);
  }

  /** Drops the network of now: it may come back after a wait. */
  drop(now: number): void {
    if (this.tier === "none") return;
    const of = this.of(this.tier);
    of.workMs = percentile(this.works(), 0.8);
    of.notBefore = now + of.waitMs * (0.75 + 0.5 * this.random());
    of.waitMs = Math.min(of.waitMs * 2, MAX_WAIT_MS);
    this.calmSince = now;
    const below = largestNetwork(this.scale, NETWORKS[NETWORKS.indexOf(this.tier) - 1] ?? "none");
    this.set(below !== "none" && this.fits(below) ? below : "none");
  }

  /** Runs no network: the machine has no time for any. */
  rest(): void {
    if (this.tier !== "none") this.set("none");
    this.samples = [];
    this.resting = true;
  }

  private set(tier: NetworkTier): void {
    this.tier = tier;
    this.samples = [];
  }

  private of(tier: NetworkTier): Known {
    let known = this.known.get(tier);
    if (known === undefined) {
      known = { workMs: null, notBefore: Number.NEGATIVE_INFINITY, waitMs: FIRST_WAIT_MS };
      this.known.set(tier, known);
    }
    return known;
  }

  private works(): number[] {
    return this.samples.map((s) => s.workMs);
  }

  /** The next larger network that there is and that may run. */
  private next(): NetworkTier | null {
    const costs = COSTS[this.scale] ?? {};
    const larger = NETWORKS.slice(NETWORKS.indexOf(this.tier) + 1, NETWORKS.indexOf(this.max) + 1);
    return larger.find((tier) => costs[tier] !== undefined) ?? null;
  }

  private tooSlow(queued: number): boolean {
    if (this.tier === "none" || this.samples.length < SHORT_WINDOW) return false;
    // The median: a single hiccup is no matter.
    const last = this.samples.slice(-SHORT_WINDOW);
    const work = percentile(
      last.map((s) => s.workMs),
      0.5,
    );
    const share = work / percentile(this.intervals(), 0.5);
    return share > TOO_LONG_SHARE || (queued > MAX_QUEUED && share > MAX_SHARE);
  }

  /** Whether a network would leave time, by what was measured: of itself, or of the others by their costs. */
  private fits(tier: NetworkTier): boolean {
    const costs = COSTS[this.scale] ?? {};
    const cost = (of: NetworkTier) => costs[of] ?? 0;
    const base = this.of("none").workMs ?? 0;
    const measured = this.of(this.tier).workMs ?? base;
    const each = this.tier === "none" ? UNMEASURED_COST * measured : (measured - base) / cost(this.tier);
    const estimate = base + Math.max(each, 0) * cost(tier);
    return estimate <= MAX_SHARE * percentile(this.intervals(), 0.5);
  }

  private intervals(): number[] {
    return this.samples.map((s) => s.intervalMs);
  }

  private forgive(now: number): void {
    this.calmSince = now;
    for (const known of this.known.values()) known.waitMs = Math.max(known.waitMs / 2, FIRST_WAIT_MS);
  }
}

/** The value that this share of values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
