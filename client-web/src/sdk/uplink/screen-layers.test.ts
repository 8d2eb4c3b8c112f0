import assert from "node:assert/strict";
import { test } from "node:test";
import { ScreenLayers } from "./screen-layers.js";

test("an uplink that is narrow, or not yet known, gets the full size alone", () => {
  const layers = new ScreenLayers();
  assert.equal(layers.of("qf", false), "f");
  layers.onEstimate(0, null);
  layers.onEstimate(1000, 500);
  layers.onEstimate(9000, 500);
  assert.equal(layers.of("qf", false), "f");
});

test("an uplink that has been wide for a while gets both, until it is narrow", () => {
  const layers = new ScreenLayers();
  const changes = [0, 1000, 2000, 3000].map((now) => layers.onEstimate(now, 700));
  assert.deepEqual(changes, [false, false, false, true]);
  assert.equal(layers.of("qf", false), "qf");
  assert.equal(layers.onEstimate(4000, 450), false);
  assert.equal(layers.onEstimate(5000, 390), true);
  assert.equal(layers.of("qf", false), "f");
});

test("the small size is sent where a subscriber takes nothing larger, or the page allows nothing larger", () => {
  const layers = new ScreenLayers();
  assert.equal(layers.of("qf", true), "qf");
  assert.equal(layers.of("qh", false), "qh");
});
