import assert from "node:assert/strict";
import { test } from "node:test";
import { RateSearch } from "./rate.js";

/** An encoder as measured: bytes by bitrate, for a picture of some difficulty. */
const encoder = (difficulty: number) => (bitrate: number) => Math.round(difficulty * 0.73 * bitrate ** 0.72);

function search(bytes: number, encode: (bitrate: number) => number, last: { bitrate: number; bytes: number } | null) {
  const rate = new RateSearch(bytes, last);
  for (let tries = 1; tries <= 4; tries++) {
    const made = encode(rate.next);
    if (rate.done(made)) return { tries, made };
  }
  return { tries: 5, made: 0 };
}

test("pictures of any difficulty are met within four encodings", () => {
  for (const difficulty of [0.2, 1, 5]) {
    const { made } = search(3000, encoder(difficulty), null);
    assert.ok(made <= 3000 && made >= 2250, `${difficulty}: ${made}`);
  }
});

test("a picture like the last one is met at once", () => {
  const encode = encoder(1.3);
  assert.equal(search(3000, encode, { bitrate: 80_000, bytes: encode(80_000) }).tries, 1);
});

test("a frame that cannot be made small enough ends the search", () => {
  const rate = new RateSearch(100, null);
  let tries = 0;
  while (!rate.done(5000) && tries < 10) tries++;
  assert.ok(tries < 4);
});
