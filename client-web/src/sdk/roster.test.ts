import assert from "node:assert/strict";
import { test } from "node:test";
import { Roster } from "./roster.js";

const ada = { id: "a1", name: "Ada" };
const bo = { id: "b1", name: "Bo" };
const adaMigrated = { id: "a2", name: "Ada", was: "a1" };

test("a participant is present at once", () => {
  const roster = new Roster();
  assert.equal(roster.add(ada, []), "present");
  assert.equal(roster.add(ada, []), undefined);
  assert.deepEqual(roster.present, [ada]);
});

test("a successor is pending while its predecessor is present, and comes last in order then", () => {
  const roster = new Roster();
  roster.add(ada, []);
  assert.equal(roster.add(adaMigrated, roster.present), "pending");
  roster.add(bo, roster.present);
  assert.deepEqual(roster.present, [ada, bo]);
  assert.deepEqual(roster.get("a2"), adaMigrated);
  assert.deepEqual(roster.admitSuccessor("a1"), adaMigrated);
  assert.equal(roster.admitSuccessor("a1"), undefined);
  roster.remove("a1");
  assert.deepEqual(roster.present, [bo, adaMigrated]);
});

test("a successor whose predecessor is not here is present at once", () => {
  const roster = new Roster();
  assert.equal(roster.add(adaMigrated, []), "present");
  assert.equal(roster.add({ id: "b2", name: "Bo", was: "b2" }, [bo]), "present");
});
