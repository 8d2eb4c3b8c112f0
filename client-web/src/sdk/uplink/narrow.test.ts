import assert from "node:assert/strict";
import { test } from "node:test";
import { NarrowUplink } from "./narrow.js";

test("the frame rate is halved at once when the estimate is very low", () => {
  const uplink = new NarrowUplink();
  assert.equal(uplink.look(0, 300), false);
  assert.equal(uplink.mostFps, undefined);
  assert.equal(uplink.look(1000, 48), true);
  assert.equal(uplink.mostFps, 15);
});

test("it is whole again after the estimate was higher for a while", () => {
  const uplink = new NarrowUplink();
  uplink.look(0, 48);
  assert.equal(uplink.look(1000, 130), false);
  assert.equal(uplink.look(4000, 100), false);
  assert.equal(uplink.look(5000, 130), false);
  assert.equal(uplink.look(9900, 130), false);
  assert.equal(uplink.look(10_000, 130), true);
  assert.equal(uplink.mostFps, undefined);
});

test("no estimate changes nothing", () => {
  const uplink = new NarrowUplink();
  uplink.look(0, 48);
  assert.equal(uplink.look(60_000, null), false);
  assert.equal(uplink.mostFps, 15);
});
