import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../../sdk/testing/clock.js";
import type { NetworkTier } from "../network-choice.js";
import type { PictureView } from "../wasm.js";
import { type BackendScript, type FailureReason, type FrameNetwork, NetworkFailure, type Plane } from "./backend.js";
import { keepCells } from "./keep.js";
import { OutsideNetwork, type Purpose } from "./outside-network.js";

const INTERVAL_MS = 33;
/** What the GPU makes of every sample, and what it was. */
const MADE = 9;
const REBUILT = 5;

/** A GPU that takes as long as the test says, in a track of 30 frames a second. */
class Bench {
  now = 0;
  gpuMs = 4;
  /** Work of a frame in the worker without a network, what the decoder's adds, and which that is. */
  workMs = 5;
  ownMs = 9;
  own: NetworkTier = "xs";
  /** Time between frames that come, while a burst of them is made up for. */
  pace = INTERVAL_MS;
  kept = new Uint8Array(4);
  scale = 2;
  /** The start: fails, never ends, or (null) succeeds. */
  start: FailureReason | "never" | null = null;
  load: "fails" | "never" | null = null;
  /** What the next pictures do. */
  fault: FailureReason | "unknown" | null = null;
  loads = 0;
  readonly started: string[] = [];
  disposed = 0;
  /** Frames as they were shown: by number, `+` where the GPU made them. */
  readonly shown: string[] = [];
  private frames = 0;
  private readonly under: { at: number; end: (failure: NetworkFailure | null) => void }[] = [];
  readonly gpu: OutsideNetwork;

  constructor({
    max = "xs" as NetworkTier,
    webGpu = true,
    forced = false,
    random = 0.5,
    purpose = "faster" as Purpose,
  } = {}) {
    const load = webGpu ? () => this.script() : null;
    this.gpu = new OutsideNetwork(
      max,
      load,
      forced,
      () => this.now,
      () => random,
      purpose,
    );
    this.gpu.begin("16x16", 2);
  }

  private async script(): Promise<BackendScript> {
    this.loads++;
    if (this.load === "fails") throw new TypeError("not found");
    if (this.load === "never") return new Promise(() => undefined);
    return { version: "", startBuiltIn: (tier, scale) => this.backend(tier, scale) };
  }

  private async backend(tier: NetworkTier, scale: number): Promise<FrameNetwork> {
    this.started.push(`${tier} x${scale}`);
    if (this.start === "never") return new Promise(() => undefined);
    if (this.start !== null) throw new NetworkFailure(this.start, "planted");
    return {
      scale,
      run: (_low, _high, out) => this.make(out),
      dispose: () => {
        this.disposed++;
        for (const one of this.under.splice(0)) one.end(new NetworkFailure("device_lost", "disposed of"));
      },
    };
  }

  private make(out: Plane): Promise<boolean> {
    if (this.fault === "unknown") return Promise.reject(new TypeError("planted"));
    if (this.fault !== null) return Promise.reject(new NetworkFailure(this.fault, "planted"));
    return new Promise((resolve, reject) => {
      const end = (failure: NetworkFailure | null): void => {
        if (failure === null) out.bytes.fill(MADE);
        if (failure === null) resolve(true);
        else reject(failure);
      };
      this.under.push({ at: this.now + this.gpuMs, end });
    });
  }

  /** Lets time pass, and the GPU's pictures come. */
  private async until(end: number): Promise<void> {
    await settle();
    for (;;) {
      const next = this.under[0]?.at ?? Number.POSITIVE_INFINITY;
      this.now = Math.max(this.now, Math.min(next, end));
      if (next > end) break;
      this.under.shift()?.end(null);
      await settle();
    }
  }

  async run(frames: number): Promise<string[]> {
    this.shown.length = 0;
    for (let i = 0; i < frames; i++) {
      const number = this.frames++;
      if (this.gpu.wantsPictures) this.show(number);
      else this.plain(number);
      const own = this.gpu.network === "none" ? this.own : "none";
      if (this.gpu.frame(this.workMs + (own === "none" ? 0 : this.ownMs), INTERVAL_MS, own)) this.own = "none";
      await this.until(this.now + this.pace);
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

test("one that takes longer than what the worker is spared ends after eight pictures", async () => {
  const bench = new Bench();
  bench.gpuMs = 10;
  await bench.used();
  await bench.run(7);
  assert.equal(bench.gpu.network, "xs");
  await bench.run(3);
  assert.deepEqual([bench.gpu.network, bench.gpu.failure, bench.disposed], ["none", "slower", 1]);
});

test("what frames took at first counts neither for the GPU nor against it", async () => {
  const slow = new Bench();
  [slow.workMs, slow.ownMs, slow.gpuMs] = [5, 25, 10];
  await slow.run(60);
  [slow.workMs, slow.ownMs] = [5, 4];
  await slow.run(120);
  assert.deepEqual([slow.gpu.network, slow.gpu.failure], ["none", "slower"]);
  const quick = new Bench();
  [quick.workMs, quick.ownMs] = [5, 0];
  await quick.run(60);
  [quick.workMs, quick.ownMs] = [5, 9];
  await quick.used();
  await quick.run(40);
  assert.deepEqual([quick.gpu.network, quick.gpu.failure], ["xs", null]);
});

test("after another size and after a page was hidden the decoder's network is measured again before the GPU is tried", async () => {
  const changes: ((bench: Bench) => void)[] = [
    ({ gpu }) => gpu.begin("16x8", 2),
    ({ gpu }) => {
      gpu.limit("none");
      gpu.limit("xs");
    },
  ];
  for (const change of changes) {
    const bench = new Bench();
    await bench.used();
    await bench.run(40);
    assert.equal(bench.gpu.network, "xs");
    change(bench);
    // The decoder begins without a network.
    bench.own = "none";
    await bench.run(48);
    [bench.own, bench.ownMs] = ["xs", 3];
    await bench.run(40);
    assert.equal(bench.gpu.network, "none");
    await bench.used();
    await bench.run(10);
    assert.deepEqual([bench.gpu.network, bench.gpu.failure], ["none", "slower"]);
  }
});

test("where the decoder runs a smaller network, the GPU needs only be in time", async () => {
  const bench = new Bench();
  [bench.own, bench.ownMs] = ["xxs", 3];
  bench.gpuMs = 10;
  await bench.used();
  await bench.run(20);
  assert.equal(bench.gpu.network, "xs");
  const late = new Bench();
  [late.own, late.ownMs] = ["xxs", 3];
  late.gpuMs = 20;
  await late.run(120);
  assert.deepEqual([late.gpu.network, late.gpu.failure], ["none", "late"]);
});

/** A track whose decoder has run less than the largest network for long, and whose workers run that. */
async function short(): Promise<Bench> {
  const bench = new Bench({ purpose: "larger" });
  [bench.own, bench.ownMs, bench.gpuMs] = ["xxs", 5, 12];
  await bench.run(590);
  assert.equal(bench.loads, 0);
  for (let i = 0; i < 60 && bench.gpu.network === "none"; i++) await bench.run(1);
  assert.equal(bench.gpu.network, "xs");
  return bench;
}

test("workers are left alone while the decoder has time for the largest network, and for a while after a hiccup", async () => {
  const bench = new Bench({ purpose: "larger" });
  await bench.run(200);
  bench.own = "xxs";
  await bench.run(400);
  bench.own = "xs";
  await bench.run(10);
  bench.own = "xxs";
  await bench.run(400);
  assert.equal(bench.loads, 0);
});

test("workers end once the decoder has had time for some seconds", async () => {
  const bench = await short();
  await bench.run(200);
  assert.equal(bench.gpu.network, "xs");
  bench.gpuMs = 5;
  await bench.run(100);
  assert.equal(bench.gpu.network, "xs");
  await bench.run(80);
  assert.deepEqual([bench.gpu.network, bench.gpu.failure, bench.disposed], ["none", null, 1]);
});

test("after another size workers end where the decoder runs the largest network before they do", async () => {
  const bench = await short();
  bench.gpu.begin("16x8", 2);
  bench.own = "xs";
  await bench.run(3);
  assert.deepEqual([bench.gpu.network, bench.gpu.failure, bench.disposed], ["none", null, 1]);
});

test("on battery no workers run", async () => {
  const bench = await short();
  bench.gpu.limit("xxs");
  [bench.own, bench.ownMs] = ["none", 0];
  await bench.run(900);
  assert.deepEqual([bench.gpu.network, bench.loads], ["none", 1]);
});

test("nothing is loaded where no network may run, and where none is for the scale", async () => {
  const none = new Bench({ max: "none" });
  await none.run(120);
  assert.deepEqual([none.loads, none.gpu.failure], [0, null]);
  const third = new Bench({ max: "xxs" });
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
});

test("a script that cannot be loaded, or never is, is reported and not tried again", async () => {
  for (const load of ["fails", "never"] as const) {
    const bench = new Bench();
    bench.load = load;
    await bench.run(100);
    for (let second = 0; second < 100; second++, bench.now += 1000) await bench.run(1);
    assert.deepEqual([bench.gpu.failure, bench.loads], ["no_script", 1]);
  }
});

test("an error of no known reason may pass", async () => {
  const bench = new Bench();
  await bench.used();
  bench.fault = "unknown";
  await bench.run(1);
  assert.equal(bench.gpu.failure, "device_lost");
  bench.fault = null;
  bench.now += 61_000;
  await bench.run(1);
  assert.equal(bench.loads, 2);
});

test("tracks try at different times", async () => {
  const [early, late] = [new Bench({ random: 0 }), new Bench({ random: 1 })];
  await early.run(74);
  await late.run(118);
  assert.deepEqual([early.loads, late.loads], [1, 0]);
  for (const bench of [early, late]) {
    await bench.used();
    bench.fault = "stalled";
    await bench.run(1);
    bench.fault = null;
    bench.now += 60_000;
    await bench.run(1);
  }
  assert.deepEqual([early.loads, late.loads], [2, 1]);
});

test("the decoder's network goes on while a start never ends", async () => {
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

test("all pictures are shown in order, those that the GPU has no time for as they are", async () => {
  const bench = new Bench({ forced: true });
  await bench.used();
  await bench.run(2);
  bench.gpuMs = 80;
  const shown = [...(await bench.run(30))];
  const first = Number.parseInt(shown[0] as string, 10);
  assert.deepEqual(
    shown.map((one) => Number.parseInt(one, 10)),
    shown.map((_, i) => first + i),
  );
  assert.ok(shown.length >= 27, "four wait at most");
  const made = shown.filter((one) => one.endsWith("+")).length;
  assert.ok(made >= 15, `${shown}`);
  assert.ok(Math.abs(bench.gpu.skipped + made - shown.length) <= 4, `${bench.gpu.skipped} of ${shown.length} skipped`);
});

test("frames that come all at once lose no picture, and do not end it", async () => {
  const bench = new Bench();
  await bench.used();
  for (let burst = 0; burst < 4; burst++) {
    const shown = [...(await bench.run(12))];
    bench.pace = 3;
    shown.push(...(await bench.run(8)));
    bench.pace = INTERVAL_MS;
    shown.push(...(await bench.run(4)));
    assert.equal(shown.length, 24, `${shown}`);
    const numbers = shown.map((one) => Number.parseInt(one, 10));
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
    );
    bench.gpuMs = 14;
  }
  assert.deepEqual([bench.gpu.network, bench.gpu.failure], ["xs", null]);
});

test("a GPU without room for pictures that come in time ends", async () => {
  const bench = new Bench();
  await bench.used();
  bench.gpuMs = 150;
  await bench.run(8);
  assert.deepEqual([bench.gpu.network, bench.gpu.failure], ["none", "late"]);
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
  assert.equal(bench.own, "none", "nor does the decoder run one");
});

test("pictures that take too long leave the network to the decoder", async () => {
  const bench = new Bench();
  await bench.used();
  bench.gpuMs = 60;
  await bench.run(12);
  assert.deepEqual([bench.gpu.failure, bench.own], ["late", "xs"]);
});

test("what was too slow at one size is tried at another at once, and what was lost is not", async () => {
  for (const [reason, loads] of [
    ["out_of_memory", 2],
    ["device_lost", 1],
  ] as const) {
    const bench = new Bench();
    await bench.used();
    bench.fault = reason;
    await bench.run(1);
    bench.fault = null;
    bench.gpu.begin("16x8", 2);
    await bench.run(100);
    assert.equal(bench.loads, loads, reason);
  }
});

test("with nothing to run the GPU is freed without a reason, and what waits is shown as it is", async () => {
  const bench = new Bench();
  await bench.used();
  bench.gpuMs = 40;
  await bench.run(1);
  bench.gpu.stop();
  assert.deepEqual([bench.gpu.network, bench.gpu.failure, bench.disposed], ["none", null, 1]);
  assert.equal(bench.shown.length, 1);
  assert.doesNotMatch(bench.shown[0] ?? "", /\+/);
  await bench.run(50);
  assert.equal(bench.loads, 1);
});

test("a picture that cannot be shown is an error of the worker, and the next ones go on", async () => {
  const reported: unknown[] = [];
  Object.assign(globalThis, { reportError: (error: unknown) => reported.push(error) });
  const bench = new Bench();
  await bench.used();
  const low = { bytes: new Uint8Array(256), width: 16, height: 16, stride: 16 };
  const error = new Error("no picture");
  bench.gpu.run({ low, high: picture(), kept: new Uint8Array(4) }, () => {
    throw error;
  });
  const shown = await bench.run(6);
  assert.deepEqual(reported, [error]);
  assert.ok(shown.length === 6 && shown.every((one) => one.endsWith("+")), `${shown}`);
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

test("another size is timed again in the same backend, another scale takes another one", async () => {
  const bench = new Bench();
  await bench.used();
  bench.gpu.begin("16x8", 2);
  assert.equal(bench.gpu.network, "none");
  await bench.used();
  assert.deepEqual(bench.started, ["xs x2"]);
  bench.gpuMs = 40;
  await bench.run(1);
  bench.scale = 4;
  bench.gpu.begin("16x8", 4);
  assert.equal(bench.shown.length, 1, "what was under way is shown before the next");
  bench.gpuMs = 4;
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
  assert.deepEqual([shown.length, bench.gpu.skipped], [3, 0]);
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
