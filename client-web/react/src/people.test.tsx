import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToString } from "react-dom/server";
import type { Participant, Room } from "windlass-client";
import { CallProvider } from "./call.js";
import { CallStore } from "./call-store.js";
import {
  everybody,
  listenToAll,
  listenToOne,
  listenToSpeakers,
  speakersOf,
  stateOf,
  tracksOf,
  useParticipants,
  useTracks,
} from "./people.js";
import { FakeCall, FakeParticipant } from "./testing/call.js";
import { Watch } from "./watch.js";

const watched = (call: FakeCall) => new Watch(call as unknown as Room, everybody, listenToAll);

/** A component in a call, as text. */
function rendered(call: FakeCall, Shown: () => string): string {
  const state = { ...new CallStore().get(), call: call as unknown as Room };
  return renderToString(
    <CallProvider state={state}>
      <Shown />
    </CallProvider>,
  );
}

test("who comes, changes and goes is reported, each by another list", () => {
  const call = new FakeCall();
  const people = watched(call);
  const lists = [people.get()];
  const end = people.subscribe(() => lists.push(people.get()));
  const ada = new FakeParticipant("Ada");
  call.come(ada);
  ada.tell("change", undefined);
  call.go(ada);
  assert.deepEqual(
    lists.map((list) => list.map(({ name }) => name)),
    [[], ["Ada"], ["Ada"], []],
  );
  assert.equal(new Set(lists).size, 4);
  end();
});

test("who was there before is listened to, and who has left no more", () => {
  const call = new FakeCall();
  const ada = new FakeParticipant("Ada");
  call.participants.push(ada);
  const end = watched(call).subscribe(() => undefined);
  assert.equal(ada.heard, 1);
  call.go(ada);
  assert.equal(ada.heard, 0);
  end();
});

test("nobody listens after the end", () => {
  const call = new FakeCall();
  const ada = new FakeParticipant("Ada");
  const end = watched(call).subscribe(() => undefined);
  call.come(ada);
  end();
  assert.deepEqual([call.heard, ada.heard], [0, 0]);
});

test("what changes between the first look and the listening is not missed", () => {
  const call = new FakeCall();
  const people = watched(call);
  call.come(new FakeParticipant("Ada"));
  people.subscribe(() => undefined);
  assert.equal(people.get().length, 1);
});

test("useParticipants and useTracks give who and what is in the call", () => {
  const call = new FakeCall();
  const ada = new FakeParticipant("Ada");
  ada.tracks = [{ name: "camera" }, { name: "screen" }];
  call.participants.push(ada);
  const names = () =>
    useParticipants()
      .map(({ name }) => name)
      .join();
  assert.equal(rendered(call, names), "Ada");
  const screens = () =>
    useTracks("screen")
      .map(({ track, participant }) => `${participant.name}: ${track.name}`)
      .join();
  assert.equal(rendered(call, screens), "Ada: screen");
  assert.equal(
    rendered(call, () => String(useTracks().length)),
    "2",
  );
});

test("who is away keeps what it sent, until it is back", () => {
  const ada = new FakeParticipant("Ada");
  ada.sounds = [{ muted: false }];
  const watch = new Watch(ada as unknown as Participant, stateOf, listenToOne);
  watch.subscribe(() => undefined);
  const change = (away: boolean, sounds: { muted: boolean }[]) => {
    Object.assign(ada, { away, sounds });
    ada.tell("change", undefined);
  };
  ada.quality = "fair";
  change(true, []);
  assert.deepEqual([watch.get().muted, watch.get().away, watch.get().quality], [false, true, "lost"]);
  change(false, [{ muted: true }]);
  assert.deepEqual([watch.get().muted, watch.get().away, watch.get().quality], [true, false, "fair"]);
});

test("so do the tracks of all", () => {
  const call = new FakeCall();
  const ada = new FakeParticipant("Ada");
  ada.tracks = [{ name: "screen" }];
  call.participants.push(ada);
  const watch = new Watch(call as unknown as Room, tracksOf, listenToAll);
  watch.subscribe(() => undefined);
  const change = (away: boolean, tracks: { name: string }[]) => {
    Object.assign(ada, { away, tracks });
    ada.tell("change", undefined);
  };
  change(true, []);
  assert.equal(watch.get().length, 1);
  change(false, []);
  assert.equal(watch.get().length, 0);
});

test("who is heard is reported, and nobody listens after the end", () => {
  const call = new FakeCall();
  const watch = new Watch(call as unknown as Room, speakersOf, listenToSpeakers);
  const end = watch.subscribe(() => undefined);
  const ada = new FakeParticipant("Ada");
  Object.assign(call, { speakers: [ada], speaking: true });
  call.tell("speakers", call.speakers as unknown as Participant[]);
  assert.deepEqual([watch.get().others.map(({ name }) => name), watch.get().self], [["Ada"], true]);
  end();
  assert.equal(call.heard, 0);
});

test("a component out of a call says what is missing", () => {
  const Lost = () => String(useParticipants());
  assert.throws(() => renderToString(<Lost />), /put the component into <Call>/);
});
