import assert from "node:assert/strict";
import { test } from "node:test";
import { NetworkChoice, type NetworkTier } from "./network-choice.js";
import { type Outside, TrackNetworks } from "./track-networks.js";

/** Networks of a track whose GPU does as the test says, after enough quick frames for one in the decoder. */
function running() {
  const gpu = {
    network: "none" as NetworkTier,
    get backend() {
      return gpu.network === "none" ? null : ("webgpu" as const);
    },
    failure: null as Outside["failure"],
    pictureMs: null as number | null,
    skipped: 0,
    /** Whether the GPU ends its network, as the worker has no time. */
    overloaded: false,
    rests: 0,
    limit: () => undefined,
    begin: () => undefined,
    rest: () => void gpu.rests++,
    frame: () => gpu.overloaded,
  };
  const networks = new TrackNetworks("xs", gpu, new NetworkChoice("xs", () => 0));
  let now = 0;
  const run = (frames: number) => {
    for (let i = 0; i < frames; i++) {
      now += 40;
      networks.begin("320x180", 2);
      networks.frame(now, 1, 40, 0, networks.own);
    }
  };
  run(200);
  const stats = (shown = true, hindrance: "size" | "slow" | null = null) => networks.stats(now, shown, () => hindrance);
  return { gpu, networks, run, stats };
}

test("the decoder runs no network while the GPU runs one", () => {
  const { gpu, networks, stats } = running();
  assert.deepEqual([networks.own, networks.none, stats().networkBackend], ["xs", false, "wasm"]);
  gpu.network = "xxs";
  assert.deepEqual([networks.own, networks.none], ["none", false]);
  assert.deepEqual([stats().network, stats().networkBackend, stats().networkAbsence], ["xxs", "webgpu", null]);
});

test("a worker that has no time with the GPU's network gets none in the decoder", () => {
  const { gpu, networks, run } = running();
  gpu.network = "xs";
  gpu.overloaded = true;
  run(1);
  gpu.network = "none";
  assert.ok(networks.none);
});

test("a machine without time runs no network anywhere", () => {
  const { gpu, networks, stats } = running();
  networks.rest();
  assert.deepEqual([networks.none, gpu.rests, stats().networkAbsence], [true, 1, "slow"]);
});

test("a network begins and ends with the pictures that show it, and each change is seen once", () => {
  const { networks } = running();
  const seen = [false, true, true, false].map((shown) => networks.changed(shown));
  assert.deepEqual(seen, [false, true, false, true]);
  networks.changed(true);
  networks.limit("none");
  assert.ok(networks.changed(true));
});

test("why no network runs is why no pictures are made, unless it may not run at all", () => {
  const { networks, stats } = running();
  assert.equal(stats(false, "size").networkAbsence, "size");
  assert.equal(stats(false, "slow").networkAbsence, "slow");
  assert.equal(stats(false).networkAbsence, "trying");
  networks.limit("none");
  assert.equal(stats(false, "size").networkAbsence, "off");
});
