import assert from "node:assert/strict";
import { test } from "node:test";
import { barsOf } from "./quality.js";

test("the bars are what the server says of the connection", () => {
  const bars = (["good", "fair", "poor", "lost"] as const).map((quality) => barsOf({ away: false, quality }));
  assert.deepEqual(bars, [3, 2, 1, 0]);
  assert.equal(barsOf({ away: false, quality: null }), null);
});

test("who is away has no bars, whatever was known before", () => {
  assert.equal(barsOf({ away: true, quality: "good" }), 0);
  assert.equal(barsOf({ away: true, quality: null }), 0);
});
