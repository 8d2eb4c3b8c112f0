/**
 * Runs the network of a track on a backend outside of the decoder, where that takes less time: the GPU, or workers.
 * Times are milliseconds.
 *
 * The decoder runs it until the backend has proved itself. Its script is loaded (`loading`). It starts: a device is
 * found, shaders are compiled, a small picture is compared with what it must be (`starting`). Then pictures are timed
 * and not shown (`trying`). It is used (`running`) where they take a good part less than the time between frames. After
 * eight of them the worker's work without the network is known: they must take less than what it is spared. Any fault,
 * and pictures that take too long, end that with a reason; what may pass is tried again after a minute, twice as long
 * after each relapse.
 *
 * Pictures are shown in order. Two at most are under way. Those that come meanwhile wait behind them, and are shown as
 * they are. Where too many wait, so is the oldest.
 */
import {
  largestNetwork,
  MAX_SHARE,
  NETWORKS,
  type NetworkTier,
  percentile,
  SHORT_WINDOW,
  TOO_LONG_SHARE,
} from "../network-choice.js";
import type { PictureView } from "../wasm.js";
import { SampleWindow } from "../windows.js";
import type { BackendOptions, BackendScript, FailureReason, FrameNetwork, Plane } from "./backend.js";
import { failureReason } from "./backend.js";
import { keepCells } from "./keep.js";

/** Frames at one size until the GPU is tried, about: then the decoder has found its network. */
const SETTLED_FRAMES = 96;
/** Pictures that are timed, and how many before them are not: they make memory, and fill caches. */
const TIMED = 8;
const UNTIMED = 2;
/** Pictures that may be under way. */
const MAX_UNDER = 2;
/** Pictures that may wait to be shown, with those under way. */
const MAX_WAITING = 4;
/** Max pictures among the last {@link SHORT_WINDOW} for which there was no room. */
const MAX_CROWDED = 3;
/** A script that takes longer never comes. */
const LOAD_MS = 30_000;
/** Time for which the decoder must have run less than the largest network before a backend for that is tried. */
const SMALLER_MS = 20_000;
/** Time for which the decoder must have time for the largest network before such a backend ends. */
const SPARE_MS = 5000;
/** Time of the decoder for a picture, over that of two workers. */
const ALONE = 2;
const FIRST_WAIT_MS = 60_000;
const MAX_WAIT_MS = 32 * FIRST_WAIT_MS;
/** Run time after which a backend that fails begins with the first wait again. */
const FORGIVEN_MS = 10 * FIRST_WAIT_MS;
/** A picture that takes longer never comes. */
const LIMITS: BackendOptions = { limits: { pictureMs: 500 } };
/** For a CPU that plays a GPU, and other work on the machine. */
const PATIENT: BackendOptions = {
  software: true,
  limits: { adapterMs: 20_000, compileMs: 20_000, pictureMs: 5000 },
};
/** Reasons that do not pass. A worker imports a script once: one that failed fails again. */
const FINAL: readonly FailureReason[] = [
  "no_webgpu",
  "software_adapter",
  "shader",
  "invalid_weights",
  "no_script",
  "wrong",
];
/** Reasons that may not hold for pictures of another size. */
const SIZED: readonly FailureReason[] = ["late", "slower", "out_of_memory"];

/** A picture of the decoder, in its memory. */
export interface RebuiltPicture {
  low: Plane;
  high: PictureView;
  /** By cell of 8×8 low samples, row by row: 1 where no network makes it better. */
  kept: Uint8Array;
}

/** A picture that waits to be shown. */
interface Waiting {
  bytes: Uint8Array<ArrayBuffer>;
  show: (bytes: Uint8Array<ArrayBuffer>) => void;
  /** It is not under way. */
  ready: boolean;
}

/** What a backend is used for. */
export type Purpose =
  /** The network that the decoder would run: the backend is faster. */
  | "faster"
  /** The largest network, in workers, while the decoder has no time for it. */
  | "larger";

/** Decides when the network of one track runs on a backend: tries it, uses it, and gives it up. */
export class OutsideNetwork {
  /** Why the backend is not used, or was not at the last try; null before, and while it is. */
  failure: FailureReason | null = null;
  /** Pictures that were shown without the network because the backend had no time for them. */
  skipped = 0;
  private state: "idle" | "loading" | "starting" | "trying" | "running" = "idle";
  private backend: FrameNetwork | null = null;
  /** The network of the backend; `none` while idle. */
  private tier: NetworkTier = "none";
  /** Counts backends, so that what a former one says is told apart. */
  private turn = 0;
  private size = "";
  private scale = 0;
  private loadingSince = 0;
  private runningSince = 0;
  private notBefore = Number.NEGATIVE_INFINITY;
  private waitMs = FIRST_WAIT_MS;
  /** Frames since the size, the limit or the track changed, and from how many on the backend may be tried. */
  private framesSince = 0;
  private settledFrames = SETTLED_FRAMES;
  /** The last frames since then, or since the backend runs. */
  private recent: { workMs: number; intervalMs: number }[] = [];
  private intervalMs = 0;
  /** For the purpose `larger`: since when the decoder has run less, and since when it has time. */
  private smallerSince: number | null = null;
  private spareSince: number | null = null;
  /** Work of the last frames on which the decoder ran the network that the backend would run. */
  private ownMs: number[] = [];
  /** Times of pictures while trying. */
  private tried: number[] = [];
  /** How long pictures in their time took, and whether there was no room for them. */
  private latencies: number[] = [];
  private crowded: boolean[] = [];
  private readonly taken = new SampleWindow(90, 5000);
  /** When the last picture came. */
  private lastAt = 0;
  private under = 0;
  private waiting: Waiting[] = [];
  /** Memory of pictures that are shown. */
  private readonly pool: Uint8Array<ArrayBuffer>[] = [];

  /**
   * `load` loads the backend; null where the browser has no WebGPU. `forced`: for tests, takes a CPU that plays a GPU,
   * whatever time it needs. `random`: 0 to 1, so that tracks do not try at the same time.
   */
  constructor(
    private max: NetworkTier,
    private readonly load: (() => Promise<BackendScript>) | null,
    private readonly forced: boolean,
    private readonly clock: () => number,
    private readonly random: () => number = Math.random,
    private readonly purpose: Purpose = "faster",
  ) {
    this.settle();
    if (load === null) this.end("no_webgpu");
  }

  /** The network that runs on the backend now. */
  get network(): NetworkTier {
    return this.state === "running" ? this.tier : "none";
  }

  /** Whether the next picture is wanted, by {@link run}. */
  get wantsPictures(): boolean {
    return this.state === "running" || (this.timing && this.under === 0);
  }

  /** Mean time of a picture, over the last seconds; null without one. */
  get pictureMs(): number | null {
    return this.network === "none" ? null : this.taken.mean(this.clock());
  }

  /** Sets the largest network that may run. */
  limit(max: NetworkTier): void {
    this.max = max;
    if (this.target() !== this.tier) this.stop();
  }

  /**
   * Before each frame: the size of the low picture, as text, and the scale. For another one, pictures are timed again.
   */
  begin(size: string, scale: number): void {
    if (size === this.size && scale === this.scale) return;
    if (scale !== this.scale) this.stop();
    [this.size, this.scale] = [size, scale];
    this.settle();
    if (this.state === "running" || this.state === "trying") this.try();
    if (this.failure !== null && SIZED.includes(this.failure))
      [this.failure, this.notBefore, this.waitMs] = [null, Number.NEGATIVE_INFINITY, FIRST_WAIT_MS];
  }

  /**
   * Takes a frame: the time of all work on it in the worker, the media time since the frame before, and the network
   * that the decoder ran on it. True: the backend's network has ended because the worker has no time, nor has it for
   * the decoder's.
   */
  frame(workMs: number, intervalMs: number, own: NetworkTier): boolean {
    if (intervalMs <= 0) return false;
    if (this.state !== "running" && !this.timing && own === this.target()) keepLast(this.ownMs, workMs);
    this.framesSince++;
    keepLast(this.recent, { workMs, intervalMs });
    this.intervalMs = median(this.recent.map((frame) => frame.intervalMs));
    const recentMs = median(this.recent.map((frame) => frame.workMs));
    if (this.purpose === "larger" && !this.forced && this.givesWay(recentMs, own)) return false;
    if (this.state === "idle") this.consider(recentMs / this.intervalMs);
    else if (this.state === "loading" && this.clock() - this.loadingSince > LOAD_MS) this.end("no_script");
    else if (this.state === "trying" && this.tried.length >= UNTIMED + TIMED) this.judge();
    else if (this.state === "running" && !this.forced) return this.check(recentMs);
    return false;
  }

  /**
   * Makes a picture better. The picture is read before the call returns. `show` is called once, mostly in a later task,
   * with its bytes, laid out as those of the high picture and valid during the call; pictures come in order. False: it
   * is to be shown as it is, after {@link pass}.
   */
  run(picture: RebuiltPicture, show: (bytes: Uint8Array<ArrayBuffer>) => void): boolean {
    const { low, high, kept } = picture;
    // The scale may have changed since the last frame began.
    if (this.backend === null || high.width !== this.backend.scale * low.width) return false;
    if (this.timing) this.time(picture);
    if (this.state !== "running") return false;
    const whole = kept.every((cell) => cell !== 0);
    if (whole && this.waiting.length === 0) return false;
    const one = { bytes: this.copy(high.bytes), show, ready: true };
    this.waiting.push(one);
    if (!whole) this.improve(picture, one);
    if (this.waiting.length > MAX_WAITING) {
      this.skipped++;
      this.showOldest();
    }
    this.showReady();
    return true;
  }

  /** Shows those that wait as they are: the next is shown at once. */
  pass(): void {
    while (this.waiting.length > 0) this.showOldest();
  }

  /** Pictures that wait are not to be shown. */
  forget(): void {
    this.waiting = [];
  }

  /** The machine has no time for networks. */
  rest(): void {
    if (this.state !== "idle") this.end("late");
  }

  /** Frees the backend: there is nothing to run. Pictures that wait are shown as they are. */
  stop(): void {
    this.settle();
    this.free();
  }

  private target(): NetworkTier {
    return largestNetwork(this.scale, this.max);
  }

  /** What was measured holds no longer. */
  private settle(): void {
    this.framesSince = 0;
    this.settledFrames = this.forced ? 0 : SETTLED_FRAMES * this.jitter();
    this.recent = [];
    this.ownMs = [];
    this.smallerSince = null;
    this.spareSince = null;
  }

  /** Whether the decoder has time for the largest network, so that no workers are needed; they end then. */
  private givesWay(recentMs: number, own: NetworkTier): boolean {
    const now = this.clock();
    if (this.state === "running") {
      const known = this.latencies.length >= SHORT_WINDOW;
      const spare = known && recentMs + ALONE * median(this.latencies) <= MAX_SHARE * this.intervalMs;
      this.spareSince = spare ? (this.spareSince ?? now) : null;
      if (this.spareSince === null || now - this.spareSince < SPARE_MS) return false;
      this.stop();
      return true;
    }
    // On battery the largest may not run: it is saved.
    if (own === this.target() || this.max !== NETWORKS.at(-1)) {
      this.smallerSince = null;
      if (this.state !== "idle") this.stop();
      return true;
    }
    this.smallerSince ??= now;
    return this.state === "idle" && now - this.smallerSince < SMALLER_MS;
  }

  private jitter(): number {
    return 0.75 + 0.5 * this.random();
  }

  /** Starts where a network may run, and there is time for it. */
  private consider(share: number): void {
    if (this.target() === "none" || this.clock() < this.notBefore) return;
    if (!this.forced && (this.framesSince < this.settledFrames || share > MAX_SHARE)) return;
    if (this.load !== null) void this.start(this.load);
  }

  private async start(load: () => Promise<BackendScript>): Promise<void> {
    [this.state, this.loadingSince, this.tier] = ["loading", this.clock(), this.target()];
    const turn = ++this.turn;
    let script: BackendScript;
    try {
      script = await load();
    } catch {
      if (turn === this.turn) this.end("no_script");
      return;
    }
    if (turn !== this.turn) return;
    this.state = "starting";
    try {
      const backend = await script.startBuiltIn(this.tier, this.scale, this.forced ? PATIENT : LIMITS);
      if (turn !== this.turn) {
        backend.dispose();
        return;
      }
      this.backend = backend;
      this.try();
    } catch (error) {
      if (turn === this.turn) this.end(failureReason(error) ?? "device_lost");
    }
  }

  private try(): void {
    this.state = "trying";
    this.tried = [];
    this.latencies = [];
    this.crowded = [];
  }

  private get timing(): boolean {
    return this.state === "trying" && this.framesSince >= this.settledFrames;
  }

  /** Times a picture, and shows nothing of it. */
  private time({ low, high, kept }: RebuiltPicture): void {
    if (this.under > 0 || kept.every((cell) => cell !== 0)) return;
    const out = lumaOf(high, new Uint8Array(high.bytes.length));
    this.make(low, high, out, (ms) => this.timing && this.tried.push(ms)).catch((error) => reportError(error));
  }

  private judge(): void {
    const ms = percentile(this.tried.slice(UNTIMED), 0.8);
    if (!this.forced && ms > MAX_SHARE * this.intervalMs) {
      this.end("late");
      return;
    }
    this.state = "running";
    this.runningSince = this.clock();
    this.failure = null;
    this.recent = [];
  }

  /** While it runs; true where it has ended because the worker has no time. */
  private check(recentMs: number): boolean {
    const busy = this.recent.length >= SHORT_WINDOW && recentMs > TOO_LONG_SHARE * this.intervalMs;
    const known = this.latencies.length >= SHORT_WINDOW;
    const ms = median(this.latencies);
    const late = known && ms > TOO_LONG_SHARE * this.intervalMs;
    if (busy || late || this.crowded.filter((full) => full).length > MAX_CROWDED) this.end("late");
    else if (known && this.ownMs.length > 0) {
      const spared = median(this.ownMs) - recentMs;
      this.ownMs = [];
      if (ms >= spared) this.end("slower");
    }
    return busy;
  }

  /** Has the backend make a picture better that waits, where there is room. */
  private improve({ low, high, kept }: RebuiltPicture, one: Waiting): void {
    const now = this.clock();
    // Frames that come all at once, after one that was lost and sent again, say nothing of the backend's speed.
    const inTime = now - this.lastAt >= this.intervalMs / 2;
    this.lastAt = now;
    const full = this.under >= MAX_UNDER;
    if (inTime) keepLast(this.crowded, full);
    if (full) {
      this.skipped++;
      return;
    }
    one.ready = false;
    const luma = lumaOf(high, one.bytes);
    const rebuilt = kept.includes(1) ? luma.bytes.slice() : null;
    this.make(low, high, luma, (ms) => {
      if (rebuilt !== null) keepCells(kept, low, luma, rebuilt);
      this.taken.add(this.clock(), ms);
      if (inTime) keepLast(this.latencies, ms);
    })
      .finally(() => {
        one.ready = true;
        this.showReady();
      })
      .catch((error) => reportError(error));
  }

  /** Makes a picture, then calls `made` with the time that it took; without a picture the backend ends. */
  private make(low: Plane, high: PictureView, out: Plane, made: (ms: number) => void): Promise<void> {
    const [turn, from] = [this.turn, this.clock()];
    this.under++;
    const picture = this.backend?.run(low, lumaOf(high, high.bytes), out) ?? Promise.resolve(false);
    return picture
      .finally(() => this.under--)
      .then(
        (taken) => {
          if (taken && turn === this.turn) made(this.clock() - from);
        },
        (error) => {
          if (turn === this.turn) this.end(failureReason(error) ?? "device_lost");
        },
      );
  }

  private showReady(): void {
    while (this.waiting[0]?.ready) this.showOldest();
  }

  private showOldest(): void {
    const one = this.waiting.shift();
    if (one === undefined) return;
    try {
      one.show(one.bytes);
    } finally {
      if (one.ready && this.backend !== null && this.pool.length < MAX_UNDER) this.pool.push(one.bytes);
    }
  }

  private copy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const free = this.pool.pop();
    const copy = free?.length === bytes.length ? free : new Uint8Array(bytes.length);
    copy.set(bytes);
    return copy;
  }

  /** Ends with a reason; may come again unless that is final. */
  private end(reason: FailureReason): void {
    if (this.state === "running" && this.clock() - this.runningSince >= FORGIVEN_MS) this.waitMs = FIRST_WAIT_MS;
    this.failure = reason;
    this.notBefore = FINAL.includes(reason) ? Number.POSITIVE_INFINITY : this.clock() + this.waitMs * this.jitter();
    this.waitMs = Math.min(2 * this.waitMs, MAX_WAIT_MS);
    this.free();
  }

  private free(): void {
    this.turn++;
    this.state = "idle";
    this.tier = "none";
    this.backend?.dispose();
    this.backend = null;
    this.pool.length = 0;
    this.pass();
  }
}

function keepLast<T>(list: T[], value: T): void {
  list.push(value);
  if (list.length > SHORT_WINDOW) list.shift();
}

/** The luma of a picture, in bytes laid out as it is. */
function lumaOf({ width, height, layout }: PictureView, bytes: Uint8Array): Plane {
  const [{ offset, stride }] = layout;
  return { bytes: bytes.subarray(offset, offset + stride * (height - 1) + width), width, height, stride };
}

function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}
