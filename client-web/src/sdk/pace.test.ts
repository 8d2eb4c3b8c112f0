import assert from "node:assert/strict";
import { test } from "node:test";
import { OfferPace } from "./pace.js";

/** The number of offers of that size in ten seconds, each sent as soon as possible. */
function inTenSeconds(bytes: number): number {
  const pace = new OfferPace();
  let count = 0;
  for (let now = 1000; now < 11_000; now += 10) {
    if (pace.wait(now) > 0) continue;
    pace.spend(now, bytes);
    count++;
  }
  return count;
}

test("the first few offers go out at once", () => {
  const pace = new OfferPace();
  for (let n = 0; n < 4; n++) {
    assert.equal(pace.wait(1000), 0);
    pace.spend(1000, 5000);
  }
  pace.spend(1000, 5000);
  assert.equal(pace.wait(1000), 500);
});

test("in the long run there are two a second", () => assert.ok(inTenSeconds(5000) <= 25));

test("large ones are fewer", () => assert.ok(inTenSeconds(80_000) <= 5));

test("what the server refuses waits for a second", () => {
  const pace = new OfferPace();
  pace.slow(1000);
  assert.equal(pace.wait(1000), 1000);
  assert.equal(pace.wait(2000), 0);
});
