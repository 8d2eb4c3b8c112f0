import assert from "node:assert/strict";
import { test } from "node:test";
import { alike } from "./showing.js";

const hidden = { width: 0, height: 0 };

test("slight changes of size call for the same picture", () => {
  assert.ok(alike({ width: 640, height: 360 }, { width: 600, height: 338 }));
  assert.ok(!alike({ width: 640, height: 360 }, { width: 320, height: 180 }));
  assert.ok(!alike({ width: 640, height: 360 }, { width: 640, height: 180 }));
});

test("what is hidden is like nothing that is seen", () => {
  assert.ok(!alike(hidden, { width: 1, height: 1 }));
  assert.ok(alike(hidden, { width: 640, height: 0 }));
});
