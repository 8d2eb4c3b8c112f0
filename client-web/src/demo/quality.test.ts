import assert from "node:assert/strict";
import { test } from "node:test";
import { barsOf, between, type Reception } from "./quality.js";

const good: Reception = { away: false, paused: false, loss: 0, frozen: 0 };

test("bars fall with lost packets and with pictures that stand still", () => {
  const bars = (changes: Partial<Reception>) => barsOf({ ...good, ...changes });
  assert.deepEqual([bars({}), bars({ loss: 0.019 }), bars({ loss: 0.02 }), bars({ loss: 0.08 })], [3, 3, 2, 1]);
  assert.deepEqual([bars({ frozen: 0.04 }), bars({ frozen: 0.05 }), bars({ frozen: 0.3 })], [3, 2, 1]);
});

test("a paused picture has one bar, who is away none, and who sends nothing no bars at all", () => {
  assert.equal(barsOf({ ...good, paused: true, loss: null }), 1);
  assert.equal(barsOf({ ...good, away: true }), 0);
  assert.equal(barsOf({ ...good, loss: null }), null);
});

test("what counts is what was lost since the last reading", () => {
  const before = { received: 1000, lost: 50, frozenS: 1 };
  assert.deepEqual(between(before, { received: 1090, lost: 60, frozenS: 1.5 }, 2), { loss: 0.1, frozen: 0.25 });
  assert.deepEqual(between(before, before, 2), { loss: null, frozen: 0 });
});

test("packets that come late after all are no loss", () => {
  const found = between({ received: 100, lost: 5, frozenS: 0 }, { received: 200, lost: 3, frozenS: 0 }, 2);
  assert.equal(found.loss, 0);
});
