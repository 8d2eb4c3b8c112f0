import assert from "node:assert/strict";
import { test } from "node:test";
import type { LayerRequest } from "../protocol.js";
import { layerSettings } from "./layers.js";

const request = (fields: Partial<LayerRequest>): LayerRequest => ({
  kbps: undefined,
  fps: undefined,
  active: undefined,
  needed: undefined,
  ...fields,
});
const of = (rid: string, requests: [string, LayerRequest][], allowed: "q" | "qh" | "qhf" = "qhf") =>
  layerSettings(allowed, new Map(requests)).find((layer) => layer.rid === rid);

test("without requests the page's caps hold", () => {
  assert.deepEqual(layerSettings("qh", new Map()), [
    { rid: "q", active: true, maxBitrate: 150_000, maxFramerate: 60 },
    { rid: "h", active: true, maxBitrate: 500_000, maxFramerate: 61 },
    { rid: "f", active: false, maxBitrate: 1_500_000, maxFramerate: 62 },
  ]);
});

test("a request lowers bits and frames", () => {
  const q = of("q", [["q", request({ kbps: 80, fps: 15 })]]);
  assert.deepEqual([q?.maxBitrate, q?.maxFramerate], [80_000, 15]);
});

test("no two layers have the same frame rate, lest Chromium encode them together", () => {
  const rates = (requests: [string, number][], maxFps?: number) =>
    layerSettings("qhf", new Map(requests.map(([rid, fps]) => [rid, request({ fps })])), {
      uplink: { maxFps, maxBitrate: undefined },
    }).map((layer) => layer.maxFramerate);
  assert.deepEqual(rates([]), [60, 61, 62]);
  assert.deepEqual(rates([], 15), [15, 16, 17]);
  assert.deepEqual(
    rates([
      ["q", 30.4],
      ["f", 29.6],
    ]),
    [30, 60, 31],
  );
});

test("a request cannot go beyond the page's caps", () => {
  assert.equal(of("q", [["q", request({ kbps: 9000 })]])?.maxBitrate, 150_000);
  assert.equal(of("f", [["f", request({ active: true })]], "qh")?.active, false);
});

test("a request for next to nothing leaves a picture", () => {
  const q = of("q", [["q", request({ kbps: -3, fps: 0 })]]);
  assert.deepEqual([q?.maxBitrate, q?.maxFramerate], [20_000, 1]);
});

test("a backup sends nothing where nothing is requested of it", () => {
  const none = new Map(["q", "h"].map((rid) => [rid, request({ active: false })]));
  const settings = layerSettings("qh", none, { needsQuarter: true, backup: true });
  assert.ok(settings.every(({ active }) => !active));
});

test("the last layer stays on whatever is requested", () => {
  const off = request({ active: false });
  const settings = layerSettings("qh", new Map(["q", "h", "f"].map((rid) => [rid, off])));
  assert.deepEqual(
    settings.filter((layer) => layer.active).map((layer) => layer.rid),
    ["q"],
  );
});

test("of what leads an uplink the page allows less, and of what follows it more may be reported", () => {
  const settings = layerSettings("qh", new Map([["h", request({ kbps: 500 })]]), { caps: { q: 201, h: 200 } });
  assert.deepEqual(
    settings.map((layer) => layer.maxBitrate),
    [201_000, 200_000, 1_500_000],
  );
  const requested = layerSettings("qh", new Map([["q", request({ kbps: 40 })]]), { caps: { q: 201, h: 200 } });
  assert.equal(requested[0]?.maxBitrate, 40_000);
});

test("the quarter layer is sent against the server's request where the uplink needs it, and where the page allows it", () => {
  const off = new Map([["q", request({ active: false })]]);
  const active = (needsQuarter: boolean) => layerSettings("qh", off, { needsQuarter }).map((layer) => layer.active);
  assert.deepEqual(
    [active(false), active(true)],
    [
      [false, true, false],
      [true, true, false],
    ],
  );
});

test("a screen has fewer frames, and more bits at full size", () => {
  const settings = layerSettings("qf", new Map(), { content: "screen" });
  assert.deepEqual(
    settings.map((layer) => [layer.rid, layer.active, layer.maxBitrate, layer.maxFramerate]),
    [
      ["q", true, 150_000, 15],
      ["h", false, 500_000, 16],
      ["f", true, 2_500_000, 17],
    ],
  );
});
