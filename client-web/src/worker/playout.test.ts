import assert from "node:assert/strict";
import { test } from "node:test";
import { PlayoutClock, PlayoutQueue, RtpTimeline } from "./playout.js";

test("the timeline goes on over the wrap of the timestamp", () => {
  const timeline = new RtpTimeline();
  const before = timeline.toMs(0xffff_ff00);
  const after = timeline.toMs(0x0000_0100);
  assert.equal(Math.round((after - before) * 90), 512);
  assert.equal(timeline.toMs(0xffff_ff00), before);
});

test("steady pictures are shown when they are ready", () => {
  const clock = new PlayoutClock();
  for (let i = 0; i < 60; i++) clock.ready(i * 33, 1000 + i * 33);
  assert.equal(clock.due(2000), 3000);
  assert.equal(clock.delayMs, 0);
});

test("jitter raises the delay at once and no further than the bound", () => {
  const clock = new PlayoutClock(200);
  for (let i = 0; i < 90; i++) clock.ready(i * 33, 1000 + i * 33 + (i % 5 === 0 ? 40 : 0));
  assert.ok(Math.abs(clock.delayMs - 40) < 2, `${clock.delayMs}`);
  for (let i = 90; i < 180; i++) clock.ready(i * 33, 1000 + i * 33 + (i % 2) * 700);
  assert.ok(clock.delayMs <= 200);
});

test("the delay sinks slowly when jitter ends", () => {
  const clock = new PlayoutClock();
  for (let i = 0; i < 30; i++) clock.ready(i * 33, 1000 + i * 33 + (i % 2) * 50);
  const high = clock.delayMs;
  for (let i = 30; i < 150; i++) clock.ready(i * 33, 1000 + i * 33);
  assert.ok(high >= 45 && clock.delayMs < high - 10 && clock.delayMs > 0);
});

test("one very late start does not delay all that follows", () => {
  const clock = new PlayoutClock(200);
  clock.ready(0, 1900);
  clock.ready(33, 1033);
  assert.equal(clock.due(33), 1233);
});

test("the clock does not run ahead of the native player", () => {
  const clock = new PlayoutClock();
  clock.nativeShown(0, 1080);
  clock.ready(0, 1000);
  assert.equal(clock.due(33), 1113);
  assert.equal(clock.lagMs, -80);
});

test("a jump of the timeline restarts the clock", () => {
  const clock = new PlayoutClock();
  clock.ready(0, 1000);
  clock.ready(100_000, 1033);
  assert.equal(clock.due(100_000), 1033);
});

test("pictures come out in order, each at its time", () => {
  const clock = new PlayoutClock();
  clock.ready(0, 100);
  const queue = new PlayoutQueue<string>(clock, () => undefined);
  queue.push(0, "a");
  queue.push(33, "b");
  assert.equal(queue.take(99), null);
  assert.equal(queue.take(100), "a");
  assert.equal(queue.take(110), null);
  assert.equal(queue.waitMs(110), 23);
  assert.equal(queue.take(133), "b");
  assert.equal(queue.waitMs(134), null);
});

test("too many pictures, and pictures long past, are dropped and counted", () => {
  const clock = new PlayoutClock();
  clock.ready(0, 0);
  const dropped: number[] = [];
  const queue = new PlayoutQueue<number>(clock, (n) => dropped.push(n), 3);
  for (let i = 0; i < 5; i++) queue.push(i * 100, i);
  assert.deepEqual(dropped, [0, 1]);
  assert.equal(queue.take(420), 3);
  assert.equal(queue.dropped, 3);
});

test("a better picture takes the place of one that still waits", () => {
  const clock = new PlayoutClock();
  clock.ready(0, 0);
  const dropped: string[] = [];
  const queue = new PlayoutQueue<string>(clock, (p) => dropped.push(p));
  queue.push(10, "plain");
  assert.ok(queue.replace(10, "better"));
  assert.equal(queue.take(10), "better");
  assert.deepEqual(dropped, ["plain"]);
  assert.ok(!queue.replace(10, "best"));
});
