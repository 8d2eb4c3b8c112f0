import assert from "node:assert/strict";
import { test } from "node:test";
import type { LayerWish } from "../protocol.js";
import { detailDown, layerSettings } from "./layers.js";

const wish = (fields: Partial<LayerWish>): LayerWish => ({
  kbps: undefined,
  fps: undefined,
  active: undefined,
  ...fields,
});
const of = (rid: string, wishes: [string, LayerWish][], allowed: "q" | "qh" | "qhf" = "qhf") =>
  layerSettings(allowed, new Map(wishes)).find((layer) => layer.rid === rid);

test("without wishes the page's caps hold", () => {
  assert.deepEqual(layerSettings("qh", new Map()), [
    { rid: "q", active: true, maxBitrate: 150_000, maxFramerate: undefined },
    { rid: "h", active: true, maxBitrate: 500_000, maxFramerate: undefined },
    { rid: "f", active: false, maxBitrate: 1_500_000, maxFramerate: undefined },
  ]);
});

test("a wish lowers bits and frames", () => {
  const q = of("q", [["q", wish({ kbps: 80, fps: 15 })]]);
  assert.deepEqual([q?.maxBitrate, q?.maxFramerate], [80_000, 15]);
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

test("detail is as large as the best low layer that is sent times the scale", () => {
  const down = (allowed: "q" | "qh" | "qhf", flowing: string[], scale = 2) =>
    detailDown(layerSettings(allowed, new Map()), flowing, scale);
  assert.equal(down("q", ["q"]), 2);
  assert.equal(down("qh", ["q", "h"]), 1);
  assert.equal(down("qh", ["q"]), 2);
  assert.equal(down("qhf", ["q", "h", "f"]), 1);
  assert.equal(down("qh", []), 1);
  assert.equal(down("qh", ["q", "h"], 3), 1);
});
