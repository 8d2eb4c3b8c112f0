import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../testing/clock.js";
import { playSound, SoundGate } from "./playback.js";

/** An element in a browser that blocks sound. */
class Element {
  blocked = true;
  plays = 0;
  fails = "NotAllowedError";
  play(): Promise<void> {
    this.plays++;
    return this.blocked ? Promise.reject(new DOMException("", this.fails)) : Promise.resolve();
  }
}

test("sound that is blocked plays at the next gesture", async () => {
  const [element, page] = [new Element(), new EventTarget()];
  const told: boolean[] = [];
  playSound(element, (blocked) => told.push(blocked), page);
  await settle();
  assert.deepEqual(told, [true]);
  element.blocked = false;
  page.dispatchEvent(new Event("pointerup"));
  await settle();
  assert.deepEqual(told, [true, false]);
  page.dispatchEvent(new Event("keydown"));
  assert.equal(element.plays, 2);
});

test("a click without a pointer or a key, as by a screen reader, is a gesture", async () => {
  const [element, page] = [new Element(), new EventTarget()];
  const told: boolean[] = [];
  playSound(element, (blocked) => told.push(blocked), page);
  await settle();
  element.blocked = false;
  page.dispatchEvent(new Event("click"));
  await settle();
  assert.deepEqual(told, [true, false]);
});

test("a gesture that does not help is not the last one", async () => {
  const [element, page] = [new Element(), new EventTarget()];
  const told: boolean[] = [];
  playSound(element, (blocked) => told.push(blocked), page);
  await settle();
  page.dispatchEvent(new Event("pointerdown"));
  await settle();
  element.blocked = false;
  page.dispatchEvent(new Event("keydown"));
  await settle();
  assert.deepEqual(told, [true, false]);
});

test("an element whose source changes is not blocked", async () => {
  const element = new Element();
  element.fails = "AbortError";
  const told: boolean[] = [];
  const playback = playSound(element, (blocked) => told.push(blocked), new EventTarget());
  await playback.start();
  assert.deepEqual(told, []);
});

test("a gate is blocked while one of its elements is", async () => {
  const gate = new SoundGate(new EventTarget());
  const [first, second] = [new Element(), new Element()];
  const told: boolean[] = [];
  gate.on("change", ({ blocked }) => told.push(blocked));
  gate.play(first);
  gate.play(second);
  await settle();
  assert.equal(gate.blocked, true);
  await assert.rejects(gate.start(), { code: "sound_blocked" });
  first.blocked = false;
  await assert.rejects(gate.start(), { code: "sound_blocked" });
  second.blocked = false;
  await gate.start();
  assert.deepEqual([gate.blocked, told], [false, [true, false]]);
});

test("an element that is forgotten blocks nothing", async () => {
  const page = new EventTarget();
  const gate = new SoundGate(page);
  const element = new Element();
  const forget = gate.play(element);
  await settle();
  forget();
  assert.equal(gate.blocked, false);
  page.dispatchEvent(new Event("keydown"));
  assert.equal(element.plays, 1);
});
