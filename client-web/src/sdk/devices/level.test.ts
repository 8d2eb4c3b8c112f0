import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { pass, startClock, stopClock } from "../testing/clock.js";
import { LevelWatch, levelOf } from "./level.js";

beforeEach(startClock);
afterEach(stopClock);

const tone = (amplitude: number) =>
  Float32Array.from({ length: 480 }, (_, i) => amplitude * Math.sign((i % 48) - 23.5));

test("the level is 0 for silence, 1 for full scale, and linear in decibels between", () => {
  assert.equal(levelOf(new Float32Array(480)), 0);
  assert.equal(levelOf(tone(0.0005)), 0);
  assert.ok(Math.abs(levelOf(tone(0.1)) - 2 / 3) < 0.001);
  assert.equal(levelOf(tone(1)), 1);
});

test("a watched track is read ten times a second, until another one is watched", async () => {
  const closed: MediaStreamTrack[] = [];
  const levels: number[] = [];
  const meter = (track: MediaStreamTrack) => ({ read: () => 0.5, close: () => closed.push(track) });
  const watch = new LevelWatch(meter, (level) => levels.push(level));
  const track = {} as MediaStreamTrack;
  watch.watch(track);
  await pass(1000);
  assert.equal(levels.length, 10);
  assert.equal(watch.level, 0.5);
  watch.watch(null);
  await pass(1000);
  assert.deepEqual([closed, watch.level, levels.length], [[track], 0, 11]);
});
