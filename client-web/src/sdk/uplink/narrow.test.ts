import assert from "node:assert/strict";
import { test } from "node:test";
import { type Hold, NarrowUplink } from "./narrow.js";

const FREE: Hold = { mostFps: undefined, mostBitrate: undefined };
const HALF: Hold = { mostFps: 15, mostBitrate: undefined };

/** Looks without any traffic. */
const idle = (availableKbps: number | null) => ({ availableKbps, sentBytes: 0, repairBytes: 0 });

/** Looks four times a second from `from` to `to`, at a path that `share` of what is sent repairs; when it was let run empty. */
function drains(uplink: NarrowUplink, from: number, to: number, share: number, availableKbps = 50): number[] {
  const at: number[] = [];
  for (let now = from; now <= to; now += 250) {
    const before = uplink.hold.mostBitrate;
    uplink.look(now, { availableKbps, sentBytes: now * 6, repairBytes: now * 6 * share });
    if (before === undefined && uplink.hold.mostBitrate !== undefined) at.push(now);
  }
  return at;
}

test("the frame rate is halved at once when the estimate is very low", () => {
  const uplink = new NarrowUplink();
  assert.equal(uplink.look(0, idle(300)), false);
  assert.deepEqual(uplink.hold, FREE);
  assert.equal(uplink.look(1000, idle(48)), true);
  assert.deepEqual(uplink.hold, HALF);
});

test("it is whole again after the estimate was higher for a while", () => {
  const uplink = new NarrowUplink();
  uplink.look(0, idle(48));
  assert.equal(uplink.look(1000, idle(130)), false);
  assert.equal(uplink.look(4000, idle(100)), false);
  assert.equal(uplink.look(5000, idle(130)), false);
  assert.equal(uplink.look(9900, idle(130)), false);
  assert.equal(uplink.look(10_000, idle(130)), true);
  assert.deepEqual(uplink.hold, FREE);
});

test("no estimate changes nothing", () => {
  const uplink = new NarrowUplink();
  uplink.look(0, idle(48));
  assert.equal(uplink.look(60_000, idle(null)), false);
  assert.deepEqual(uplink.hold, HALF);
});

test("a narrow path that repairs choke is let run empty for a second, and then left alone for a while", () => {
  const uplink = new NarrowUplink();
  assert.deepEqual(drains(uplink, 0, 12_000, 0.4), [2000, 7000, 12_000]);
  assert.deepEqual(drains(uplink, 12_250, 14_000, 0.4), []);
  assert.deepEqual(uplink.hold, HALF);
});

test("few repairs, and those of a wide path, are no reason to", () => {
  assert.deepEqual(drains(new NarrowUplink(), 0, 12_000, 0.1), []);
  assert.deepEqual(drains(new NarrowUplink(), 0, 12_000, 0.4, 500), []);
});
