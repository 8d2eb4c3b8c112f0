import assert from "node:assert/strict";
import { test } from "node:test";
import { type TabStore, TabToken } from "./token.js";

/** The store of a tab, in memory. */
function tab(): TabStore {
  const kept = new Map<string, string>();
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) };
}

test("a token is kept in its tab for its room", () => {
  const store = tab();
  new TabToken(store, "tea", "x.y.z").keep("tea");
  assert.equal(new TabToken(store, "tea", null).current, "x.y.z");
  assert.equal(new TabToken(store, "coffee", null).current, null);
  assert.equal(new TabToken(tab(), "tea", null).current, null);
});

test("the token of the address, or a newer one, takes its place", () => {
  const store = tab();
  new TabToken(store, "tea", "old").keep("tea");
  const token = new TabToken(store, "tea", "new");
  assert.equal(token.current, "new");
  token.keep("tea", "newer");
  assert.deepEqual([token.current, new TabToken(store, "tea", null).current], ["newer", "newer"]);
});

test("a store that is forbidden, or has something else, is none", () => {
  const refuse = () => {
    throw new Error("forbidden");
  };
  const token = new TabToken({ getItem: refuse, setItem: refuse }, "tea", null);
  token.keep("tea", "x");
  assert.equal(token.current, "x");
  assert.equal(new TabToken({ getItem: () => "[1]", setItem: refuse }, "tea", null).current, null);
});
