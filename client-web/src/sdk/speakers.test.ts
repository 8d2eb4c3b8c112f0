import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Participant } from "./participant.js";
import { Heard, Speakers, type SpeakersHost } from "./speakers.js";
import { pass, startClock, stopClock } from "./testing/clock.js";

beforeEach(startClock);
afterEach(stopClock);

/** Takes the same reading several times, and gives who is heard then. */
function listen(heard: Heard<string>, levels: Record<string, number>, times: number): string {
  for (let n = 0; n < times; n++) heard.take(new Map(Object.entries(levels)));
  return heard.all.join("");
}

test("several are heard at once, the loudest first", () => {
  assert.equal(listen(new Heard(), { a: 0.4, b: 0.7, c: 0.1, d: 0.55 }, 5), "bda");
});

test("who is heard stays so through the gap between words, and not through a pause", () => {
  const heard = new Heard<string>();
  listen(heard, { a: 0.5 }, 10);
  assert.equal(listen(heard, { a: 0 }, 3), "a");
  assert.equal(listen(heard, { a: 0 }, 5), "");
});

test("a click is not heard", () => {
  const heard = new Heard<string>();
  assert.equal(listen(heard, { a: 0.4 }, 1), "");
  assert.equal(listen(heard, { a: 0 }, 1), "");
});

test("a level between the two thresholds keeps what is", () => {
  const heard = new Heard<string>();
  assert.equal(listen(heard, { a: 0.2 }, 20), "");
  listen(heard, { a: 0.5 }, 5);
  assert.equal(listen(heard, { a: 0.2 }, 20), "a");
});

test("two who are nearly as loud do not change places", () => {
  const heard = new Heard<string>();
  listen(heard, { a: 0.5, b: 0.5 }, 10);
  assert.equal(listen(heard, { a: 0.5, b: 0.53 }, 20), "ab");
  assert.equal(listen(heard, { a: 0.5, b: 0.6 }, 20), "ba");
});

test("who has gone is no longer heard", () => {
  const heard = new Heard<string>();
  listen(heard, { a: 0.5, b: 0.5 }, 10);
  assert.equal(listen(heard, { b: 0.5 }, 1), "b");
});

/** A room whose levels the test sets. */
function room() {
  const ada = { level: 0, away: false };
  const state = { ada, mic: 0, listeners: 0, told: [] as string[] };
  const speakers: Speakers = new Speakers({
    participants: [ada as Participant],
    microphone: {
      on: () => {
        state.listeners++;
        return () => state.listeners--;
      },
      get level() {
        return state.mic;
      },
    } satisfies SpeakersHost["microphone"],
    changed: () => state.told.push(`${speakers.others.length}${speakers.self}`),
  });
  return { state, speakers };
}

test("the others are heard by their levels, oneself by the microphone, and each change is reported once", async () => {
  const { state, speakers } = room();
  speakers.read(true);
  state.ada.level = 0.5;
  await pass(1000);
  state.mic = 0.5;
  await pass(1000);
  Object.assign(state.ada, { away: true });
  await pass(2000);
  assert.deepEqual(state.told, ["1false", "1true", "0true"]);
  speakers.read(false);
});

test("nothing is measured unless somebody listens", async () => {
  const { state, speakers } = room();
  state.ada.level = 0.5;
  await pass(1000);
  assert.deepEqual([state.listeners, state.told], [0, []]);
  speakers.read(true);
  speakers.read(true);
  assert.equal(state.listeners, 1);
  await pass(1000);
  speakers.read(false);
  assert.deepEqual([state.listeners, speakers.others], [0, []]);
  await pass(1000);
  assert.deepEqual(state.told, ["1false"]);
});
