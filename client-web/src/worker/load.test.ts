import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadGuard } from "./load.js";

/** A guard past its warm-up. */
const steadyGuard = () => new LoadGuard(0.85, 8, 0);

function play(guard: LoadGuard, from: number, frames: number, decodeMs: number, queued = 0, scale = 2): number | null {
  for (let i = 0; i < frames; i++) {
    const at = from + i * 33;
    if (guard.frame(at, decodeMs, 33, queued, scale)) return at;
  }
  return null;
}

test("a machine that keeps up searches fully and is never paused", () => {
  const guard = steadyGuard();
  assert.equal(play(guard, 0, 300, 20), null);
  assert.equal(guard.effort, "full");
});

test("a machine on which frames pile up searches less thoroughly within about a second", () => {
  const guard = steadyGuard();
  assert.equal(play(guard, 0, 33, 32, 3), null);
  assert.equal(guard.effort, "little");
  assert.equal(play(guard, 1089, 300, 20), null);
});

test("a machine that is too slow for that as well is paused within another", () => {
  const guard = steadyGuard();
  const at = play(guard, 0, 300, 32, 3);
  assert.ok(at !== null && at <= 2200, `${at}`);
  assert.ok(guard.paused((at ?? 0) + 3_999));
  assert.ok(!guard.paused((at ?? 0) + 4_000));
});

test("a machine that just keeps up is given three seconds for either", () => {
  const guard = steadyGuard();
  assert.equal(play(guard, 0, 60, 32), null);
  assert.equal(guard.effort, "full");
  const at = play(guard, 1980, 300, 32);
  assert.ok(at !== null && at > 4000 && at <= 6200, `${at}`);
});

test("a machine that has had time to spare for a minute searches fully again, the next time for two", () => {
  const guard = steadyGuard();
  const effort = (): string => guard.effort;
  const fullAfter = (from: number): number => {
    play(guard, from, 40, 32, 3);
    assert.equal(effort(), "little");
    for (let at = from + 1320; ; at += 33) {
      assert.equal(guard.frame(at, 10, 33, 0, 2), false);
      if (effort() === "full") return Math.round((at - from) / 60_000);
    }
  };
  assert.equal(fullAfter(0), 1);
  assert.equal(fullAfter(100_000), 2);
});

test("a machine without time to spare goes on less thoroughly", () => {
  const guard = steadyGuard();
  play(guard, 0, 40, 32, 3);
  assert.equal(play(guard, 1320, 6000, 15), null);
  assert.equal(guard.effort, "little");
});

test("slowness while the decoder is still being compiled is forgiven", () => {
  const guard = new LoadGuard();
  assert.equal(play(guard, 0, 40, 60, 12), null);
  assert.equal(play(guard, 1500, 200, 10), null);
});

test("one slow frame does no harm", () => {
  const guard = steadyGuard();
  assert.equal(play(guard, 0, 10, 10), null);
  assert.equal(guard.frame(330, 150, 33, 2, 2), false);
  assert.equal(play(guard, 363, 60, 10), null);
});

test("a queue that stays long for a second, twice, pauses too", () => {
  const at = play(steadyGuard(), 0, 300, 5, 9);
  assert.ok(at !== null && at >= 2000 && at < 2200);
});

test("each pause is twice as long as the one before, up to a bound", () => {
  const guard = steadyGuard();
  let at = 0;
  const lengths = [];
  for (let i = 0; i < 5; i++) {
    guard.pause(at);
    let end = at;
    while (guard.paused(end)) end += 1000;
    lengths.push(end - at);
    at = end;
  }
  assert.deepEqual(lengths, [4_000, 8_000, 16_000, 32_000, 64_000]);
});

test("large pictures become smaller before enhancement pauses, and larger again with time to spare", () => {
  const guard = steadyGuard();
  const now = (): (string | number)[] => [guard.effort, guard.maxScale];
  play(guard, 0, 28, 32, 3, 4);
  assert.deepEqual(now(), ["little", Number.POSITIVE_INFINITY]);
  play(guard, 924, 28, 32, 3, 4);
  assert.deepEqual(now(), ["little", 3]);
  assert.equal(play(guard, 1848, 28, 32, 3, 3), null);
  assert.deepEqual(now(), ["little", 2]);
  assert.equal(guard.pauses, 0);
  assert.equal(play(guard, 2772, 1900, 8, 0, 2), null);
  assert.deepEqual(now(), ["little", 3], "a minute later");
  assert.notEqual(play(guard, 70_000, 300, 32, 3, 2), null, "what would make no difference is not tried");
});
