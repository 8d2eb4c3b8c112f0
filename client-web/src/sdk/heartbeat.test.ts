import assert from "node:assert/strict";
import { test } from "node:test";
import { Heartbeat } from "./heartbeat.js";

/** The number of pings until the worker counts as silent; the n-th is at `at(n)`, and 50 are the most. */
function asked(heartbeat: Heartbeat, at: (n: number) => number): number {
  for (let n = 1; n <= 50; n++) if (!heartbeat.ping(at(n))) return n;
  return 50;
}

test("a worker that leaves too many questions unanswered is silent", () => {
  assert.equal(
    asked(new Heartbeat(100, 4), (n) => n * 100),
    5,
  );
});

test("a worker that answers is never silent", () => {
  const heartbeat = new Heartbeat(100, 4);
  for (let n = 0; n < 50; n++) {
    assert.ok(heartbeat.ping(n * 100));
    heartbeat.answered();
  }
});

test("an answer in between restarts the count", () => {
  const heartbeat = new Heartbeat(100, 4);
  for (let n = 0; n < 4; n++) assert.ok(heartbeat.ping(n * 100));
  heartbeat.answered();
  assert.equal(
    asked(heartbeat, (n) => 300 + n * 100),
    5,
  );
});

test("a page that was held up itself blames nobody", () => {
  assert.equal(
    asked(new Heartbeat(100, 4), (n) => n * 1000),
    50,
  );
});
