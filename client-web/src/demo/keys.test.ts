import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf, type Press } from "./keys.js";

const press = (key: string, changes: Partial<Press> = {}): Press => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  repeat: false,
  ...changes,
});

test("a key of the call is known in both cases, another is none", () => {
  assert.deepEqual(
    ["m", "M", "PageUp", "x", "Tab"].map((key) => keyOf(press(key), null)),
    ["m", "m", "PageUp", null, null],
  );
});

test("keys are left to fields that are written in, to the browser, and are not repeated", () => {
  assert.equal(keyOf(press("m"), { tagName: "INPUT" }), null);
  assert.equal(keyOf(press("m"), { tagName: "DIV", isContentEditable: true }), null);
  assert.equal(keyOf(press("m"), { tagName: "BUTTON" }), "m");
  assert.equal(keyOf(press("p", { ctrlKey: true }), null), null);
  assert.equal(keyOf(press("m", { repeat: true }), null), null);
});
