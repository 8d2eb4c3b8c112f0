import assert from "node:assert/strict";
import { test } from "node:test";
import { type Picture, pack, packedBytes, pictureOfRgb } from "./picture.js";

const BGRA = [2, 1, 0] as const;

/** The samples of each plane of a picture of one colour, with padding to the right. */
function flat(width: number, height: number, [red, green, blue]: [number, number, number]) {
  const stride = width * 4 + 8;
  const data = new Uint8Array(stride * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) data.set([blue, green, red, 255], y * stride + x * 4);
  const { planes } = pictureOfRgb({ data, offset: 0, stride, order: BGRA, width, height });
  return planes.map((plane) => [...new Set(plane.data)]);
}

test("black, white and the primary colours are those of BT.601 in limited range", () => {
  assert.deepEqual(flat(6, 4, [0, 0, 0]), [[16], [128], [128]]);
  assert.deepEqual(flat(6, 4, [255, 255, 255]), [[235], [128], [128]]);
  assert.deepEqual(flat(6, 4, [255, 0, 0]), [[82], [90], [240]]);
  assert.deepEqual(flat(5, 3, [0, 0, 255]), [[41], [240], [110]]);
});

test("planes are packed without their gaps, and those that lie between each other are told apart", () => {
  const y = Uint8Array.from([1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0]);
  const uv = Uint8Array.from([9, 10, 20, 11, 21, 0, 12, 22, 13, 23, 0]);
  const picture: Picture = {
    planes: [
      { data: y, offset: 0, stride: 4, step: 1 },
      { data: uv, offset: 1, stride: 5, step: 2 },
      { data: uv, offset: 2, stride: 5, step: 2 },
    ],
    width: 3,
    height: 3,
  };
  const packed = new Uint8Array(packedBytes(3, 3));
  pack(picture, packed);
  assert.deepEqual([...packed], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 21, 22, 23]);
});
