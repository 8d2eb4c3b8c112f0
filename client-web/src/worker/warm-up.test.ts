import assert from "node:assert/strict";
import { test } from "node:test";
import { WarmUp, type WarmUpDecoder } from "./warm-up.js";

/** A decoder of `steps` pieces, and the tasks that wait; `fails` is the piece that traps. */
function bench(steps: number, fails = -1) {
  const tasks: (() => void)[] = [];
  const done: number[] = [];
  const freed = { times: 0 };
  const decoder: WarmUpDecoder = {
    warmUp(step) {
      if (step === fails) throw new WebAssembly.RuntimeError("unreachable");
      done.push(step);
      return step + 1 < steps;
    },
    free: () => void freed.times++,
  };
  const warmUp = new WarmUp((slice) => void tasks.push(slice));
  return { warmUp, tasks, done, freed, make: () => decoder };
}

test("the decoder is warmed up one piece a task, to the end, then freed", () => {
  const { warmUp, tasks, done, freed, make } = bench(3);
  warmUp.start(make);
  assert.deepEqual(done, [], "nothing is done in the task that starts it");
  for (let pieces = 1; tasks.length > 0; pieces++) {
    tasks.shift()?.();
    assert.equal(done.length, pieces);
    assert.ok(tasks.length <= 1);
  }
  assert.deepEqual(done, [0, 1, 2]);
  assert.equal(freed.times, 1);
});

test("nothing more is done after the first frame", () => {
  const { warmUp, tasks, done, freed, make } = bench(100);
  warmUp.start(make);
  tasks.shift()?.();
  warmUp.frame();
  warmUp.frame();
  assert.equal(freed.times, 1);
  while (tasks.length > 0) tasks.shift()?.();
  assert.deepEqual(done, [0]);
});

test("a module that comes after the first frame is not warmed up", () => {
  const { warmUp, tasks } = bench(3);
  warmUp.frame();
  warmUp.start(() => assert.fail("no decoder is made"));
  assert.equal(tasks.length, 0);
});

test("a trap or a decoder that cannot be made ends the warm-up quietly", () => {
  const { warmUp, tasks, done, freed, make } = bench(5, 2);
  warmUp.start(() => {
    throw new WebAssembly.RuntimeError("out of memory");
  });
  assert.equal(tasks.length, 0);
  warmUp.start(make);
  while (tasks.length > 0) tasks.shift()?.();
  assert.deepEqual(done, [0, 1]);
  assert.equal(freed.times, 0, "memory of a trapped instance is left alone");
  warmUp.frame();
  assert.equal(freed.times, 0);
});

test("it is begun only once", () => {
  const { warmUp, tasks, make } = bench(3);
  warmUp.start(make);
  warmUp.start(() => assert.fail("a second decoder is made"));
  assert.equal(tasks.length, 1);
});
