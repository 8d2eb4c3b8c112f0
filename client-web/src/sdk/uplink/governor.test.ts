import assert from "node:assert/strict";
import { test } from "node:test";
import { DetailGovernor, type Guarded, type UplinkSample } from "./governor.js";

const GOOD: UplinkSample = {
  availableKbps: 400,
  lowCapKbps: 150,
  lowTargetKbps: 150,
  wantedFps: 30,
  lowFps: 30,
  limited: "none",
  flowing: ["q"],
  served: true,
  encodeShare: 0.2,
};
const WISH = { kbps: 50, fps: 1 };

/** A governor that sends as wished, and its next second. */
function running(guarded: Guarded = "all"): {
  governor: DetailGovernor;
  look(change?: Partial<UplinkSample>): ReturnType<DetailGovernor["look"]>;
} {
  const governor = new DetailGovernor();
  governor.setWish(WISH);
  let now = 0;
  const look = (change: Partial<UplinkSample> = {}) => {
    now += 1000;
    return governor.look(now, { ...GOOD, ...change }, guarded);
  };
  look();
  return { governor, look };
}

/** Seconds until detail is sent again, `most` at most. */
function secondsToResume(look: () => { detail: unknown }, most = 200): number {
  for (let seconds = 1; seconds <= most; seconds++) if (look().detail !== null) return seconds;
  return Number.POSITIVE_INFINITY;
}

test("with room for it the wish is sent at once", () => {
  const governor = new DetailGovernor();
  governor.setWish(WISH);
  assert.deepEqual(governor.look(0, GOOD, "all"), { detail: { kbps: 50, fps: 1 }, restraint: null });
});

test("without a wish nothing is sent", () => {
  const { governor, look } = running();
  governor.setWish(null);
  assert.deepEqual(look(), { detail: null, restraint: null });
});

test("a wish beyond what detail may ever take is cut", () => {
  const governor = new DetailGovernor();
  governor.setWish({ kbps: 5000, fps: 30 });
  const { detail } = governor.look(0, { ...GOOD, availableKbps: 5000 }, "all");
  assert.deepEqual(detail, { kbps: 150, fps: 2 });
});

test("a shrinking estimate first lowers detail, then pauses it", () => {
  const { look } = running();
  assert.equal(look({ availableKbps: 224 }).detail?.kbps, 40);
  assert.deepEqual(look({ availableKbps: 210 }), { detail: null, restraint: "uplink" });
});

test("an unknown estimate pauses it", () => {
  assert.equal(running().look({ availableKbps: null }).detail, null);
});

test("a machine that is too slow pauses it at once", () => {
  assert.equal(running().look({ limited: "cpu" }).restraint, "processor");
  assert.equal(running().look({ encodeShare: 0.95 }).restraint, "processor");
});

test("a low layer that loses frames or bits for two seconds pauses it", () => {
  for (const poor of [{ lowFps: 15 }, { limited: "bandwidth", lowTargetKbps: 60 }] as Partial<UplinkSample>[]) {
    const { look } = running();
    assert.notEqual(look(poor).detail, null);
    assert.equal(look(poor).restraint, "low-layer");
  }
});

test("a camera's larger layer that lacks bits pauses it, a screen's does not", () => {
  const camera = running("all");
  assert.notEqual(camera.look({ served: false }).detail, null, "a single look may err");
  assert.equal(camera.look({ served: false }).restraint, "low-layer");
  const screen = running("smallest");
  for (let n = 0; n < 5; n++) assert.notEqual(screen.look({ served: false }).detail, null);
});

test("it does not begin while a layer lacks bits, and begins when all have had enough for a while", () => {
  const governor = new DetailGovernor();
  governor.setWish(WISH);
  for (let n = 0; n < 3; n++) {
    assert.deepEqual(governor.look(n * 1000, { ...GOOD, served: false }, "all"), {
      detail: null,
      restraint: "low-layer",
    });
  }
  let now = 3000;
  const next = () => {
    now += 1000;
    return governor.look(now, GOOD, "all");
  };
  assert.equal(secondsToResume(next), 6);
});

test("a single poor second is forgiven", () => {
  const { look } = running();
  look({ lowFps: 10 });
  look();
  assert.notEqual(look({ lowFps: 10 }).detail, null);
});

test("it comes back after five calm seconds, later after each relapse", () => {
  const { look } = running();
  look({ availableKbps: 50 });
  assert.equal(secondsToResume(look), 6);
  look({ availableKbps: 50 });
  assert.equal(secondsToResume(look), 11);
  look({ availableKbps: 50 });
  assert.equal(secondsToResume(look), 21);
});

test("room that is just enough to go on is not enough to resume", () => {
  const { look } = running();
  look({ availableKbps: 50 });
  assert.equal(
    secondsToResume(() => look({ availableKbps: 215 })),
    Number.POSITIVE_INFINITY,
  );
});

test("what it lowered it raises after a while", () => {
  const { look } = running();
  look({ availableKbps: 224 });
  const sent = Array.from({ length: 8 }, () => look().detail?.kbps);
  assert.deepEqual([sent[0], sent.at(-1)], [40, 50]);
});

test("what is to spare is told, and is nothing in trouble", () => {
  const { governor, look } = running();
  look();
  assert.equal(governor.spareKbps, 0, "not before layers have had enough for a while");
  look();
  assert.equal(governor.spareKbps, 400 * 0.85 - 150 - 50);
  look({ limited: "cpu" });
  assert.equal(governor.spareKbps, 0);
});

test("nothing is to spare while a layer lacks bits", () => {
  const { governor, look } = running();
  look({ served: false });
  for (let n = 0; n < 5; n++) look({ served: n % 2 === 0 });
  assert.equal(governor.spareKbps, 0);
  for (let n = 0; n < 3; n++) look();
  assert.ok(governor.spareKbps > 0);
});

test("a glance at a fallen estimate pauses it, another one leaves it", () => {
  const { governor, look } = running();
  assert.equal(governor.glance(1500, 400, 150), null);
  assert.equal(governor.glance(1700, null, 150), null);
  assert.deepEqual(governor.glance(1750, 100, 150), { detail: null, restraint: "uplink" });
  assert.equal(look().detail, null);
});
