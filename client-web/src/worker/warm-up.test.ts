import assert from "node:assert/strict";
import { test } from "node:test";
import { warmUp } from "./warm-up.js";

test("every piece is decoded once and in order", () => {
  const done: number[] = [];
  const decoder = { warmUp: (step: number) => done.push(step) < 3 };
  assert.equal(
    warmUp(() => decoder),
    3,
  );
  assert.deepEqual(done, [0, 1, 2]);
});

test("a stream without end is left", () => {
  assert.equal(
    warmUp(() => ({ warmUp: () => true })),
    1000,
  );
});

test("a trap, or a decoder that cannot be made, ends the warm-up quietly", () => {
  const trap = (): never => {
    throw new WebAssembly.RuntimeError("unreachable");
  };
  assert.equal(warmUp(trap), 0);
  assert.equal(
    warmUp(() => ({ warmUp: (step) => step < 2 || trap() })),
    3,
  );
});
