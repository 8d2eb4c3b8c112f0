import assert from "node:assert/strict";
import { test } from "node:test";
import { bitsOf, parseTileMap } from "./tiles.js";

// 320×180 has 5 × 3 tiles.
const map = (...bytes: number[]) => parseTileMap(320, 180, Uint8Array.from(bytes));

test("bits name tiles row by row, the lowest first", () => {
  assert.deepEqual(map(0b0100_0001, 0)?.tiles, [
    { column: 0, row: 0 },
    { column: 1, row: 1 },
  ]);
});

test("maps of another size, with stray bits, or empty are refused", () => {
  for (const bad of [map(1), map(1, 0, 0), map(0, 0x80), map(0, 0)]) assert.equal(bad, null);
  assert.equal(map(0xff, 0x7f)?.tiles.length, 15);
  assert.equal(parseTileMap(0, 180, Uint8Array.of(1)), null);
  assert.equal(parseTileMap(1.5, 180, Uint8Array.of(1)), null);
});

test("base64 that is none is refused", () => {
  assert.deepEqual(bitsOf("AQI="), Uint8Array.of(1, 2));
  assert.equal(bitsOf("***"), null);
});
