import assert from "node:assert/strict";
import { test } from "node:test";
import { measureSpeed, warmUp } from "./warm-up.js";

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

test("the speed counts the pixels of frames, without anchors, once everything is compiled", () => {
  // Three passes of two frames and an anchor, one after the other.
  let warmed = 0;
  const make = () => {
    let [frames, at] = [0, 0];
    return {
      warmUp: (step: number) => {
        warmed++;
        if (step % 3 < 2) frames++;
        at++;
        return step + 1 < 9;
      },
      get frames() {
        return frames;
      },
      hr: () => (at === 0 ? null : { width: 10, height: 10 }),
    };
  };
  let time = 0;
  const speed = measureSpeed(make, () => {
    time += 50;
    return time;
  });
  assert.ok(warmed > 9);
  assert.ok(speed > 0 && speed <= (100 * 1000) / 50);
});

test("a decoder that does not work has no speed", () => {
  const broken = () => {
    throw new Error("trap");
  };
  assert.equal(measureSpeed(broken), 0);
});
