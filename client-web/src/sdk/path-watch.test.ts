import assert from "node:assert/strict";
import { test } from "node:test";
import { Silence } from "./path-watch.js";

test("a path is silent after two seconds without a packet, and heard with the next one", () => {
  const silence = new Silence();
  const signs = [0, 1000, 1400, 1800, 2200, 2600].map((at) => silence.look(at, 7));
  assert.deepEqual(signs, ["heard", "quiet", "quiet", "quiet", "silent", "silent"]);
  assert.equal(silence.look(3000, 8), "heard");
  assert.equal(silence.look(5500, 8), "quiet");
});

test("a page that stood still has proved nothing", () => {
  const silence = new Silence();
  silence.look(0, 7);
  assert.deepEqual(
    [60_000, 60_400, 60_800].map((at) => silence.look(at, 7)),
    ["quiet", "quiet", "quiet"],
  );
  assert.equal(silence.look(61_200, 7), "silent");
});

test("a browser that does not count packets has its own word", () => {
  const silence = new Silence();
  assert.deepEqual(
    [0, 1000, 9000].map((at) => silence.look(at, null)),
    ["heard", "heard", "heard"],
  );
});

test("while nothing is told the path is as quiet as before", () => {
  const silence = new Silence();
  silence.look(0, 7);
  const signs = [1000, 1400, 1800, 2200].map((at) => silence.look(at, null));
  assert.deepEqual(signs, ["quiet", "quiet", "quiet", "silent"]);
});
