import assert from "node:assert/strict";
import { test } from "node:test";
import { tokenOf } from "./access-token.js";
import { left, WindlassError } from "./errors.js";

test("a token is taken as it is, and a function is asked", async () => {
  assert.equal(await tokenOf(undefined), undefined);
  assert.equal(await tokenOf("a"), "a");
  assert.equal(await tokenOf(async () => "b"), "b");
});

test("what a function throws becomes an error that may pass, with its cause", async () => {
  const cause = new TypeError("Failed to fetch");
  const fails = () => {
    throw cause;
  };
  await assert.rejects(tokenOf(fails), (error) => {
    assert.ok(error instanceof WindlassError && error.temporary);
    assert.equal(error.code, "no_token");
    assert.equal(error.cause, cause);
    return true;
  });
});

test("an error of the SDK's kind stays what it is", async () => {
  const error = left();
  await assert.rejects(
    tokenOf(() => Promise.reject(error)),
    error,
  );
});
