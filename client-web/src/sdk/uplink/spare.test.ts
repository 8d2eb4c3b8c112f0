import assert from "node:assert/strict";
import { test } from "node:test";
import { type Guarded, SpareUplink, type UplinkSample } from "./spare.js";

const GOOD: UplinkSample = {
  availableKbps: 400,
  lowCapKbps: 150,
  firstKbps: 150,
  lowTargetKbps: 150,
  wantedFps: 30,
  lowFps: 30,
  limited: "none",
  served: true,
  encodeShare: 0.2,
};
const ROOM = 400 * 0.85 - 150;

/** An uplink that has been good for a while, and its spare bandwidth after the next sample. */
function good(guarded: Guarded = "all"): { uplink: SpareUplink; look(change?: Partial<UplinkSample>): number } {
  const uplink = new SpareUplink();
  let now = 0;
  const look = (change: Partial<UplinkSample> = {}) => {
    now += 1000;
    uplink.onSample(now, { ...GOOD, ...change }, guarded);
    return uplink.kbps;
  };
  for (let n = 0; n < 3; n++) look();
  return { uplink, look };
}

/** Good seconds until there is spare bandwidth. */
function secondsToSpare(look: () => number, max = 20): number {
  for (let seconds = 1; seconds <= max; seconds++) if (look() > 0) return seconds;
  return Number.POSITIVE_INFINITY;
}

test("what is to spare is reported once layers have had enough for a while", () => {
  const uplink = new SpareUplink();
  const told = [0, 1000, 2000].map((now) => {
    uplink.onSample(now, GOOD, "all");
    return uplink.kbps;
  });
  assert.deepEqual(told, [0, 0, ROOM]);
});

test("it follows the estimate, and is nothing where that leaves next to none or is not known", () => {
  const { look } = good();
  assert.equal(look({ availableKbps: 224 }), 224 * 0.85 - 150);
  assert.equal(look({ availableKbps: 210 }), 0);
  assert.equal(secondsToSpare(look), 3);
  assert.equal(look({ availableKbps: null }), 0);
});

test("a machine that is too slow has nothing to spare", () => {
  assert.equal(good().look({ limited: "cpu" }), 0);
  assert.equal(good().look({ encodeShare: 0.95 }), 0);
});

test("a low layer that loses frames or bits for two seconds leaves nothing to spare", () => {
  for (const poor of [{ lowFps: 15 }, { limited: "bandwidth", lowTargetKbps: 60 }] as Partial<UplinkSample>[]) {
    const { look } = good();
    assert.equal(look(poor), ROOM, "a single look may err");
    assert.equal(look(poor), 0);
    assert.equal(secondsToSpare(look), 3);
  }
});

test("a single poor second is forgiven", () => {
  const { look } = good();
  look({ lowFps: 10 });
  look();
  assert.equal(look({ lowFps: 10 }), ROOM);
});

test("of a camera a layer that lacks bits counts as poor, of a screen it does not", () => {
  const seconds = (guarded: Guarded) => {
    const { look } = good(guarded);
    assert.equal(look({ served: false }), 0);
    look({ lowFps: 15 });
    return secondsToSpare(look);
  };
  assert.deepEqual([seconds("all"), seconds("smallest")], [3, 2]);
});

test("nothing is to spare while a layer lacks bits", () => {
  const { look } = good();
  look({ served: false });
  for (let n = 0; n < 5; n++) assert.equal(look({ served: n % 2 === 0 }), 0);
  assert.equal(secondsToSpare(look), 2);
});

test("a glance at a fallen estimate leaves nothing to spare at once, and for a while; another changes nothing", () => {
  const { uplink, look } = good();
  uplink.onEstimate(400, 150);
  uplink.onEstimate(null, 150);
  assert.equal(uplink.kbps, ROOM);
  uplink.onEstimate(100, 150);
  assert.equal(uplink.kbps, 0);
  assert.equal(secondsToSpare(look), 3);
});
