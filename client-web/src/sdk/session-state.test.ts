import assert from "node:assert/strict";
import { test } from "node:test";
import { nextSessionState } from "./session-state.js";

test("a session freezes and thaws while it is open", () => {
  assert.equal(nextSessionState("live", "freeze"), "frozen");
  assert.equal(nextSessionState("frozen", "freeze"), "frozen");
  assert.equal(nextSessionState("frozen", "thaw"), "live");
  assert.equal(nextSessionState("live", "thaw"), "live");
});

test("a closed session stays closed", () => {
  assert.equal(nextSessionState("live", "close"), "closed");
  assert.equal(nextSessionState("frozen", "close"), "closed");
  for (const event of ["freeze", "thaw", "close"] as const) assert.equal(nextSessionState("closed", event), "closed");
});
