import assert from "node:assert/strict";
import { test } from "node:test";
import { AnchorCounts } from "./anchor-counts.js";

test("anchors are counted by what became of them, and the source is that of the last one of use", () => {
  const counts = new AnchorCounts();
  counts.taken("applied", "enhanced");
  counts.taken("applied-late", "enhanced");
  counts.taken("early", "captured");
  for (const outcome of ["duplicate", "former-epoch", "lost", "incomplete"] as const) counts.taken(outcome, "enhanced");
  counts.unusable();
  const { detailFrom, anchorsLate, anchorsDuplicate, anchorsFormerEpoch, anchorsLost } = counts.stats(0);
  assert.equal(detailFrom, "captured");
  assert.deepEqual([anchorsLate, anchorsDuplicate, anchorsFormerEpoch, anchorsLost], [1, 1, 1, 2]);
});

test("an anchor is used once it is applied, after a delay", () => {
  const counts = new AnchorCounts();
  for (const [now, delayMs] of [
    [0, 30],
    [1000, 10],
    [1999, 20],
  ] as const) {
    counts.received(now, 1000);
    counts.applied(now, delayMs);
    counts.tookMs(now, delayMs / 10);
  }
  const stats = counts.stats(1999);
  assert.deepEqual([stats.anchorsUsed, stats.anchorP50Ms, stats.anchorP95Ms, stats.anchorApplyMs], [3, 20, 30, 2]);
  assert.deepEqual([stats.anchorKbps, stats.anchorsPerSecond.toFixed(1)], [16, "1.5"]);
});

test("what quality is lost after an anchor is a mean over frames, and a new decoder counts from zero", () => {
  const counts = new AnchorCounts();
  assert.equal(counts.stats(0).decay, null);
  counts.decayed(0, { lost: 8, frames: 4 });
  counts.decayed(1, { lost: 8, frames: 4 });
  counts.decayed(2, { lost: 8, frames: 2 });
  assert.deepEqual([counts.stats(2).decay, counts.stats(2).decayFrames], [3, 3]);
});

test("another track counts from zero", () => {
  const counts = new AnchorCounts();
  counts.taken("applied-late", "enhanced");
  counts.applied(0, 1);
  counts.reset();
  const { detailFrom, anchorsUsed, anchorsLate } = counts.stats(0);
  assert.deepEqual([detailFrom, anchorsUsed, anchorsLate], [null, 0, 0]);
});
