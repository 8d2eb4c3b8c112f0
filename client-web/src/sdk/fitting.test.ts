import assert from "node:assert/strict";
import { test } from "node:test";
import { fitting } from "./fitting.js";

const of = (participant: string, ...kinds: ("audio" | "video")[]) =>
  kinds.map((kind, n) => ({ id: `${participant}${n}`, participant, kind }));

test("all tracks are received where there is room", () => {
  assert.deepEqual([...fitting([...of("a", "audio", "video"), ...of("b", "video")], 3)].sort(), ["a0", "a1", "b0"]);
});

test("who publishes many tracks takes no place of those who publish few", () => {
  const many = of("m", "video", "video", "video", "video", "video", "video", "video", "video");
  assert.deepEqual([...fitting([...many, ...of("a", "audio", "video")], 3)].sort(), ["a0", "a1", "m0"]);
});

test("everybody is heard before anybody is seen", () => {
  const tracks = ["a", "b", "c"].flatMap((name) => of(name, "video", "audio"));
  assert.deepEqual([...fitting(tracks, 4)].sort(), ["a0", "a1", "b1", "c1"]);
});

test("without places nothing is received", () => assert.equal(fitting(of("a", "audio"), -2).size, 0));
