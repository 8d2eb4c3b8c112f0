import assert from "node:assert/strict";
import { test } from "node:test";
import type { NetworkTier } from "../network-choice.js";
import type { PictureView } from "../wasm.js";
import { type BackendScript, type FailureReason, type FrameNetwork, NetworkFailure, type Plane } from "./backend.js";
import { GpuNetworks, type OwnBackend } from "./gpu-networks.js";
import { keepCells } from "./keep.js";

const INTERVAL_MS = 33;
/** What the GPU makes of every sample, and what it was. */
const MADE = 9;
const REBUILT = 5;

/** A GPU that takes as long as the test says, in a track of 30 frames a second. */
class Bench {
  now = 0;
  gpuMs = 4;
  workMs = 5;
  own: OwnBackend = { network: "xs", addedMs: 9 };
  kept = new Uint8Array(4);
  scale = 2;
  /** The start: fails, never ends, or (null) succeeds. */
  start: FailureReason | "never" | null = null;
  load: "fails" | null = null;
  /** What the next pictures do. */
  fault: FailureReason | null = null;
  loads = 0;
  readonly started: string[] = [];
  disposed = 0;
  /** Frames as they were shown: by number, `+` where the GPU made them. */
  readonly shown: string[] = [];
  private frames = 0;
  private readonly under: { at: number; settle: (failure: NetworkFailure | null) => void }[] = [];
  readonly gpu: GpuNetworks;

  constructor({ max = "xs" as NetworkTier, webGpu = true, forced = false } = {}) {
    this.gpu = new GpuNetworks(max, webGpu ? () => this.script() : null, forced, () => this.now);
    this.gpu.begin("16x16", 2);
  }

  private async script(): Promise<BackendScript> {
    this.loads++;
    if (this.load === "fails") throw new TypeError("not found");
    return { startBuiltIn: (tier, scale) => this.backend(tier, scale) };
  }

  private async backend(tier: NetworkTier, scale: number): Promise<FrameNetwork> {
    this.started.push(`${tier} x${scale}`);
    if (this.start === "never") return new Promise(() => undefined);
    if (this.start !== null) throw new NetworkFailure(this.start, "planted");
    return {
      scale,
      run: (_low, _high, out) => this.make(out),
      setWeights: () => undefined,
      dispose: () => {
        this.disposed++;
        for (const one of this.under.splice(0)) one.settle(new NetworkFailure("device_lost", "disposed of"));
      },
    };
  }

  private make(out: Plane): Promise<boolean> {
    if (this.fault !== null) return Promise.reject(new NetworkFailure(this.fault, "planted"));
    return new Promise((resolve, reject) => {
      const settle = (failure: NetworkFailure | null): void => {
        if (failure === null) out.bytes.fill(MADE);
        if (failure === null) resolve(true);
        else reject(failure);
      };
      this.under.push({ at: this.now + this.gpuMs, settle });
    });
  }

  /** Lets time pass, and the GPU's pictures come. */
  private async until(end: number): Promise<void> {
    await settled();
    for (;;) {
      const next = this.under[0]?.at ?? Number.POSITIVE_INFINITY;
      this.now = Math.max(this.now, Math.min(next, end));
      if (next > end) break;
      this.under.shift()?.settle(null);
      await settled();
    }
  }

  async run(frames: number): Promise<string[]> {
    this.shown.length = 0;
    for (let i = 0; i < frames; i++) {
      const number = this.frames++;
      if (this.gpu.wantsPictures) this.show(number);
      else this.plain(number);
      this.gpu.frame(this.workMs, INTERVAL_MS, this.own);
      await this.until(this.now + INTERVAL_MS);
    }
    return this.shown;
  }

  private show(number: number): void {
    const side = 32 / this.scale;
    const low = { bytes: new Uint8Array(side * side), width: side, height: side, stride: side };
    const taken = this.gpu.run({ low, high: picture(), kept: this.kept }, (bytes) => {
      const luma = bytes.subarray(0, 32 * 32);
      assert.ok(
        bytes.subarray(32 * 32).every((sample) => sample === REBUILT),
        "chroma is left alone",
      );
      const made = luma.filter((sample) => sample === MADE).length;
      this.shown.push(`${number}${made === 0 ? "" : made === luma.length ? "+" : `+${made}`}`);
    });
    if (!taken) this.plain(number);
  }

  private plain(number: number): void {
    this.gpu.pass();
    this.shown.push(`${number}`);
  }

  /** Runs until the GPU is used. */
  async used(): Promise<void> {
    for (let i = 0; i < 120 && this.gpu.network === "none"; i++) await this.run(1);
    assert.equal(this.gpu.network, "xs");
    assert.equal(this.gpu.failure, null);
  }
}

/** A picture of 32×32 samples in 4:2:0. */
const picture = (): PictureView => ({
  width: 32,
  height: 32,
  bytes: new Uint8Array(32 * 48).fill(REBUILT),
  layout: [
    { offset: 0, stride: 32 },
    { offset: 1024, stride: 16 },
    { offset: 1280, stride: 16 },
  ],
});

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a GPU that is faster than the decoder's backend is used, once that has settled and its own pictures were timed", async () => {
  const bench = new Bench();
  await bench.run(95);
  assert.deepEqual([bench.loads, bench.gpu.network], [0, "none"]);
  const shown = await bench.run(12);
  assert.equal(bench.loads, 1);
  assert.deepEqual(bench.started, ["xs x2"]);
  assert.ok(
    shown.every((one) => !one.includes("+")),
    "what is timed is not shown",
  );
  await bench.used();
  const last = await bench.run(4);
  assert.ok(last.length === 4 && last.every((one) => one.endsWith("+")), `${last}`);
  assert.equal(bench.gpu.pictureMs, 4);
});

test("one that takes longer than the same network in the decoder is not", async () => {
  const bench = new Bench();
  bench.gpuMs = 10;
  await bench.run(120);
  assert.deepEqual([bench.gpu.network, bench.gpu.failure, bench.disposed], ["none", "slower", 1]);
});

test("where the decoder runs a smaller network, the GPU needs only be in time", async () => {
  const bench = new Bench();
  bench.own = { network: "xxs", addedMs: 3 };
  bench.gpuMs = 10;
  await bench.used();
  const late = new Bench();
  late.own = { network: "xxs", addedMs: 3 };
  late.gpuMs = 20;
  await late.run(120);
  assert.deepEqual([late.gpu.network, late.gpu.failure], ["none", "late"]);
});

test("nothing is loaded where no network may run, and where none is for the scale", async () => {
  const none = new Bench({ max: "none" });
  await none.run(120);
  assert.deepEqual([none.loads, none.gpu.failure], [0, null]);
  const third = new Bench();
  third.gpu.begin("16x16", 3);
  await third.run(120);
  assert.deepEqual([third.loads, third.gpu.failure], [0, null]);
});

test("a busy machine does not try", async () => {
  const bench = new Bench();
  bench.workMs = 20;
  await bench.run(200);
  assert.equal(bench.loads, 0);
});

test("a browser without WebGPU says so, and loads nothing", async () => {
  const bench = new Bench({ webGpu: false });
  await bench.run(120);
  assert.deepEqual([bench.loads, bench.gpu.failure], [0, "no_webgpu"]);
});

test("a start that fails says why; what may pass is tried again after a minute, and what cannot is not", async () => {
  for (const [reason, tries] of [
    ["no_adapter", 2],
    ["slow_compile", 2],
    ["out_of_memory", 2],
    ["device_lost", 2],
    ["software_adapter", 1],
    ["shader", 1],
    ["invalid_weights", 1],
    ["wrong", 1],
  ] as const) {
    const bench = new Bench();
    bench.start = reason;
    await bench.run(100);
    assert.deepEqual([bench.gpu.failure, bench.gpu.network], [reason, "none"]);
    for (let second = 0; second < 62; second++, bench.now += 1000) await bench.run(1);
    assert.equal(bench.started.length, tries, reason);
  }
  const bench = new Bench();
  bench.load = "fails";
  await bench.run(100);
  assert.equal(bench.gpu.failure, "no_script");
});

test("the decoder's backend goes on while a start never ends", async () => {
  const bench = new Bench();
  bench.start = "never";
  const shown = await bench.run(200);
  assert.deepEqual([shown.length, bench.gpu.network], [200, "none"]);
});

test("a fault in a picture ends it at once, and this picture and all further ones are shown as they are", async () => {
  for (const reason of ["device_lost", "out_of_memory", "stalled", "shader"] as const) {
    const bench = new Bench();
    await bench.used();
    bench.fault = reason;
    const shown = await bench.run(3);
    assert.deepEqual([bench.gpu.network, bench.gpu.failure, bench.disposed], ["none", reason, 1]);
    assert.ok(shown.length === 3 && shown.every((one) => !one.includes("+")), `${shown}`);
  }
});

test("pictures come in order, and one that comes after a younger one is dropped", async () => {
  const bench = new Bench({ forced: true });
  await bench.used();
  await bench.run(2);
  bench.gpuMs = 100;
  const shown = await bench.run(9);
  const numbers = shown.map((one) => Number.parseInt(one, 10));
  assert.deepEqual(
    numbers,
    [...numbers].sort((a, b) => a - b),
  );
  assert.ok(bench.gpu.dropped > 0, `${shown}`);
  assert.ok(numbers.length >= 3, `a picture in three frames at least: ${shown}`);
});

test("pictures that take too long for some frames end it", async () => {
  const bench = new Bench();
  await bench.used();
  await bench.run(10);
  bench.gpuMs = 60;
  await bench.run(12);
  assert.deepEqual([bench.gpu.network, bench.gpu.failure], ["none", "late"]);
});

test("a worker without time ends it, a hiccup does not", async () => {
  const bench = new Bench();
  await bench.used();
  bench.workMs = 90;
  await bench.run(1);
  bench.workMs = 5;
  await bench.run(20);
  assert.equal(bench.gpu.network, "xs");
  bench.workMs = 30;
  await bench.run(8);
  assert.deepEqual([bench.gpu.network, bench.gpu.failure], ["none", "late"]);
});

test("after each relapse the next try is twice as far, and ten minutes that went well reset that", async () => {
  const bench = new Bench();
  const minutes = async () => {
    bench.fault = "device_lost";
    await bench.run(1);
    bench.fault = null;
    const [from, loads] = [bench.now, bench.loads];
    for (; bench.loads === loads; bench.now += 1000) await bench.run(1);
    return Math.round((bench.now - from) / 60_000);
  };
  const waits: number[] = [];
  for (let i = 0; i < 4; i++) {
    await bench.used();
    if (i === 3) bench.now += 600_000;
    waits.push(await minutes());
  }
  assert.deepEqual(waits, [1, 2, 4, 1]);
});

test("a picture of another scale than the backend's is shown as it is", async () => {
  const bench = new Bench();
  await bench.used();
  const low = { bytes: new Uint8Array(64), width: 8, height: 8, stride: 8 };
  assert.equal(
    bench.gpu.run({ low, high: picture(), kept: new Uint8Array(1) }, () => undefined),
    false,
  );
  assert.equal((await bench.run(1)).length, 1);
  assert.equal(bench.gpu.network, "xs");
});

test("another limit ends it at once without a reason, and it comes back", async () => {
  const bench = new Bench();
  await bench.used();
  bench.gpu.limit("none");
  assert.deepEqual([bench.gpu.network, bench.gpu.failure, bench.disposed], ["none", null, 1]);
  await bench.run(200);
  assert.equal(bench.loads, 1);
  bench.gpu.limit("xs");
  await bench.used();
  assert.equal(bench.loads, 2);
});

test("another size is timed anew in the same backend, another scale takes another one", async () => {
  const bench = new Bench();
  await bench.used();
  bench.gpu.begin("16x8", 2);
  assert.equal(bench.gpu.network, "none");
  await bench.used();
  assert.deepEqual(bench.started, ["xs x2"]);
  bench.scale = 4;
  bench.gpu.begin("16x8", 4);
  assert.equal(bench.gpu.network, "none");
  await bench.used();
  assert.deepEqual(bench.started, ["xs x2", "xs x4"]);
});

test("cells that no network makes better stay as they are, and nothing runs where all are", async () => {
  const bench = new Bench();
  await bench.used();
  bench.kept = Uint8Array.of(0, 1, 0, 0);
  const [some] = await bench.run(1);
  assert.match(some ?? "", /\+768$/);
  bench.kept = Uint8Array.of(1, 1, 1, 1);
  const [all] = await bench.run(1);
  assert.doesNotMatch(all ?? "", /\+/);
});

test("pictures that are forgotten are not shown, nor counted", async () => {
  const bench = new Bench();
  await bench.used();
  bench.gpuMs = 40;
  await bench.run(1);
  bench.gpu.forget();
  bench.gpuMs = 4;
  const shown = await bench.run(3);
  assert.deepEqual([shown.length, bench.gpu.dropped], [3, 0]);
});

test("a machine that searches less runs none", async () => {
  const bench = new Bench();
  await bench.used();
  bench.gpu.rest();
  assert.deepEqual([bench.gpu.network, bench.gpu.failure], ["none", "late"]);
});

test("cells at the edges are those that there are", () => {
  const high = { bytes: new Uint8Array(20 * 18).fill(MADE), width: 20, height: 18, stride: 20 };
  keepCells(Uint8Array.of(0, 1, 1, 0), { width: 10, height: 9 }, high, new Uint8Array(20 * 18).fill(REBUILT));
  const at = (x: number, y: number) => high.bytes[20 * y + x];
  assert.deepEqual(
    [at(15, 0), at(16, 0), at(19, 15), at(0, 15), at(0, 16), at(15, 17), at(16, 17)],
    [9, 5, 5, 9, 5, 5, 9],
  );
});
