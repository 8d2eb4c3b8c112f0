import assert from "node:assert/strict";
import { test } from "node:test";
import { scaleFor } from "./scale.js";

const Q = { width: 320, height: 180 };
const H = { width: 640, height: 360 };
const scale = (low: typeof Q, width: number, height = (width * 9) / 16) => scaleFor(low, { width, height }, [2, 3, 4]);

test("a picture as large as its place is not rebuilt", () => {
  assert.deepEqual([scale(Q, 320), scale(Q, 400), scale(H, 800)], [null, null, null]);
});

test("a larger place takes the least scale that fills it", () => {
  assert.deepEqual([scale(Q, 401), scale(Q, 640), scale(Q, 800)], [2, 2, 2]);
  assert.deepEqual([scale(Q, 801), scale(Q, 1200), scale(Q, 1280), scale(Q, 3000)], [3, 3, 4, 4]);
});

test("the picture is shown whole, so the closer side counts", () => {
  assert.equal(scale(Q, 1280, 300), 2);
});

test("no picture is made larger than a browser keeps up with", () => {
  assert.equal(scale(H, 1280), 2);
  assert.equal(scale(H, 1920), 2);
  assert.equal(scale({ width: 960, height: 540 }, 3840), 2, "the least scale is there for all");
});
