import assert from "node:assert/strict";
import { test } from "node:test";
import { NarrowUplink, type UplinkCaps } from "./narrow.js";

const FREE: UplinkCaps = { maxFps: undefined, maxBitrate: undefined };
const HALF: UplinkCaps = { maxFps: 15, maxBitrate: undefined };

/** A sample without traffic. */
const idle = (availableKbps: number | null) => ({ availableKbps, sentBytes: 0, retransmittedBytes: 0 });

/** Feeds samples four times a second, with a `share` of retransmissions; returns the starts of drains. */
function drains(uplink: NarrowUplink, from: number, to: number, share: number, availableKbps = 50): number[] {
  const at: number[] = [];
  for (let now = from; now <= to; now += 250) {
    const before = uplink.caps.maxBitrate;
    uplink.onSample(now, { availableKbps, sentBytes: now * 6, retransmittedBytes: now * 6 * share });
    if (before === undefined && uplink.caps.maxBitrate !== undefined) at.push(now);
  }
  return at;
}

test("the frame rate is halved at once when the estimate is very low", () => {
  const uplink = new NarrowUplink();
  assert.equal(uplink.onSample(0, idle(300)), false);
  assert.deepEqual(uplink.caps, FREE);
  assert.equal(uplink.onSample(1000, idle(48)), true);
  assert.deepEqual(uplink.caps, HALF);
});

test("it is whole again after the estimate was higher for a while", () => {
  const uplink = new NarrowUplink();
  uplink.onSample(0, idle(48));
  assert.equal(uplink.onSample(1000, idle(130)), false);
  assert.equal(uplink.onSample(4000, idle(100)), false);
  assert.equal(uplink.onSample(5000, idle(130)), false);
  assert.equal(uplink.onSample(9900, idle(130)), false);
  assert.equal(uplink.onSample(10_000, idle(130)), true);
  assert.deepEqual(uplink.caps, FREE);
});

test("no estimate changes nothing", () => {
  const uplink = new NarrowUplink();
  uplink.onSample(0, idle(48));
  assert.equal(uplink.onSample(60_000, idle(null)), false);
  assert.deepEqual(uplink.caps, HALF);
});

test("a narrow path that repairs choke is let run empty for a second, and then left alone for a while", () => {
  const uplink = new NarrowUplink();
  assert.deepEqual(drains(uplink, 0, 12_000, 0.4), [2000, 7000, 12_000]);
  assert.deepEqual(drains(uplink, 12_250, 14_000, 0.4), []);
  assert.deepEqual(uplink.caps, HALF);
});

test("few repairs, and those of a wide path, are no reason to", () => {
  assert.deepEqual(drains(new NarrowUplink(), 0, 12_000, 0.1), []);
  assert.deepEqual(drains(new NarrowUplink(), 0, 12_000, 0.4, 500), []);
});
