import assert from "node:assert/strict";
import { test } from "node:test";
import { type Luma, packMosaic } from "./mosaic.js";
import { parseTileMap, type TileMap } from "./tiles.js";

/** A picture whose samples are `value(x, y)`, with some padding to the right. */
function luma(width: number, height: number, value: (x: number, y: number) => number): Luma {
  const stride = width + 5;
  const data = new Uint8Array(stride * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) data[y * stride + x] = value(x, y);
  return { data, offset: 0, stride, width, height };
}

const LOW = { width: 128, height: 96 }; // 2 × 2 tiles, the lower ones half as high
const tiles = (bits: number) => parseTileMap(LOW.width, LOW.height, Uint8Array.of(bits)) as TileMap;

/** A camera picture `factor` times as large as HR at scale 2, of a ramp in x. */
const ramp = (factor: number): Luma =>
  luma(LOW.width * 2 * factor, LOW.height * 2 * factor, (x) => Math.floor(x / factor));

test("a tile is taken from its place", () => {
  const { data, width, height } = packMosaic(tiles(0b0010), LOW, 2, ramp(1));
  assert.deepEqual([width, height], [128, 128]);
  assert.deepEqual([data[0], data[1], data[127], data[128]], [128, 129, 255, 128]);
});

test("colours stay on the page", () => {
  const { data } = packMosaic(tiles(0b0010), LOW, 2, ramp(1));
  assert.equal(data.length, (128 * 128 * 3) / 2);
  assert.ok(data.subarray(128 * 128).every((v) => v === 128));
});

test("a camera larger than HR gives means of areas", () => {
  assert.deepEqual(packMosaic(tiles(0b0110), LOW, 2, ramp(2)), packMosaic(tiles(0b0110), LOW, 2, ramp(1)));
  const checks = luma(512, 384, (x, y) => ((x + y) % 2) * 100);
  const { data } = packMosaic(tiles(1), LOW, 2, checks);
  assert.ok(data.subarray(0, 128 * 128).every((v) => v === 50));
});

test("a camera that is no whole times as large keeps a flat picture flat", () => {
  const { data, width, height } = packMosaic(
    tiles(0b1111),
    LOW,
    2,
    luma(341, 256, () => 77),
  );
  assert.ok(data.subarray(0, width * height).every((v) => v === 77));
});

test("what lies below the picture repeats its last row", () => {
  const { data } = packMosaic(
    tiles(0b0100),
    LOW,
    2,
    luma(256, 192, (_, y) => y),
  );
  assert.deepEqual([data[0], data[63 * 128], data[64 * 128], data[127 * 128]], [128, 191, 191, 191]);
});
