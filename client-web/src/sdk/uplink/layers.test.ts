import assert from "node:assert/strict";
import { test } from "node:test";
import type { LayerWish } from "../protocol.js";
import { layerSettings } from "./layers.js";

const wish = (fields: Partial<LayerWish>): LayerWish => ({
  kbps: undefined,
  fps: undefined,
  active: undefined,
  needed: undefined,
  ...fields,
});
const of = (rid: string, wishes: [string, LayerWish][], allowed: "q" | "qh" | "qhf" = "qhf") =>
  layerSettings(allowed, new Map(wishes)).find((layer) => layer.rid === rid);

test("without wishes the page's caps hold", () => {
  assert.deepEqual(layerSettings("qh", new Map()), [
    { rid: "q", active: true, maxBitrate: 150_000, maxFramerate: 60 },
    { rid: "h", active: true, maxBitrate: 500_000, maxFramerate: 61 },
    { rid: "f", active: false, maxBitrate: 1_500_000, maxFramerate: 62 },
  ]);
});

test("a wish lowers bits and frames", () => {
  const q = of("q", [["q", wish({ kbps: 80, fps: 15 })]]);
  assert.deepEqual([q?.maxBitrate, q?.maxFramerate], [80_000, 15]);
});

test("no two layers have the same frame rate, lest Chromium encode them together", () => {
  const rates = (wishes: [string, number][], maxFps?: number) =>
    layerSettings("qhf", new Map(wishes.map(([rid, fps]) => [rid, wish({ fps })])), {
      maxFps,
      maxBitrate: undefined,
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

test("a wish cannot go beyond the page's caps", () => {
  assert.equal(of("q", [["q", wish({ kbps: 9000 })]])?.maxBitrate, 150_000);
  assert.equal(of("f", [["f", wish({ active: true })]], "qh")?.active, false);
});

test("a wish for next to nothing leaves a picture", () => {
  const q = of("q", [["q", wish({ kbps: -3, fps: 0 })]]);
  assert.deepEqual([q?.maxBitrate, q?.maxFramerate], [20_000, 1]);
});

test("the last layer stays on whatever is wished", () => {
  const off = wish({ active: false });
  const settings = layerSettings("qh", new Map(["q", "h", "f"].map((rid) => [rid, off])));
  assert.deepEqual(
    settings.filter((layer) => layer.active).map((layer) => layer.rid),
    ["q"],
  );
});

test("of what leads an uplink the page allows less, and of what follows it may be told more", () => {
  const settings = layerSettings("qh", new Map([["h", wish({ kbps: 500 })]]), undefined, { q: 201, h: 200 });
  assert.deepEqual(
    settings.map((layer) => layer.maxBitrate),
    [201_000, 200_000, 1_500_000],
  );
  const wished = layerSettings("qh", new Map([["q", wish({ kbps: 40 })]]), undefined, { q: 201, h: 200 });
  assert.equal(wished[0]?.maxBitrate, 40_000);
});

test("the quarter layer is sent against the server's wish where the uplink needs it, and where the page allows it", () => {
  const off = new Map([["q", wish({ active: false })]]);
  const active = (quarter: boolean) => layerSettings("qh", off, undefined, {}, quarter).map((layer) => layer.active);
  assert.deepEqual(
    [active(false), active(true)],
    [
      [false, true, false],
      [true, true, false],
    ],
  );
});

test("a screen has fewer frames, and more bits at full size", () => {
  const settings = layerSettings("qf", new Map(), undefined, {}, false, "screen");
  assert.deepEqual(
    settings.map((layer) => [layer.rid, layer.active, layer.maxBitrate, layer.maxFramerate]),
    [
      ["q", true, 150_000, 15],
      ["h", false, 500_000, 16],
      ["f", true, 2_500_000, 17],
    ],
  );
});
