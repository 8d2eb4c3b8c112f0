import assert from "node:assert/strict";
import { test } from "node:test";
import { takeWarmUp } from "./assets.js";

test("each module is warmed up by the first track only", () => {
  const empty = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  const [one, other] = [new WebAssembly.Module(empty), new WebAssembly.Module(empty)];
  assert.deepEqual([takeWarmUp(one), takeWarmUp(one), takeWarmUp(other)], [true, false, true]);
});
