/**
 * Runs a frame network in two workers of its own, each on half of the rows of every picture, in the decoder's integers.
 * A picture is ready in little more than half of the time that the decoder takes for it, and the track's worker goes on
 * meanwhile.
 */
import type { FromRows, ToRows } from "../messages.js";
import {
  type BackendOptions,
  type BackendScript,
  checkSizes,
  type FrameNetwork,
  NetworkFailure,
  type Plane,
} from "./backend.js";

/** Workers of a track. */
const COUNT = 2;
/** Pictures that may be under way. */
const MAX_UNDER = 2;
const START_MS = 10_000;
const PICTURE_MS = 500;

/** The part of a `Worker` that is used. */
export type RowPort = Pick<Worker, "postMessage" | "terminate" | "onmessage" | "onerror">;

/** What is needed for workers. */
export interface RowHost {
  /** The compiled decoder; null before it is loaded. */
  module(): WebAssembly.Module | null;
  /** Starts a worker. */
  start(): RowPort;
  /**
   * Takes the place of the one track that may have workers. Resolves with what gives it back; null while another track
   * has it.
   */
  place(): Promise<(() => void) | null>;
}

/** Starts networks in workers. */
export function rowWorkers({ module, start, place }: RowHost): BackendScript {
  return {
    version: "",
    async startBuiltIn(tier, scale, { limits }: BackendOptions) {
      const compiled = module();
      if (compiled === null) throw new NetworkFailure("no_script", "the decoder is not loaded");
      const giveBack = await place();
      if (giveBack === null) throw new NetworkFailure("late", "another track has the workers");
      const workers: RowWorker[] = [];
      try {
        for (let n = 0; n < COUNT; n++) workers.push(new RowWorker(start()));
        const ready = workers.map((worker) => worker.ask({ type: "rows", module: compiled, tier, scale }));
        const [answer] = await inTime(Promise.all(ready), limits?.compileMs ?? START_MS, "slow_compile");
        if (answer?.type !== "rows") throw new NetworkFailure("device_lost", "a worker answers something else");
        return new RowWorkers(scale, answer.reach, workers, limits?.pictureMs ?? PICTURE_MS, giveBack);
      } catch (error) {
        for (const worker of workers) worker.end();
        giveBack();
        throw error instanceof NetworkFailure ? error : new NetworkFailure("no_script", `${error}`);
      }
    },
  };
}

/** A worker, and what waits for its answers. */
class RowWorker {
  private readonly waiting: { resolve: (answer: FromRows) => void; reject: (failure: NetworkFailure) => void }[] = [];
  private failure: NetworkFailure | null = null;
  private answered = false;

  constructor(private readonly port: RowPort) {
    port.onmessage = ({ data }: MessageEvent<FromRows>) => {
      this.answered = true;
      this.waiting.shift()?.resolve(data);
    };
    port.onerror = (event) => {
      event.preventDefault();
      // A script that cannot be loaded says no more than that.
      this.fail(event.message ?? "its script cannot be loaded");
    };
  }

  /** Posts a message. Resolves with the answer to it. */
  ask(message: ToRows): Promise<FromRows> {
    if (this.failure !== null) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.port.postMessage(message, message.type === "part" ? [message.bytes] : []);
    });
  }

  end(): void {
    this.port.terminate();
    this.fail("its network has ended");
  }

  private fail(why: string): void {
    this.failure ??= new NetworkFailure(this.answered ? "device_lost" : "no_script", `a worker has failed: ${why}`);
    for (const { reject } of this.waiting.splice(0)) reject(this.failure);
  }
}

/** A network in workers. */
class RowWorkers implements FrameNetwork {
  private under = 0;
  private ended = false;
  /** Memory for rows, by worker. */
  private readonly pool: ArrayBuffer[][];

  constructor(
    readonly scale: number,
    private readonly reach: number,
    private readonly workers: readonly RowWorker[],
    private readonly pictureMs: number,
    private readonly giveBack: () => void,
  ) {
    this.pool = workers.map(() => []);
  }

  async run(low: Plane, high: Plane, out: Plane): Promise<boolean> {
    checkSizes(this.scale, low, high, out);
    if (this.ended) throw new NetworkFailure("device_lost", "the network has ended");
    if (this.under >= MAX_UNDER) return false;
    this.under++;
    try {
      const parts = this.workers.map((worker, n) => this.part(worker, n, low, high));
      for (const take of await inTime(Promise.all(parts), this.pictureMs, "stalled")) take(out);
      return true;
    } catch (error) {
      this.dispose();
      throw error instanceof RangeError ? new NetworkFailure("out_of_memory", error.message) : error;
    } finally {
      this.under--;
    }
  }

  dispose(): void {
    this.ended = true;
    for (const worker of this.workers) worker.end();
    this.giveBack();
  }

  /** Has a worker make its rows. The answer puts them into a picture. */
  private async part(worker: RowWorker, n: number, low: Plane, high: Plane): Promise<(out: Plane) => void> {
    const { scale, reach } = this;
    const { width, height } = low;
    const border = (k: number): number => Math.round((k * height) / this.workers.length);
    const [from, to] = [border(n), border(n + 1)];
    const [first, end] = [Math.max(0, from - reach), Math.min(height, to + reach)];
    const rows = end - first;
    const length = width * rows * (1 + scale ** 2);
    const free = this.pool[n]?.pop();
    const bytes = free?.byteLength === length ? free : new ArrayBuffer(length);
    pack(low, first, end, new Uint8Array(bytes));
    pack(high, scale * first, scale * end, new Uint8Array(bytes, width * rows));
    const answer = await worker.ask({ type: "part", bytes, width, height: rows });
    if (answer.type !== "part" || answer.bytes.byteLength !== length)
      throw new NetworkFailure("device_lost", "a worker answers something else");
    const made = new Uint8Array(answer.bytes, width * rows);
    return (out) => {
      for (let y = scale * from; y < scale * to; y++) {
        const at = (y - scale * first) * out.width;
        out.bytes.set(made.subarray(at, at + out.width), y * out.stride);
      }
      this.pool[n]?.push(answer.bytes);
    };
  }
}

/** Copies rows of a plane without the gaps between them. */
function pack({ bytes, width, stride }: Plane, from: number, to: number, into: Uint8Array): void {
  for (let y = from; y < to; y++) into.set(bytes.subarray(y * stride, y * stride + width), (y - from) * width);
}

/** Rejects with a reason where a promise takes too long. */
function inTime<T>(promise: Promise<T>, ms: number, reason: "slow_compile" | "stalled"): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new NetworkFailure(reason, `it took more than ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
