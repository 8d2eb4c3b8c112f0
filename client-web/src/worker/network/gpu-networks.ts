/**
 * Runs the network of a track on the GPU instead of in the decoder, where that takes less time. Times are milliseconds.
 *
 * The decoder's own backend runs until the GPU has proved itself: its script is loaded, a device found, shaders compiled
 * and a small picture compared with what it must be (`starting`); then pictures are timed and not shown (`trying`). It is
 * used (`running`) where they take a good part less than the time between frames, and less than the same network takes in
 * the decoder. Any fault, and pictures that take too long, end that with a reason; what may pass is tried again after a
 * minute, twice as long after each relapse.
 *
 * Two pictures at most are under way. One that comes after a younger one was shown is dropped: the youngest wins, and the
 * order holds.
 */
import {
  largestNetwork,
  MAX_SHARE,
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

/** Frames at one size until the GPU is tried: then the decoder's backend has found its network. */
const SETTLED_FRAMES = 96;
/** Pictures that are timed, and how many before them are not: they make memory, and fill caches. */
const TIMED = 8;
const UNTIMED = 2;
/** Pictures that may be under way. */
const MAX_UNDER = 2;
/** Of the last {@link SHORT_WINDOW} pictures, how many may have found no room. */
const MAX_CROWDED = 3;
const FIRST_WAIT_MS = 60_000;
const MAX_WAIT_MS = 32 * FIRST_WAIT_MS;
/** One that has run for so long begins with the first wait again. */
const FORGIVEN_MS = 10 * FIRST_WAIT_MS;
/** A picture that takes longer never comes. */
const LIMITS: BackendOptions = { limits: { pictureMs: 500 } };
/** For a processor that plays a GPU, and other work on the machine. */
const PATIENT: BackendOptions = {
  software: true,
  limits: { adapterMs: 20_000, compileMs: 20_000, pictureMs: 5000 },
};
/** Reasons that do not pass. */
const FINAL: readonly FailureReason[] = ["no_webgpu", "software_adapter", "shader", "invalid_weights", "wrong"];

/** A picture of the decoder, in its memory. */
export interface RebuiltPicture {
  low: Plane;
  high: PictureView;
  /** By cell of 8×8 low samples, row by row: 1 where no network makes it better. */
  kept: Uint8Array;
}

/** The decoder's own backend: its network of now, and what that adds to a frame. */
export interface OwnBackend {
  network: NetworkTier;
  addedMs: number | null;
}

/** See the module's head. */
export class GpuNetworks {
  /** Why the GPU is not used, or was not at the last try; null before, and while it is. */
  failure: FailureReason | null = null;
  /** Pictures that came too late. */
  dropped = 0;
  private state: "idle" | "starting" | "trying" | "running" = "idle";
  private backend: FrameNetwork | null = null;
  /** The network of the backend. */
  private tier: NetworkTier = "none";
  /** Counts backends, so that what a former one says is told apart. */
  private turn = 0;
  private size = "";
  private scale = 0;
  private framesSince = 0;
  private notBefore = Number.NEGATIVE_INFINITY;
  private waitMs = FIRST_WAIT_MS;
  private runningSince = 0;
  /** Times of pictures while trying. */
  private tried: number[] = [];
  /** The last frames. */
  private recent: { workMs: number; intervalMs: number }[] = [];
  /** The last pictures: their times, and whether there was no room for them. */
  private latencies: number[] = [];
  private crowded: boolean[] = [];
  private readonly taken = new SampleWindow(90, 5000);
  /** Numbers of pictures: of the last, of the youngest that was shown, and of the last that is not to be shown. */
  private last = 0;
  private youngest = 0;
  private forgotten = 0;
  private under = 0;
  /** Memory of pictures that are shown. */
  private readonly pool: Uint8Array<ArrayBuffer>[] = [];

  /**
   * `load` imports the backend's script; null where the browser has no WebGPU. `forced`: for tests, takes a processor that
   * plays a GPU, whatever time it needs.
   */
  constructor(
    private max: NetworkTier,
    private readonly load: (() => Promise<BackendScript>) | null,
    private readonly forced: boolean,
    private readonly clock: () => number,
  ) {}

  /** The network that runs on the GPU now. */
  get network(): NetworkTier {
    return this.state === "running" ? this.tier : "none";
  }

  /** Whether the next picture is wanted, by {@link run}. */
  get wantsPictures(): boolean {
    return this.state === "running" || (this.state === "trying" && this.under === 0);
  }

  /** Mean time of a picture, over the last seconds; null without one. */
  get pictureMs(): number | null {
    return this.network === "none" ? null : this.taken.mean(this.clock());
  }

  /** Sets the largest network that may run. */
  limit(max: NetworkTier): void {
    this.max = max;
    if (this.state !== "idle" && this.target() !== this.tier) this.stop();
  }

  /** Before each frame: the size of the low picture, as text, and the scale. Another one is tried anew. */
  begin(size: string, scale: number): void {
    if (size === this.size && scale === this.scale) return;
    const rescaled = scale !== this.scale;
    [this.size, this.scale, this.framesSince] = [size, scale, 0];
    this.recent = [];
    if (rescaled) this.stop();
    else if (this.state === "running" || this.state === "trying") this.try();
  }

  /** Takes a frame: the time of all work on it in the worker, the media time since the frame before, the decoder's backend. */
  frame(workMs: number, intervalMs: number, own: OwnBackend): void {
    if (intervalMs <= 0) return;
    this.framesSince++;
    keepLast(this.recent, { workMs, intervalMs });
    const interval = percentile(
      this.recent.map((frame) => frame.intervalMs),
      0.5,
    );
    const share =
      percentile(
        this.recent.map((frame) => frame.workMs),
        0.5,
      ) / interval;
    if (this.state === "idle") this.consider(share);
    else if (this.state === "trying" && this.tried.length >= UNTIMED + TIMED) this.judge(interval, own);
    else if (this.state === "running" && this.tooSlow(share, interval)) this.end("late");
  }

  /**
   * Makes a picture better. The picture is read before the call returns. `show` is called once, in a later task, with its
   * bytes, laid out as those of the high picture and valid during the call; never where it comes too late. False: it is to
   * be shown as it is ({@link pass}).
   */
  run(picture: RebuiltPicture, show: (bytes: Uint8Array<ArrayBuffer>) => void): boolean {
    // The scale may have changed since the last frame began.
    if (this.backend === null || picture.high.width !== this.backend.scale * picture.low.width) return false;
    if (this.state === "trying") this.time(picture);
    if (this.state !== "running" || picture.kept.every((kept) => kept !== 0)) return false;
    const full = this.under >= MAX_UNDER;
    keepLast(this.crowded, full);
    if (full) return false;
    const { low, high, kept } = picture;
    const bytes = this.copy(high.bytes);
    const [number, turn, from] = [++this.last, this.turn, this.clock()];
    const luma = lumaOf(high, bytes);
    const rebuilt = kept.includes(1) ? luma.bytes.slice() : null;
    this.under++;
    this.backend.run(low, lumaOf(high, high.bytes), luma).then(
      (taken) => {
        if (taken && rebuilt !== null) keepCells(kept, low, luma, rebuilt);
        const ms = this.clock() - from;
        this.taken.add(this.clock(), ms);
        keepLast(this.latencies, ms);
        this.finish(number, bytes, show);
      },
      (error) => {
        // The picture is as it was.
        if (turn === this.turn) this.end(failureReason(error) ?? "shader");
        this.finish(number, bytes, show);
      },
    );
    return true;
  }

  /** A picture is shown as it is: those under way are older, and not to be shown after it. */
  pass(): void {
    this.youngest = ++this.last;
  }

  /** Pictures under way are not to be shown. */
  forget(): void {
    this.forgotten = this.last;
  }

  /** The machine has no time for networks. */
  rest(): void {
    if (this.state !== "idle") this.end("late");
  }

  private target(): NetworkTier {
    return largestNetwork(this.scale, this.max);
  }

  /** Starts where a network may run, and there is time for it. */
  private consider(share: number): void {
    if (this.target() === "none" || this.clock() < this.notBefore) return;
    if (!this.forced && (this.framesSince < SETTLED_FRAMES || share > MAX_SHARE)) return;
    if (this.load === null) this.end("no_webgpu");
    else void this.start(this.load);
  }

  private async start(load: () => Promise<BackendScript>): Promise<void> {
    this.state = "starting";
    this.tier = this.target();
    const turn = ++this.turn;
    let script: BackendScript;
    try {
      script = await load();
    } catch {
      if (turn === this.turn) this.end("no_script");
      return;
    }
    if (turn !== this.turn) return;
    try {
      const backend = await script.startBuiltIn(this.tier, this.scale, this.forced ? PATIENT : LIMITS);
      if (turn !== this.turn) {
        backend.dispose();
        return;
      }
      this.backend = backend;
      this.try();
    } catch (error) {
      if (turn === this.turn) this.end(failureReason(error) ?? "shader");
    }
  }

  private try(): void {
    this.state = "trying";
    this.tried = [];
    this.latencies = [];
    this.crowded = [];
  }

  /** Times a picture, and shows nothing of it. */
  private time({ low, high }: RebuiltPicture): void {
    if (this.backend === null || this.under > 0) return;
    const out = lumaOf(high, new Uint8Array(high.bytes.length));
    const [turn, from] = [this.turn, this.clock()];
    this.under++;
    this.backend.run(low, lumaOf(high, high.bytes), out).then(
      () => {
        this.under--;
        if (turn === this.turn && this.state === "trying") this.tried.push(this.clock() - from);
      },
      (error) => {
        this.under--;
        if (turn === this.turn) this.end(failureReason(error) ?? "shader");
      },
    );
  }

  private judge(interval: number, own: OwnBackend): void {
    const ms = percentile(this.tried.slice(UNTIMED), 0.8);
    const ownMs = own.network === this.tier ? own.addedMs : null;
    if (!this.forced && ms > MAX_SHARE * interval) this.end("late");
    else if (!this.forced && ownMs !== null && ms >= ownMs) this.end("slower");
    else {
      this.state = "running";
      this.runningSince = this.clock();
      this.failure = null;
    }
  }

  private tooSlow(share: number, interval: number): boolean {
    if (this.forced) return false;
    const slow = share > TOO_LONG_SHARE && this.recent.length >= SHORT_WINDOW;
    const late = percentile(this.latencies, 0.5) > TOO_LONG_SHARE * interval && this.latencies.length >= SHORT_WINDOW;
    return slow || late || this.crowded.filter((full) => full).length > MAX_CROWDED;
  }

  private finish(number: number, bytes: Uint8Array<ArrayBuffer>, show: (bytes: Uint8Array<ArrayBuffer>) => void): void {
    this.under--;
    if (number > this.forgotten && number > this.youngest) {
      this.youngest = number;
      show(bytes);
    } else if (number > this.forgotten) this.dropped++;
    if (this.pool.length < MAX_UNDER) this.pool.push(bytes);
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
    this.stop();
    this.failure = reason;
    this.notBefore = FINAL.includes(reason) ? Number.POSITIVE_INFINITY : this.clock() + this.waitMs;
    this.waitMs = Math.min(2 * this.waitMs, MAX_WAIT_MS);
  }

  /** Ends without one. Pictures under way are shown as they are. */
  private stop(): void {
    this.turn++;
    this.state = "idle";
    this.backend?.dispose();
    this.backend = null;
    this.pool.length = 0;
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
