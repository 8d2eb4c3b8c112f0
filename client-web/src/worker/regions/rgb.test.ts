import assert from "node:assert/strict";
import { test } from "node:test";
import { lumaOfRgb } from "./rgb.js";

const BGRA = [2, 1, 0] as const;

/** The luma of a picture of one colour, with padding to the right. */
function flat(width: number, height: number, [red, green, blue]: [number, number, number]) {
  const stride = width * 4 + 8;
  const data = new Uint8Array(stride * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) data.set([blue, green, red, 255], y * stride + x * 4);
  return [...new Set(lumaOfRgb({ data, offset: 0, stride, order: BGRA, width, height }).data)];
}

test("black, white and the primary colours are those of BT.601 in limited range", () => {
  assert.deepEqual(flat(6, 4, [0, 0, 0]), [16]);
  assert.deepEqual(flat(6, 4, [255, 255, 255]), [235]);
  assert.deepEqual(flat(6, 4, [255, 0, 0]), [82]);
  assert.deepEqual(flat(5, 3, [0, 0, 255]), [41]);
});
