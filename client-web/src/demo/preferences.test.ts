import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePreferences } from "./preferences.js";

test("preferences are read from what was kept", () => {
  const kept = { name: "Ada", language: "de", camera: "c", microphone: "m", speaker: "s", shortcuts: false };
  assert.deepEqual(parsePreferences(JSON.stringify(kept)), kept);
});

test("whatever else is kept there gives the usual ones", () => {
  const usual = { name: "", language: null, camera: "", microphone: "", speaker: "", shortcuts: true };
  for (const text of [null, "", "{", "[]", "7", "null", '{"name":7,"language":"xx","camera":{}}']) {
    assert.deepEqual(parsePreferences(text), usual, String(text));
  }
});
