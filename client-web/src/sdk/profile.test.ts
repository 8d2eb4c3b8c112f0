import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { left, WindlassError } from "./errors.js";
import { Profile, type ProfilePath } from "./profile.js";
import type { SetAttributes } from "./protocol.gen.js";
import type { Outcome } from "./socket.js";
import { pass, settle, startClock, stopClock } from "./testing/clock.js";

beforeEach(startClock);
afterEach(stopClock);

const refused = (code: "rate_limited" | "forbidden"): Outcome => ({
  type: "refused",
  error: new WindlassError(code, code, ""),
});

/** A session that answers when the test says so. */
class FakePath implements ProfilePath {
  readonly told: SetAttributes[] = [];
  private readonly waiting: ((outcome: Outcome) => void)[] = [];

  setAttributes(change: SetAttributes): Promise<Outcome> {
    this.told.push(change);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  async answer(outcome: Outcome): Promise<void> {
    this.waiting.shift()?.(outcome);
    await settle();
  }
}

function begun() {
  const path = new FakePath();
  const profile = new Profile("Ada", {});
  profile.begin(path, profile.wanted, true);
  const results: string[] = [];
  const watch = (name: string, promise: Promise<void>) =>
    void promise.then(
      () => results.push(name),
      (error: WindlassError) => results.push(`${name}: ${error.code}`),
    );
  return { path, profile, watch, seen: () => results.splice(0) };
}

test("only what differs is sent, and a name by itself", async () => {
  const { path, profile, watch, seen } = begun();
  watch("hand", profile.set({ hand: "up", pen: "red" }));
  await path.answer({ type: "done" });
  watch("down", profile.set({ hand: null, pen: "red" }, "Countess"));
  await path.answer({ type: "done" });
  watch("same", profile.set({ pen: "red" }));
  await settle();
  assert.deepEqual(path.told, [{ set: { hand: "up", pen: "red" } }, { set: { hand: null }, name: "Countess" }]);
  assert.deepEqual(seen(), ["hand", "down", "same"]);
  assert.deepEqual(profile.wanted, { name: "Countess", attributes: { pen: "red" } });
});

test("of fast changes the latest state is sent", async () => {
  const { path, profile, watch, seen } = begun();
  for (let n = 0; n < 50; n++) watch(`${n}`, profile.set({ count: `${n}` }));
  await path.answer({ type: "done" });
  assert.deepEqual(seen(), ["0"]);
  await path.answer(refused("rate_limited"));
  await pass(1100);
  await path.answer({ type: "done" });
  assert.deepEqual(path.told, [{ set: { count: "0" } }, { set: { count: "49" } }, { set: { count: "49" } }]);
  assert.equal(seen().length, 49);
});

test("what the server refuses is as before", async () => {
  const { path, profile, watch, seen } = begun();
  watch("pen", profile.set({ pen: "red" }));
  await path.answer({ type: "done" });
  watch("name", profile.set({}, "Countess"));
  await path.answer(refused("forbidden"));
  assert.deepEqual(seen(), ["pen", "name: forbidden"]);
  assert.deepEqual(profile.wanted, { name: "Ada", attributes: { pen: "red" } });
});

test("the next session says at its join what the lost one did not", async () => {
  const { path, profile, watch, seen } = begun();
  watch("hand", profile.set({ hand: "up" }));
  await path.answer({ type: "lost", error: left() });
  watch("pen", profile.set({ pen: "red" }));
  assert.deepEqual(seen(), []);
  const next = new FakePath();
  const joinedWith = profile.wanted;
  watch("late", profile.set({ late: "yes" }));
  profile.begin(next, joinedWith, true);
  await next.answer({ type: "done" });
  assert.deepEqual(next.told, [{ set: { late: "yes" } }]);
  assert.deepEqual(seen(), ["hand", "pen", "late"]);
});

test("while a room moves both servers get changes", async () => {
  const { path, profile, watch, seen } = begun();
  const next = new FakePath();
  profile.begin(next, profile.wanted, true);
  watch("hand", profile.set({ hand: "up" }));
  await path.answer({ type: "done" });
  await next.answer({ type: "done" });
  assert.deepEqual([path.told.length, next.told.length, seen()], [1, 1, ["hand"]]);
});

test("a session without the right gets nothing that nobody waits for", async () => {
  const profile = new Profile("Ada", { hand: "up" });
  const path = new FakePath();
  profile.begin(path, { name: "Ada", attributes: {} }, false);
  await settle();
  assert.deepEqual(path.told, []);
});

test("what is beyond the bounds is refused at once, and the end of the call ends all", async () => {
  const { profile, watch, seen } = begun();
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, ""]));
  const large = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`k${n}`, "é".repeat(128)]));
  watch("many", profile.set(many));
  watch("large", profile.set(large));
  watch("long", profile.set({ k: "é".repeat(129) }));
  watch("key", profile.set({ "a b": "c" }));
  watch("value", profile.set({ k: 7 as unknown as string }));
  watch("name", profile.set({}, " "));
  await settle();
  assert.deepEqual(seen().sort(), [
    "key: bad_option",
    "large: too_large",
    "long: too_large",
    "many: too_large",
    "name: bad_option",
    "value: bad_option",
  ]);
  assert.deepEqual(profile.wanted.attributes, {});
  watch("odd", profile.set({ constructor: "x", toString: "y" }));
  assert.deepEqual(Object.keys(profile.wanted.attributes), ["constructor", "toString"]);
  profile.end(left());
  watch("after", profile.set({ k: "v" }));
  await settle();
  assert.deepEqual(seen(), ["odd: left", "after: ended"]);
});

test("a half of a character is replaced, as JSON cannot carry it", async () => {
  const { path, profile } = begun();
  void profile.set({ note: "a\ud83d" }, "Ada \ud83d");
  await path.answer({ type: "done" });
  assert.deepEqual(path.told, [{ set: { note: "a\ufffd" }, name: "Ada \ufffd" }]);
  assert.deepEqual(new Profile("B\ud83d", {}).wanted.name, "B\ufffd");
});

test("a name is as long as the server allows", async () => {
  const { profile, watch, seen } = begun();
  watch("characters", profile.set({}, "x".repeat(65)));
  watch("bytes", profile.set({}, "\u20ac".repeat(43)));
  await settle();
  assert.deepEqual(seen(), ["characters: too_large", "bytes: too_large"]);
  assert.equal(profile.wanted.name, "Ada");
  void profile.set({}, "\u{1f642}".repeat(32));
  assert.equal(profile.wanted.name, "\u{1f642}".repeat(32));
});

test("what a join is refused for is taken back, if no server has taken it", async () => {
  const { path, profile, watch, seen } = begun();
  watch("pen", profile.set({ pen: "red" }));
  await path.answer({ type: "done" });
  profile.ended(path);
  watch("name", profile.set({}, "Ada\u202e"));
  watch("hand", profile.set({ hand: "up" }));
  assert.equal(profile.refusedByJoin(new WindlassError("room_full", "", "")), false);
  assert.equal(profile.refusedByJoin(new WindlassError("malformed", "", "")), true);
  assert.equal(profile.refusedByJoin(new WindlassError("malformed", "", "")), false, "nothing is left to take back");
  await settle();
  assert.deepEqual(seen(), ["pen", "name: malformed", "hand: malformed"]);
  assert.deepEqual(profile.wanted, { name: "Ada", attributes: { pen: "red" } });
});

test("a right that comes later tells what was said at the join, as its loss has taken it back", async () => {
  const profile = new Profile("Ada", { hand: "up" });
  const path = new FakePath();
  profile.begin(path, { name: "Ada", attributes: {} }, false);
  profile.granted(path, true);
  await path.answer({ type: "done" });
  profile.granted(path, false);
  profile.granted(path, true);
  await path.answer({ type: "done" });
  assert.deepEqual(path.told, [{ set: { hand: "up" } }, { set: { hand: "up" } }]);
});
