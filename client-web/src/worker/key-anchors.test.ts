import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyAnchors } from "./key-anchors.js";

/** Key anchors of a track, and how often one was requested. */
function watched() {
  const state = { requests: 0 };
  return { state, anchors: new KeyAnchors(() => state.requests++) };
}

test("anchors of tiles request a key anchor once a second, until there is one", () => {
  const { state, anchors } = watched();
  for (const now of [0, 999, 1000]) anchors.applied(now, false);
  assert.equal(state.requests, 2);
  anchors.applied(1500, true);
  anchors.applied(3000, false);
  assert.equal(state.requests, 2);
});

test("another scale and a reset need another key anchor", () => {
  const { state, anchors } = watched();
  anchors.applied(0, true);
  anchors.expire();
  anchors.applied(1, false);
  assert.equal(state.requests, 1);
  anchors.applied(2, true);
  anchors.reset();
  anchors.applied(1001, false);
  assert.equal(state.requests, 2);
});

test("an anchor waits for its frame over another scale, but not over a reset", () => {
  const { anchors } = watched();
  anchors.wait(10, true);
  anchors.wait(20, false);
  anchors.expire();
  assert.deepEqual([anchors.take(10), anchors.take(10), anchors.take(20)], [true, undefined, false]);
  anchors.wait(30, true);
  anchors.reset();
  assert.equal(anchors.take(30), undefined);
});

test("of anchors whose frames never come the last eight are kept", () => {
  const { anchors } = watched();
  for (let rtp = 0; rtp < 9; rtp++) anchors.wait(rtp, true);
  assert.deepEqual([anchors.take(0), anchors.take(1), anchors.take(8)], [undefined, true, true]);
});
