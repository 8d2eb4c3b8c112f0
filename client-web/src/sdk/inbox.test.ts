import assert from "node:assert/strict";
import { test } from "node:test";
import { Inbox } from "./inbox.js";

const by = (from: string, number?: number, seq = 1, was?: string) => ({ from, number, seq, was });

test("a message that comes by two servers, or was sent again, is taken once", () => {
  const inbox = new Inbox();
  inbox.met({ id: "a1" });
  assert.deepEqual([inbox.takes(by("a1", 1)), inbox.takes(by("a1", 1)), inbox.takes(by("a1", 3))], [true, false, true]);
  // By another way it may be late.
  assert.equal(inbox.takes(by("a1", 2)), true);
  // She comes back, and says again what nobody answered.
  inbox.met({ id: "a2", was: "a1" });
  assert.deepEqual(
    [inbox.takes(by("a2", 3)), inbox.takes(by("a2", 4)), inbox.takes(by("a1", 4))],
    [false, true, false],
  );
  inbox.met({ id: "a3", was: "a2" });
  assert.equal(inbox.takes(by("a3", 4)), false);
});

test("who sent it before is known by the message too", () => {
  const inbox = new Inbox();
  assert.deepEqual([inbox.takes(by("a1", 1)), inbox.takes(by("a2", 1, 1, "a1"))], [true, false]);
});

test("a sender that gives no numbers is counted by the server, for each id from the start", () => {
  const inbox = new Inbox();
  inbox.met({ id: "a1" });
  assert.deepEqual(
    [1, 1, 2].map((seq) => inbox.takes(by("a1", undefined, seq))),
    [true, false, true],
  );
  inbox.met({ id: "a2", was: "a1" });
  assert.equal(inbox.takes(by("a2", undefined, 1)), true);
});

test("nobody makes the messages of another one old", () => {
  const inbox = new Inbox();
  inbox.met({ id: "a1" });
  inbox.met({ id: "mallory" });
  assert.equal(inbox.takes(by("mallory", 4_000_000_000)), true);
  assert.equal(inbox.takes(by("a1", 1)), true);
});

test("long calls and many senders take bounded memory", () => {
  const inbox = new Inbox();
  for (let number = 1; number <= 5000; number++) assert.equal(inbox.takes(by("a1", number)), true);
  assert.equal(inbox.takes(by("a1", 4999)), false);
  assert.equal(inbox.takes(by("a1", 3)), false, "too old to tell");
  for (let n = 0; n < 3000; n++) inbox.met({ id: `p${n}` });
  assert.equal(inbox.takes(by("p2999", 1)), true);
});
