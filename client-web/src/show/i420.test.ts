import assert from "node:assert/strict";
import { test } from "node:test";
import { i420Of } from "./i420.js";

/** Four pixels of one colour. */
const of = (r: number, g: number, b: number) => [
  ...i420Of(new Uint8ClampedArray([r, g, b, 255, r, g, b, 255, r, g, b, 255, r, g, b, 255]), 2, 2),
];

test("black, white and the primaries have the values of BT.709", () => {
  assert.deepEqual(of(0, 0, 0), [16, 16, 16, 16, 128, 128]);
  assert.deepEqual(of(255, 255, 255), [235, 235, 235, 235, 128, 128]);
  assert.deepEqual(of(255, 0, 0), [63, 63, 63, 63, 102, 240]);
  assert.deepEqual(of(0, 0, 255), [32, 32, 32, 32, 240, 118]);
});
