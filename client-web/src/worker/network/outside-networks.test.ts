import assert from "node:assert/strict";
import { test } from "node:test";
import type { NetworkTier } from "../network-choice.js";
import type { FailureReason } from "./backend.js";
import type { OutsideNetwork } from "./outside-network.js";
import { OutsideNetworks } from "./outside-networks.js";

/** A backend that does as the test says. */
function planted() {
  const backend = {
    network: "none" as NetworkTier,
    failure: null as FailureReason | null,
    skipped: 1,
    pictureMs: null as number | null,
    frames: 0,
    stops: 0,
    runs: 0,
    frame: () => {
      backend.frames++;
      return false;
    },
    stop: () => {
      backend.stops++;
      backend.network = "none";
    },
    run: () => {
      backend.runs++;
      return backend.network !== "none";
    },
  };
  return backend;
}

function two() {
  const [gpu, workers] = [planted(), planted()];
  const of = (backend: ReturnType<typeof planted>) => backend as unknown as OutsideNetwork;
  const outside = new OutsideNetworks([
    { name: "webgpu", network: of(gpu) },
    { name: "workers", network: of(workers) },
  ]);
  const frame = () => outside.frame(5, 33, "xxs");
  return { gpu, workers, outside, frame };
}

test("the second backend is tried once the first has said why it is not used", () => {
  const { gpu, workers, outside, frame } = two();
  frame();
  assert.deepEqual([gpu.frames, workers.frames], [1, 0]);
  gpu.failure = "no_webgpu";
  frame();
  assert.deepEqual([gpu.frames, workers.frames], [2, 1]);
  workers.network = "xs";
  workers.pictureMs = 9;
  assert.deepEqual(
    [outside.network, outside.backend, outside.failure, outside.pictureMs, outside.skipped],
    ["xs", "workers", "no_webgpu", 9, 2],
  );
});

test("the second ends where the first runs after all", () => {
  const { gpu, workers, outside, frame } = two();
  gpu.failure = "late";
  workers.network = "xs";
  frame();
  assert.equal(outside.backend, "workers");
  [gpu.network, gpu.failure] = ["xs", null];
  frame();
  assert.deepEqual([outside.backend, workers.stops], ["webgpu", 1]);
});

test("a picture is timed by a backend that is tried, and made by the one that runs", () => {
  const { gpu, workers, outside } = two();
  workers.network = "xs";
  assert.ok(outside.run({} as never, () => undefined));
  assert.deepEqual([gpu.runs, workers.runs], [1, 1]);
});

test("without a backend no network runs outside of the decoder", () => {
  const outside = new OutsideNetworks([]);
  outside.stop();
  assert.deepEqual(
    [outside.network, outside.backend, outside.failure, outside.frame(5, 33, "xs")],
    ["none", null, null, false],
  );
});
