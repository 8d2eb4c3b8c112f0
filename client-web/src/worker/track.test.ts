import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../sdk/testing/clock.js";
import type { FromWorker } from "./messages.js";
import { type FrameNetwork, NetworkFailure } from "./network/backend.js";
import { OutsideNetwork } from "./network/outside-network.js";
import { OutsideNetworks } from "./network/outside-networks.js";
import type { NetworkTier } from "./network-choice.js";
import type { PictureHost } from "./picture-decoder.js";
import { type TrackDecoder, TrackPipeline } from "./track.js";
import type { AnchorOutcome, Effort } from "./wasm.js";

const KEY = new Uint8Array([0x82, 0x49, 0x83, 0x42, 0, 0x13, 0xf0, 0x0b, 0x30, 0, 0, 0]); // 320×180
const INTER = new Uint8Array([0x86, 0, 0]);
const INTERVAL_MS = 40;

/** A pipeline over a decoder that does as the test says, 25 frames a second. */
class Bench {
  now = 1_000_000;
  /** Whether the decoder's pictures have detail of anchors. */
  detail = false;
  broken = false;
  outcome: AnchorOutcome = "applied";
  shown = 0;
  /** Whether the picture can be refreshed, and how often it was. */
  stale = false;
  refreshed = 0;
  /** Networks that the decoder ran on frames and refreshed pictures, one after another. */
  readonly ran: string[] = [];
  keyRequests = 0;
  scales: number[] = [];
  effort: Effort = "full";
  network: NetworkTier = "none";
  /** Decode time of a frame, milliseconds. */
  decodeMs = 0;
  /** What the decoder's network adds. */
  ownMs = 0;
  decay = { lost: 0, frames: 0 };
  private frames = 0;
  private keyNext = true;
  private readonly posted: FromWorker[] = [];
  /** The GPU's network, where the browser has one, and whether its device is lost. */
  readonly backend: FrameNetwork = {
    scale: 2,
    run: async () => {
      if (this.deviceLost) throw new NetworkFailure("device_lost", "planted");
      return true;
    },
    dispose: () => void this.disposed++,
  };
  disposed = 0;
  deviceLost = false;
  /** The browser's decoder of other codecs: who gets its pictures, and what frames it got. */
  browser: PictureHost | null = null;
  readonly given: [string, number][] = [];
  resets = 0;
  readonly pipeline: TrackPipeline;

  constructor({ webGpu = false, forced = true } = {}) {
    const decoder: TrackDecoder = {
      rescale: (scale) => void this.scales.push(scale),
      setEffort: (effort) => {
        this.effort = effort;
      },
      setNetwork: (network) => {
        this.network = network;
      },
      pushFrame: () => {
        if (this.broken) throw new Error("trap");
        this.now += this.decodeMs + (this.network === "none" ? 0 : this.ownMs);
        this.stale = false;
        this.ran.push(this.network);
        return { shown: true, detail: this.detail };
      },
      pushPicture: () => decoder.pushFrame(0, INTER),
      pushMessage: () => {
        if (this.outcome === "applied") this.stale = true;
        return this.outcome;
      },
      refresh: () => {
        const stale = this.stale;
        this.stale = false;
        if (stale) {
          this.refreshed++;
          this.ran.push(`${this.network} (refreshed)`);
        }
        return stale;
      },
      decay: () => this.decay,
      hr: () => ({
        width: 2,
        height: 2,
        bytes: new Uint8Array(6),
        layout: [
          { offset: 0, stride: 2 },
          { offset: 4, stride: 1 },
          { offset: 5, stride: 1 },
        ],
      }),
      low: () => ({ bytes: new Uint8Array(1), width: 1, height: 1, stride: 1 }),
      kept: () => new Uint8Array(1),
      reset: () => undefined,
    };
    const host = {
      clock: () => this.now,
      show: () => void this.shown++,
      post: (message: FromWorker) => void this.posted.push(message),
      requestKeyFrame: () => void this.keyRequests++,
      wake: () => this.pipeline.show(),
    };
    const load = async () => ({ version: "", startBuiltIn: async () => this.backend });
    const network = new OutsideNetwork("xs", webGpu ? load : null, forced, () => this.now);
    const outside = new OutsideNetworks([{ name: "webgpu", network }]);
    const make = (_: WebAssembly.Module, scale: number) => {
      this.scales.push(scale);
      return decoder;
    };
    this.pipeline = new TrackPipeline(host, 600_000, 3, "xs", outside, make, (pictures) => {
      this.browser = pictures;
      return {
        pending: 0,
        decode: (codec, { rtpTimestamp }) => this.given.push([codec, rtpTimestamp]),
        reset: () => void this.resets++,
      };
    });
    this.pipeline.start({} as WebAssembly.Module);
  }

  /** The next frame is a key frame. */
  begin(): void {
    this.keyNext = true;
  }

  /** Receives frames, without those of `lost`; the first is a key frame. */
  run(count: number, { lost = [] as number[] } = {}): void {
    for (let i = 0; i < count; i++) {
      this.now += INTERVAL_MS;
      const id = this.frames++;
      if (!lost.includes(i)) {
        this.pipeline.frame({ rtpTimestamp: id * 3600, frameId: id, data: this.keyNext ? KEY : INTER, other: null });
        this.keyNext = false;
      }
      while (this.pipeline.pump());
      this.pipeline.show();
    }
  }

  /** Receives frames, and lets the GPU make their pictures. */
  async runOnGpu(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      this.run(1);
      await settle();
    }
  }

  /** Lets time pass without frames. */
  idle(ms: number): void {
    for (const end = this.now + ms; this.now < end; this.now++) {
      if (this.pipeline.waitMs() !== 0) continue;
      while (this.pipeline.pump());
      this.pipeline.show();
    }
  }

  anchor(outcome: AnchorOutcome, { tiled = false, rtpTimestamp = 0 } = {}): void {
    this.outcome = outcome;
    const message = new DataView(new ArrayBuffer(30));
    message.setUint8(0, 1);
    message.setUint8(1, 1);
    message.setUint8(3, tiled ? 1 : 0);
    message.setUint16(12, 1);
    message.setUint32(16, rtpTimestamp);
    this.pipeline.message(message.buffer);
  }

  /** The number of requests for key anchors since the last call. */
  keyAnchorRequests(): number {
    return this.posted.splice(0).filter((m) => m.type === "keyAnchor").length;
  }

  /** The networks of the statistics posted since the last call, and why none runs. */
  networks(): string[] {
    return this.posted
      .splice(0)
      .flatMap((m) => (m.type === "stats" ? [`${m.stats.network}, ${m.stats.networkAbsence}`] : []));
  }

  /** The states posted since the last call. */
  states(): string[] {
    return this.posted
      .splice(0)
      .flatMap((m) => (m.type === "state" ? [m.state === "native" ? `native: ${m.reason}` : m.state] : []));
  }
}

Object.assign(globalThis, {
  VideoFrame: class {
    close(): void {}
  },
});

test("the rebuilt picture is shown from the first frame on, before any anchor", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  assert.deepEqual(bench.states(), ["rebuilt"]);
  assert.equal(bench.shown, 3);
  assert.deepEqual(bench.scales, [3]);
  assert.equal(bench.pipeline.stats().enhancedFps, 0);
});

test("a slow machine searches less thoroughly before it gives up", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 2);
  bench.run(60);
  assert.equal(bench.effort, "full");
  bench.decodeMs = 38;
  bench.run(50);
  assert.equal(bench.effort, "little");
  assert.equal(bench.pipeline.stats().pauses, 0);
  bench.run(50);
  assert.equal(bench.pipeline.stats().pauses, 1);
});

test("another scale needs no key frame, and a key anchor before tiles are of use", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  bench.anchor("applied");
  bench.anchor("applied", { tiled: true });
  assert.equal(bench.keyAnchorRequests(), 0);
  bench.pipeline.setRung(true, 4);
  bench.pipeline.setRung(true, 4);
  bench.run(3);
  assert.deepEqual(bench.scales, [3, 4], "once, in the same decoder");
  assert.equal(bench.shown, 6);
  assert.equal(bench.keyRequests, 0);
  bench.anchor("applied", { tiled: true });
  assert.equal(bench.keyAnchorRequests(), 1);
});

test("what the former scale's anchors had bettered is not shown as theirs", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  bench.anchor("applied");
  bench.pipeline.setRung(true, 4);
  bench.idle(200);
  assert.equal(bench.refreshed, 0);
  assert.deepEqual(bench.states(), ["rebuilt"]);
});

test("a scale that there is not, or of a plain rung, changes nothing", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  bench.pipeline.setRung(true, 7);
  bench.pipeline.setRung(false, 4);
  assert.deepEqual(bench.scales, [3]);
});

test("of pictures in several spatial layers the native one is shown, and of one the rebuilt one again", () => {
  const bench = new Bench();
  bench.pipeline.setRung(false, 2, true);
  bench.run(3);
  assert.deepEqual(bench.states(), ["native: codec"]);
  assert.equal(bench.shown, 0);
  bench.run(100);
  assert.equal(bench.keyRequests, 0, "none would help");
  bench.pipeline.setRung(false, 2, false);
  assert.equal(bench.keyRequests, 1);
  bench.begin();
  bench.run(3);
  assert.equal(bench.states().at(-1), "rebuilt");
  bench.pipeline.setRung(false, 2, true);
  assert.equal(bench.states().at(-1), "native: codec");
});

test("a decoder that is made later has the scale of then", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 4);
  bench.run(3);
  assert.deepEqual(bench.scales, [4]);
});

test("the state is enhanced as soon as anchors have a part in the picture", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  bench.detail = true;
  bench.run(3);
  assert.deepEqual(bench.states(), ["rebuilt", "enhanced"]);
  assert.ok(bench.pipeline.stats().enhancedFps > 0);
});

test("anchors that stay away are no reason for the native picture", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(1000);
  assert.deepEqual(bench.states(), ["rebuilt"]);
  assert.equal(bench.shown, 1000);
});

test("pictures of a plain rung are rebuilt as well", () => {
  const bench = new Bench();
  bench.run(3);
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  bench.pipeline.setRung(false, 2);
  bench.run(3);
  assert.deepEqual(bench.states(), ["rebuilt"]);
  assert.equal(bench.shown, 9);
  assert.equal(bench.keyRequests, 0);
});

test("pictures are made as large as they are shown, and no larger than anchors are made for", () => {
  const bench = new Bench();
  bench.run(3);
  bench.pipeline.setPlace({ width: 1280, height: 720 });
  bench.pipeline.setRung(true, 2);
  bench.pipeline.setRung(true, 4);
  bench.pipeline.setPlace({ width: 640, height: 360 });
  bench.pipeline.setPlace({ width: 0, height: 0 });
  bench.run(3);
  assert.deepEqual(bench.scales, [3, 4, 2, 4, 2], "what is out of sight keeps its size");
  assert.equal(bench.shown, 6);
});

test("a picture that fills its place is the native one, and is decoded again from a key frame where the place grows", () => {
  const bench = new Bench();
  bench.run(3);
  bench.pipeline.setPlace({ width: 320, height: 180 });
  bench.run(3);
  assert.deepEqual(bench.states(), ["rebuilt", "native: fills"]);
  assert.equal(bench.shown, 3);
  bench.pipeline.setPlace({ width: 1280, height: 720 });
  assert.equal(bench.keyRequests, 1);
  assert.deepEqual(bench.scales, [3, 4]);
  bench.begin();
  bench.run(3);
  assert.deepEqual(bench.states(), ["native: starting", "rebuilt"]);
  assert.equal(bench.shown, 6);
});

test("a machine that does not keep up with large pictures makes smaller ones", () => {
  const bench = new Bench();
  bench.pipeline.setPlace({ width: 1280, height: 720 });
  bench.run(60);
  bench.decodeMs = 38;
  // The network goes first.
  bench.run(80);
  assert.deepEqual([bench.scales.at(-1), bench.effort], [3, "little"]);
  bench.run(40);
  assert.equal(bench.scales.at(-1), 2);
  assert.equal(bench.pipeline.stats().pauses, 0);
});

test("a gap falls back to the native picture and asks for a key frame", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  bench.run(30, { lost: [2] });
  assert.deepEqual(bench.states(), ["rebuilt", "native: gap"]);
  assert.ok(bench.keyRequests > 0);
});

test("a trap falls back to the native picture", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  bench.broken = true;
  bench.run(1);
  assert.deepEqual(bench.states(), ["rebuilt", "native: fault"]);
});

test("without an anchor of the whole picture, tiles ask for one, once a second", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  bench.anchor("applied", { tiled: true });
  bench.anchor("applied", { tiled: true });
  assert.equal(bench.keyAnchorRequests(), 1);
  bench.run(30);
  bench.anchor("applied-late", { tiled: true });
  assert.equal(bench.keyAnchorRequests(), 1);
  bench.anchor("applied");
  bench.run(30);
  bench.anchor("applied", { tiled: true });
  assert.equal(bench.keyAnchorRequests(), 0);
});

test("a key anchor that came before its frame counts, and a decoder that begins again needs another", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(1);
  bench.anchor("early", { rtpTimestamp: 3600 });
  bench.run(1);
  bench.anchor("applied", { tiled: true });
  assert.equal(bench.keyAnchorRequests(), 0);
  bench.pipeline.restart(true);
  bench.begin();
  bench.run(1);
  bench.anchor("applied", { tiled: true });
  assert.equal(bench.keyAnchorRequests(), 1);
});

test("what becomes of anchors is counted by kind", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(3);
  const outcomes: AnchorOutcome[] = ["applied", "applied-late", "duplicate", "former-epoch", "former-epoch", "lost"];
  for (const outcome of outcomes) bench.anchor(outcome);
  const stats = bench.pipeline.stats();
  assert.deepEqual(
    [stats.anchorsUsed, stats.anchorsLate, stats.anchorsDuplicate, stats.anchorsFormerEpoch, stats.anchorsLost],
    [2, 1, 1, 2, 1],
  );
});

test("an anchor is left to the next frame, which makes the picture from scratch anyway", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(5);
  for (let i = 0; i < 5; i++) {
    bench.anchor("applied");
    assert.ok((bench.pipeline.waitMs() as number) <= 50);
    bench.run(1);
  }
  assert.deepEqual([bench.refreshed, bench.shown, bench.pipeline.waitMs()], [0, 10, null]);
});

test("where no frame comes the picture on the screen is bettered after 50 ms", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(5);
  bench.anchor("applied");
  bench.idle(49);
  assert.deepEqual([bench.refreshed, bench.shown], [0, 5]);
  bench.idle(30);
  assert.deepEqual([bench.refreshed, bench.shown], [1, 6]);
  assert.deepEqual(bench.states(), ["rebuilt", "enhanced"]);
  bench.idle(500);
  assert.equal(bench.refreshed, 1);
});

test("an anchor that nothing can be done with leaves the picture alone", () => {
  const bench = new Bench();
  bench.pipeline.setRung(true, 3);
  bench.run(5);
  bench.anchor("lost");
  bench.idle(200);
  assert.deepEqual([bench.refreshed, bench.shown], [0, 5]);
});

test("a machine with time to spare runs a network on every frame, and one that is too slow none", () => {
  const bench = new Bench();
  bench.pipeline.setPlace({ width: 640, height: 360 });
  bench.decodeMs = 4;
  bench.run(120);
  assert.equal(bench.network, "xs");
  bench.decodeMs = 36;
  bench.run(20);
  assert.equal(bench.network, "none");
});

test("a network that begins or ends is reported at once, and why", () => {
  const bench = new Bench();
  bench.pipeline.setPlace({ width: 640, height: 360 });
  bench.decodeMs = 4;
  bench.run(120);
  assert.deepEqual(bench.networks(), ["xxs, null"]);
  bench.decodeMs = 36;
  bench.run(20);
  assert.deepEqual(bench.networks(), ["none, slow"]);
  bench.decodeMs = 4;
  bench.run(900);
  assert.deepEqual(bench.networks(), ["xxs, null"]);
  bench.pipeline.limitNetworks("none");
  assert.deepEqual(bench.networks(), ["none, off"]);
  bench.pipeline.setPlace({ width: 320, height: 180 });
  bench.pipeline.limitNetworks("xs");
  assert.equal(bench.pipeline.stats().networkAbsence, "size", "a picture that fills its place");
});

test("while the GPU runs the network the decoder runs none; a lost device brings its own back, and no picture is missing", async () => {
  const bench = new Bench({ webGpu: true });
  bench.pipeline.setPlace({ width: 640, height: 360 });
  bench.decodeMs = 4;
  await bench.runOnGpu(20);
  const on = bench.pipeline.stats();
  assert.deepEqual([on.network, on.networkBackend, on.networkFailure, bench.network], ["xs", "webgpu", null, "none"]);
  bench.deviceLost = true;
  await bench.runOnGpu(2);
  const lost = bench.pipeline.stats();
  assert.deepEqual([lost.networkBackend, lost.networkFailure], [null, "device_lost"]);
  await bench.runOnGpu(120);
  const off = bench.pipeline.stats();
  assert.deepEqual([off.network, off.networkBackend, bench.network], ["xs", "wasm", "xs"]);
  assert.deepEqual([bench.shown, off.networkSkipped], [142, 0]);
});

/** A track whose network runs on the GPU. */
async function onGpu(): Promise<Bench> {
  const bench = new Bench({ webGpu: true });
  bench.pipeline.setPlace({ width: 640, height: 360 });
  await bench.runOnGpu(20);
  assert.equal(bench.pipeline.stats().networkBackend, "webgpu");
  return bench;
}

test("a picture that is refreshed has its network from the decoder or from the GPU, and not from both", async () => {
  const bench = new Bench({ webGpu: true });
  bench.pipeline.setPlace({ width: 640, height: 360 });
  bench.decodeMs = 4;
  bench.pipeline.limitNetworks("none");
  bench.run(3);
  bench.pipeline.limitNetworks("xs");
  bench.run(70);
  assert.equal(bench.network, "xs");
  // The GPU takes over after a frame.
  const { ran } = bench;
  for (let i = 0; i < 30 && bench.pipeline.stats().networkBackend !== "webgpu"; i++) await bench.runOnGpu(1);
  assert.equal(ran.at(-1), "xs");
  bench.anchor("applied");
  bench.idle(60);
  assert.equal(ran.at(-1), "none (refreshed)");
  // And ends after a frame.
  await bench.runOnGpu(3);
  assert.equal(ran.at(-1), "none");
  bench.deviceLost = true;
  await bench.runOnGpu(1);
  bench.anchor("applied");
  bench.idle(60);
  assert.equal(ran.at(-1), "xs (refreshed)");
});

test("the GPU is freed where nothing is rebuilt: without a track, where the picture fills its place or is too large", async () => {
  const large = new Uint8Array([0x82, 0x49, 0x83, 0x42, 0, 0x77, 0xf0, 0x43, 0x70, 0, 0, 0]); // 1920×1080
  const reasons: ((bench: Bench) => void)[] = [
    ({ pipeline }) => pipeline.restart(false),
    ({ pipeline }) => pipeline.setPlace({ width: 320, height: 180 }),
    ({ pipeline }) => pipeline.frame({ rtpTimestamp: 1e6, frameId: 1000, data: large, other: null }),
  ];
  for (const nothing of reasons) {
    const bench = await onGpu();
    nothing(bench);
    const { networkBackend, networkFailure } = bench.pipeline.stats();
    assert.deepEqual([bench.disposed, networkBackend, networkFailure], [1, null, null], `${nothing}`);
  }
});

test("a worker that is too slow with the network on the GPU has none in the decoder either", async () => {
  const bench = new Bench({ webGpu: true, forced: false });
  bench.pipeline.setPlace({ width: 640, height: 360 });
  bench.decodeMs = 4;
  bench.ownMs = 8;
  await bench.runOnGpu(200);
  assert.deepEqual([bench.pipeline.stats().networkBackend, bench.pipeline.stats().network], ["webgpu", "xs"]);
  bench.decodeMs = 34;
  for (let i = 0; i < 20 && bench.pipeline.stats().networkFailure === null; i++) await bench.runOnGpu(1);
  assert.equal(bench.pipeline.stats().networkFailure, "late");
  await bench.runOnGpu(3);
  assert.equal(bench.network, "none");
});

/** A frame of H.264. */
function h264(id: number, { key = id === 0, width = 320, height = 180 } = {}) {
  const other = { codec: "h264" as const, key, width, height };
  return { rtpTimestamp: id * 3600, frameId: id, data: new Uint8Array(4), other };
}

/** A picture of the browser's decoder. */
const picture = (width: number, height: number) => ({ width, height, data: new Uint8Array(1), colour: null });

test("frames of another codec are decoded by the browser, in order, and rebuilt", () => {
  const bench = new Bench();
  for (const id of [0, 2, 1]) bench.pipeline.frame(h264(id));
  while (bench.pipeline.pump());
  assert.deepEqual(
    bench.given,
    [0, 1, 2].map((id) => ["h264", id * 3600]),
  );
  assert.equal(bench.ran.length, 0, "no picture has come");
  for (const [, rtpTimestamp] of bench.given) bench.browser?.decoded(rtpTimestamp, picture(320, 180));
  assert.equal(bench.ran.length, 3);
  assert.deepEqual(bench.pipeline.stats().lr, { width: 320, height: 180 });
});

test("a picture that fills its place is not rebuilt, though its size was not known before", () => {
  const bench = new Bench();
  bench.pipeline.setPlace({ width: 320, height: 180 });
  bench.pipeline.frame(h264(0, { width: 0, height: 0 }));
  while (bench.pipeline.pump());
  bench.browser?.decoded(0, picture(320, 180));
  assert.deepEqual([bench.ran.length, bench.states().at(-1)], [0, "native: fills"]);
});

test("where the browser cannot decode the codec the native picture stays, and a fault asks for a key frame", () => {
  const bench = new Bench();
  bench.pipeline.frame(h264(0));
  while (bench.pipeline.pump());
  bench.browser?.failed(false);
  assert.deepEqual([bench.states().at(-1), bench.keyRequests], ["native: fault", 1]);
  bench.pipeline.frame(h264(1, { key: true }));
  while (bench.pipeline.pump());
  bench.browser?.failed(true);
  assert.equal(bench.states().at(-1), "native: codec");
  bench.pipeline.frame(h264(2, { key: true }));
  while (bench.pipeline.pump());
  assert.equal(bench.given.length, 2, "it is not tried again");
});

test("a key frame that does not say its size is decoded to learn it, also where nothing is rebuilt", () => {
  const bench = new Bench();
  const key = (id: number) => {
    bench.pipeline.frame(h264(id, { key: true, width: 0, height: 0 }));
    while (bench.pipeline.pump());
  };
  key(0);
  bench.browser?.tooLarge({ width: 1280, height: 720 });
  assert.equal(bench.states().at(-1), "native: too-large");
  key(1);
  bench.browser?.decoded(3600, picture(320, 180));
  assert.deepEqual([bench.ran.length, bench.keyRequests], [0, 1], "its frames were not kept");
  key(2);
  bench.browser?.decoded(7200, picture(320, 180));
  assert.deepEqual([bench.ran.length, bench.given.length], [1, 3]);
});

test("another track, and VP9 after another codec, have nothing of the browser's decoder", () => {
  const bench = new Bench();
  bench.pipeline.frame(h264(0));
  while (bench.pipeline.pump());
  const before = bench.resets;
  bench.pipeline.frame({ rtpTimestamp: 3600, frameId: 1, data: KEY, other: null });
  while (bench.pipeline.pump());
  assert.deepEqual([bench.resets, bench.ran.length], [before + 1, 1]);
  bench.browser?.failed(true);
  bench.pipeline.restart(true);
  bench.pipeline.frame(h264(9, { key: true }));
  while (bench.pipeline.pump());
  assert.equal(bench.given.length, 2, "a codec is tried again for another track");
});

test("statistics are of one track, and a decoder too, as it learns from stills", () => {
  const bench = new Bench();
  bench.run(2);
  bench.anchor("applied");
  bench.run(1);
  assert.deepEqual([bench.pipeline.stats().anchorsUsed, bench.pipeline.stats().detailFrom], [1, "enhanced"]);
  bench.pipeline.restart(true);
  assert.deepEqual([bench.pipeline.stats().anchorsUsed, bench.pipeline.stats().detailFrom], [0, null]);
  const made = bench.scales.length;
  bench.begin();
  bench.run(1);
  assert.equal(bench.scales.length, made + 1);
});
