import assert from "node:assert/strict";
import { test } from "node:test";
import { decibels, lumaOf, Recent, Sent, squaredError } from "./likeness.js";

/** A picture of `length` pixels that depends on `seed`. */
const picture = (seed: number, length = 1000) =>
  Uint8Array.from({ length }, (_, i) => (i * 37 * seed + seed * seed) & 255);

test("a picture is compared with the frame that fits it best", () => {
  const sent = new Sent(3);
  for (const seed of [1, 2, 3]) sent.add(picture(seed));
  const seen = picture(2).map((value) => (value < 250 ? value + 2 : value));
  assert.ok(Math.abs((sent.psnr(seen) ?? 0) - decibels(squaredError(picture(2), seen))) < 1e-9);
  assert.ok((sent.psnr(seen) ?? 0) > 40);
});

test("frames that are long gone, or of another size, count no more", () => {
  const sent = new Sent(2);
  for (const seed of [1, 2, 3]) sent.add(picture(seed));
  assert.ok((sent.psnr(picture(1)) ?? 99) < 30);
  assert.equal(sent.psnr(picture(1, 500)), null);
});

test("brightness has the weights of BT.709", () => {
  const rgba = new Uint8ClampedArray([255, 255, 255, 255, 0, 255, 0, 255, 0, 0, 255, 255]);
  assert.deepEqual([...lumaOf(rgba)], [255, 182, 19]);
});

test("a mean is of the last values only", () => {
  const recent = new Recent(2);
  assert.equal(recent.mean, null);
  for (const value of [9, 1, 3]) recent.add(value);
  assert.equal(recent.mean, 2);
});
