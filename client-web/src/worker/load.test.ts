import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadGuard } from "./load.js";

/** A guard past its warm-up. */
const steadyGuard = () => new LoadGuard(0.85, 8, 0);

function play(guard: LoadGuard, from: number, frames: number, decodeMs: number, queued = 0): number | null {
  for (let i = 0; i < frames; i++) {
    const at = from + i * 33;
    if (guard.frame(at, decodeMs, 33, queued)) return at;
  }
  return null;
}

test("a machine that keeps up is never paused", () => {
  assert.equal(play(steadyGuard(), 0, 300, 20), null);
});

test("a machine on which frames pile up is paused within about a second", () => {
  const guard = steadyGuard();
  const at = play(guard, 0, 300, 32, 3);
  assert.ok(at !== null && at <= 1100, `${at}`);
  assert.ok(guard.paused((at ?? 0) + 3_999));
  assert.ok(!guard.paused((at ?? 0) + 4_000));
});

test("a machine that just keeps up is given three seconds", () => {
  const at = play(steadyGuard(), 0, 300, 32);
  assert.ok(at !== null && at > 2000 && at <= 3100, `${at}`);
});

test("slowness while the decoder is still being compiled is forgiven", () => {
  const guard = new LoadGuard();
  assert.equal(play(guard, 0, 40, 60, 12), null);
  assert.equal(play(guard, 1500, 200, 10), null);
});

test("one slow frame does no harm", () => {
  const guard = steadyGuard();
  assert.equal(play(guard, 0, 10, 10), null);
  assert.equal(guard.frame(330, 150, 33, 2), false);
  assert.equal(play(guard, 363, 60, 10), null);
});

test("a queue that stays long for a second pauses too", () => {
  const at = play(steadyGuard(), 0, 300, 5, 9);
  assert.ok(at !== null && at >= 1000 && at < 1100);
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
