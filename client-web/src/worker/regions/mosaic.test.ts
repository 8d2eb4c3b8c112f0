import assert from "node:assert/strict";
import { test } from "node:test";
import { type Picture, type Plane, packMosaic } from "./mosaic.js";
import { parseTileMap, type TileMap } from "./tiles.js";

/** A plane whose samples are `value(x, y)`, with some padding to the right. */
function plane(width: number, height: number, value: (x: number, y: number) => number, step = 1): Plane {
  const stride = width * step + 5;
  const data = new Uint8Array(stride * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) data[y * stride + x * step] = value(x, y);
  return { data, offset: 0, stride, step, width, height };
}

const LOW = { width: 128, height: 96 }; // 2 × 2 tiles, the lower ones half as high
const tiles = (bits: number) => parseTileMap(LOW.width, LOW.height, Uint8Array.of(bits)) as TileMap;

/** A camera picture `factor` times as large as HR at scale 2, of a ramp in x. */
function ramp(factor: number): Picture {
  const [w, h] = [LOW.width * 2 * factor, LOW.height * 2 * factor];
  const luma = plane(w, h, (x) => Math.floor(x / factor));
  const chroma = plane(w / 2, h / 2, (x, y) => Math.floor(x / factor) + Math.floor(y / factor), 2);
  return [luma, chroma, chroma];
}

test("a tile is taken from its place", () => {
  const { data, width, height } = packMosaic(tiles(0b0010), LOW, 2, ramp(1));
  assert.deepEqual([width, height], [128, 128]);
  assert.deepEqual([data[0], data[1], data[127], data[128]], [128, 129, 255, 128]);
});

test("chroma is half as large and may be interleaved", () => {
  const { data } = packMosaic(tiles(0b0010), LOW, 2, ramp(1));
  const chroma = data.subarray(128 * 128);
  assert.deepEqual([chroma[0], chroma[1], chroma[64]], [64, 65, 65]);
  assert.equal(data.length, (128 * 128 * 3) / 2);
});

test("a camera larger than HR gives means of areas", () => {
  assert.deepEqual(packMosaic(tiles(0b0110), LOW, 2, ramp(2)), packMosaic(tiles(0b0110), LOW, 2, ramp(1)));
  const checks = plane(512, 384, (x, y) => ((x + y) % 2) * 100);
  const flat = plane(256, 192, () => 128);
  assert.ok(
    packMosaic(tiles(1), LOW, 2, [checks, flat, flat])
      .data.subarray(0, 128 * 128)
      .every((v) => v === 50),
  );
});

test("a camera that is no whole times as large keeps a flat picture flat", () => {
  const flat = (w: number, h: number) => plane(w, h, () => 77);
  const { data } = packMosaic(tiles(0b1111), LOW, 2, [flat(341, 256), flat(171, 128), flat(171, 128)]);
  assert.ok(data.every((v) => v === 77));
});

test("what lies below the picture repeats its last row", () => {
  const rows = plane(256, 192, (_, y) => y);
  const flat = plane(128, 96, () => 128);
  const { data } = packMosaic(tiles(0b0100), LOW, 2, [rows, flat, flat]);
  assert.deepEqual([data[0], data[63 * 128], data[64 * 128], data[127 * 128]], [128, 191, 191, 191]);
});
