import assert from "node:assert/strict";
import { test } from "node:test";
import { RegionCaps } from "./region-caps.js";

const SPARE = 1e6;

test("what is asked for within the caps is granted", () => {
  assert.equal(new RegionCaps().admit(0, 4, 40, 3000, SPARE), 3000);
});

test("the fifth request in a second is refused, and one later is not", () => {
  const caps = new RegionCaps();
  for (let i = 0; i < 4; i++) assert.equal(caps.admit(i, 1, 100, 500, SPARE), 500);
  assert.equal(caps.admit(5, 1, 100, 500, SPARE), "rate");
  assert.equal(caps.admit(1001, 1, 100, 500, SPARE), 500);
});

test("more than twice the whole picture in a second is refused", () => {
  const caps = new RegionCaps();
  assert.equal(caps.admit(0, 40, 40, 1000, SPARE), 1000);
  assert.equal(caps.admit(1, 40, 40, 1000, SPARE), 1000);
  assert.equal(caps.admit(2, 1, 40, 1000, SPARE), "area");
});

test("bytes are bounded by request, by second and by the uplink", () => {
  const caps = new RegionCaps();
  assert.equal(caps.admit(0, 1, 40, 50_000, SPARE), 12_000);
  assert.equal(caps.admit(1, 1, 40, 50_000, SPARE), 4000);
  assert.equal(caps.admit(2, 1, 40, 50_000, SPARE), "bytes");
  assert.equal(new RegionCaps().admit(0, 1, 40, 5000, 2000), 2000);
  assert.equal(new RegionCaps().admit(0, 1, 40, 5000, 0), "bytes");
});

test("a request for no number of bytes is refused", () => {
  assert.equal(new RegionCaps().admit(0, 1, 40, Number.NaN, SPARE), "bytes");
});
