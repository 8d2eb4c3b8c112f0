import assert from "node:assert/strict";
import { test } from "node:test";
import { Silence } from "./path-watch.js";

test("a path is silent after two seconds without a packet, and heard with the next one", () => {
  const silence = new Silence();
  const signs = [0, 1000, 1400, 1800, 2200, 2600].map((at) => silence.look(at, 7, true));
  assert.deepEqual(signs, ["heard", "quiet", "quiet", "quiet", "silent", "silent"]);
  assert.equal(silence.look(3000, 8, true), "heard");
  assert.equal(silence.look(5500, 8, true), "quiet");
});

test("a page that stood still has proved nothing", () => {
  const silence = new Silence();
  silence.look(0, 7, true);
  assert.deepEqual(
    [60_000, 60_400, 60_800].map((at) => silence.look(at, 7, true)),
    ["quiet", "quiet", "quiet"],
  );
  assert.equal(silence.look(61_200, 7, true), "silent");
});

test("a browser that does not count packets has its own word", () => {
  const silence = new Silence();
  assert.deepEqual(
    [0, 1000, 9000].map((at) => silence.look(at, null, true)),
    ["heard", "heard", "heard"],
  );
});

test("while nothing is told the path is as quiet as before", () => {
  const silence = new Silence();
  silence.look(0, 7, true);
  const signs = [1000, 1400, 1800, 2200].map((at) => silence.look(at, null, true));
  assert.deepEqual(signs, ["quiet", "quiet", "quiet", "silent"]);
});

test("another pair's count, which begins anew, is no packet", () => {
  const silence = new Silence();
  silence.look(0, 5000, true);
  const signs = [1000, 1400, 1800, 2200].map((at) => silence.look(at, 0, true));
  assert.deepEqual(signs, ["quiet", "quiet", "quiet", "silent"]);
  assert.equal(silence.look(2600, 40, true), "heard");
});

test("without a channel to ask on the browser has its own word", () => {
  const silence = new Silence();
  assert.deepEqual(
    [0, 1000, 9000].map((at) => silence.look(at, 7, false)),
    ["heard", "heard", "heard"],
  );
});
