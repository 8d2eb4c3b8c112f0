import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameClock } from "./frame-clock.js";

const START = 0xffff_f000; // wraps soon
const BASE_US = 1_473_000_123;

/** RTP time that Chromium writes for a camera time in µs: whole milliseconds, and a constant. */
const rtpFor = (us: number) => (Math.floor((us + 777) / 1000) * 90 + START) >>> 0;

interface Run {
  clock: FrameClock;
  times: number[];
}

/** Adds frames with intervals of `interval(i)` µs, sent `delay(i)` ms later, without the `skipped` ones. */
function run(
  count: number,
  interval: (i: number) => number,
  delay: (i: number) => number,
  skipped: number[] = [],
): Run {
  const clock = new FrameClock();
  const times: number[] = [];
  const events: { at: number; act(): void }[] = [];
  let us = BASE_US;
  for (let i = 0; i < count; i++) {
    us += interval(i);
    const time = us;
    times.push(time);
    const at = time / 1000;
    events.push({ at, act: () => clock.addCamera(time, at) });
    const sentAt = at + delay(i);
    if (!skipped.includes(i)) events.push({ at: sentAt, act: () => clock.addSent(rtpFor(time), sentAt) });
  }
  events.sort((a, b) => a.at - b.at);
  for (const { act } of events) act();
  return { clock, times };
}

/** Whether the RTP timestamps of the latest frames are right. */
const exact = ({ clock, times }: Run) => times.slice(-10).every((us) => clock.rtpOf(us) === rtpFor(us));
const jitter = (i: number) => 33_333 + ((i * i * 7919) % 101) * 50 - 2500;

test("frames that jitter are timed to the tick, across a wrap of RTP time", () => {
  assert.ok(exact(run(80, jitter, () => 9)));
});

test("late and early encoders do no harm where the camera jitters", () => {
  assert.ok(exact(run(80, jitter, (i) => 60 + ((i * 31) % 30))));
  assert.ok(exact(run(80, jitter, (i) => -20 + ((i * 31) % 60))));
});

test("one longer interval tells the pairing of a camera like a clock", () => {
  const interval = (i: number) => (i === 60 ? 66_667 : 33_333);
  assert.ok(exact(run(100, interval, () => 90)));
});

test("a camera like a clock is paired by the usual delay", () => {
  assert.ok(
    exact(
      run(
        80,
        () => 33_333,
        (i) => 4 + ((i * 31) % 40),
      ),
    ),
  );
});

test("a frame that was not sent has no timestamp", () => {
  const { clock, times } = run(80, jitter, () => 9, [75]);
  assert.equal(clock.rtpOf(times[75] as number), null);
  assert.notEqual(clock.rtpOf(times[76] as number), null);
});

test("nothing is known before there are enough frames, or after a reset", () => {
  assert.equal(run(12, jitter, () => 9).clock.settled, false);
  const { clock, times } = run(80, jitter, () => 9);
  clock.reset();
  assert.equal(clock.rtpOf(times.at(-1) as number), null);
});
