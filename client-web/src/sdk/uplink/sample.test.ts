import assert from "node:assert/strict";
import { test } from "node:test";
import type { LayerRequest } from "../protocol.js";
import { layerSettings } from "./layers.js";
import { UplinkSampler } from "./sample.js";

const PATH = [
  { id: "old", type: "candidate-pair", availableOutgoingBitrate: 9e9 },
  { id: "pair", type: "candidate-pair", availableOutgoingBitrate: 300_000 },
  { id: "T", type: "transport", selectedCandidatePairId: "pair" },
];
const low = (second: number, frames: number, encodeS: number) => [
  ...PATH,
  { id: "S", type: "media-source", framesPerSecond: 30 },
  {
    id: "q",
    type: "outbound-rtp",
    rid: "q",
    timestamp: second * 1000,
    framesEncoded: frames,
    totalEncodeTime: encodeS,
    targetBitrate: 90_000,
    qualityLimitationReason: "bandwidth",
  },
];

test("rates are those since the last look", () => {
  const sampler = new UplinkSampler();
  const settings = layerSettings("q", new Map());
  assert.equal(sampler.sample(low(1, 30, 0.1), settings).lowFps, null);
  assert.deepEqual(sampler.sample(low(3, 80, 0.5), settings), {
    availableKbps: 300,
    lowCapKbps: 150,
    firstKbps: 150,
    lowTargetKbps: 90,
    wantedFps: 30,
    lowFps: 25,
    limited: "bandwidth",
    served: true,
    encodeShare: 0.2,
  });
});

test("a layer that is capped lower has enough with less", () => {
  const settings = layerSettings(
    "q",
    new Map([["q", { kbps: 120, fps: undefined, active: undefined, needed: undefined }]]),
  );
  const sampler = new UplinkSampler();
  sampler.sample(low(1, 30, 0), settings);
  assert.equal(sampler.sample(low(2, 60, 0), settings).served, true);
});

test("a layer that is given less than it may use has enough where the uplink has more to give", () => {
  const settings = layerSettings("q", new Map());
  const wide = low(2, 60, 0).map((e) => (e.id === "pair" ? { ...e, availableOutgoingBitrate: 150_000 } : e));
  assert.equal(new UplinkSampler().sample(low(2, 60, 0), settings).served, true);
  assert.equal(new UplinkSampler().sample(wide, settings).served, true);
  const other = { id: "h", type: "outbound-rtp", rid: "h", targetBitrate: 50_000 };
  assert.equal(new UplinkSampler().sample([...wide, other], settings).served, false);
});

test("a half layer that leads comes before stills, with the rest that it leaves the quarter layer", () => {
  const settings = layerSettings("qhf", new Map([["f", { active: false } as LayerRequest]]), {
    caps: { q: 61, h: 60 },
  });
  const { lowCapKbps, firstKbps } = new UplinkSampler().sample(low(1, 30, 0), settings);
  assert.deepEqual([lowCapKbps, firstKbps], [35, 95]);
});

test("a capped frame rate is no lack of frames", () => {
  const settings = layerSettings(
    "q",
    new Map([["q", { kbps: undefined, fps: 15, active: undefined, needed: undefined }]]),
  );
  assert.equal(new UplinkSampler().sample(low(1, 30, 0), settings).wantedFps, 15);
});

test("reports that lack everything give a sample of nothing", () => {
  const sample = new UplinkSampler().sample([], layerSettings("q", new Map()));
  assert.deepEqual([sample.availableKbps, sample.lowFps, sample.limited], [null, null, "none"]);
});
