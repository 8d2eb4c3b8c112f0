import assert from "node:assert/strict";
import { test } from "node:test";
import { firstOf } from "./places.js";

const fails = (url: string) => Promise.reject(new Error(`nothing is at ${url}`));

test("the first place that has it is used, and no other asked", async () => {
  const asked: string[] = [];
  const from = (url: string) => {
    asked.push(url);
    return url === "a" ? fails(url) : Promise.resolve(url);
  };
  assert.equal(await firstOf(["a", "b", "c"], from), "b");
  assert.deepEqual(asked, ["a", "b"]);
});

test("the error names every place and what was wrong there", async () => {
  await assert.rejects(firstOf(["a", "b"], fails), { message: "a: nothing is at a; b: nothing is at b" });
  await assert.rejects(firstOf([], fails), { message: "no place is known" });
});
