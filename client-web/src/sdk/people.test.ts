import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outlet, Participant } from "./participant.js";
import { People } from "./people.js";
import type { RemoteAudioTrack } from "./tracks.js";

/** A room's people, and what is reported to their host. */
function room() {
  const state = { self: "me", connected: true };
  const told: string[] = [];
  const people = new People({
    self: () => ({ id: state.self, name: "Me" }),
    connected: () => state.connected,
    outlet: {} as Outlet,
    came: (participant) => told.push(`+${participant.name}`),
    changed: (participant) => told.push(`~${participant.name}`),
    left: (participant) => told.push(`-${participant.name}`),
  });
  return { state, told, people };
}

function track(id: string, participant: string, replaces: RemoteAudioTrack | null = null): RemoteAudioTrack {
  const name = "microphone";
  return { kind: "audio", id, participant, name, muted: false, track: {} as MediaStreamTrack, level: 0.5, replaces };
}

/** Announces somebody with a track, as a session does. */
function announce(people: People, id: string, name: string): RemoteAudioTrack {
  people.join({ id, name });
  const announced = track(`t-${id}`, id);
  people.addTrack(announced);
  return announced;
}

test("who comes and goes is reported once each", () => {
  const { people, told } = room();
  const sound = announce(people, "a", "Ada");
  const ada = people.get("a") as Participant;
  assert.equal(ada.microphone, sound);
  people.removeTrack(sound);
  assert.equal(ada.microphone, null);
  people.leave("a");
  people.leave("a");
  assert.deepEqual(told, ["+Ada", "-Ada"]);
  assert.equal(ada.left, true);
  assert.deepEqual(people.all, []);
});

test("the quality of a connection is a participant's, and each change is reported once", () => {
  const { people } = room();
  announce(people, "a", "Ada");
  const ada = people.get("a") as Participant;
  let changes = 0;
  ada.on("change", () => changes++);
  assert.equal(ada.quality, null);
  assert.equal(people.quality("a", "poor"), ada);
  people.quality("a", "poor");
  assert.deepEqual([ada.quality, changes], ["poor", 1]);
  assert.equal(people.quality("nobody", "good"), undefined);
});

test("a lost connection keeps everybody, away, and finds them again by their ids", () => {
  const { people, told, state } = room();
  const sound = announce(people, "a", "Ada");
  const ada = people.get("a") as Participant;
  state.connected = false;
  people.removeTrack(sound);
  people.leave("a");
  assert.equal(ada.away, true);
  state.connected = true;
  const again = announce(people, "a", "Ada");
  people.announced();
  assert.deepEqual([ada.away, ada.microphone === again, people.all.length], [false, true, 1]);
  assert.deepEqual(told, ["+Ada"]);
});

test("who is no longer there after a reconnect has left", () => {
  const { people, told, state } = room();
  announce(people, "a", "Ada");
  state.connected = false;
  people.leave("a");
  state.connected = true;
  people.announced();
  assert.deepEqual(told, ["+Ada", "-Ada"]);
});

test("after a reconnect to another server an identity is found again under another id", () => {
  const { people, told, state } = room();
  people.join({ id: "a", name: "Ada", identity: "ada" });
  const ada = people.get("a");
  state.connected = false;
  people.leave("a");
  state.connected = true;
  people.join({ id: "x9", name: "Ada", identity: "ada" });
  people.announced();
  assert.equal(people.get("x9"), ada);
  assert.deepEqual(told, ["+Ada"]);
});

test("who comes back is away until all of it is announced", () => {
  const { people, state } = room();
  announce(people, "a", "Ada");
  const ada = people.get("a") as Participant;
  state.connected = false;
  people.leave("a");
  state.connected = true;
  people.join({ id: "a", name: "Ada" });
  assert.equal(ada.away, true);
  people.announced();
  assert.equal(ada.away, false);
});

test("an identity may come back some seconds after the others", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { people, told, state } = room();
  people.join({ id: "a", name: "Ada", identity: "ada" });
  people.join({ id: "b", name: "Bo", identity: "bo" });
  const ada = people.get("a") as Participant;
  state.connected = false;
  for (const id of ["a", "b"]) people.leave(id);
  state.connected = true;
  people.announced();
  t.mock.timers.tick(2000);
  people.join({ id: "x", name: "Ada", identity: "ada" });
  assert.deepEqual([people.get("x") === ada, ada.away], [true, false]);
  t.mock.timers.tick(6000);
  assert.deepEqual(told, ["+Ada", "+Bo", "-Bo"]);
});

test("who is away is kept where the connection is lost again at once", () => {
  const { people, told, state } = room();
  announce(people, "a", "Ada");
  state.connected = false;
  people.leave("a");
  people.announced();
  assert.deepEqual([people.all.length, told], [1, ["+Ada"]]);
});

test("somebody else of the same name is not taken for who is away", () => {
  const { people, told, state } = room();
  people.join({ id: "a", name: "Ada" });
  state.connected = false;
  people.leave("a");
  state.connected = true;
  people.join({ id: "b", name: "Ada" });
  people.announced();
  assert.deepEqual(told, ["+Ada", "+Ada", "-Ada"]);
});

test("a migration keeps the participant, whose track is replaced in place", () => {
  const { people, told } = room();
  const former = announce(people, "a", "Ada");
  const ada = people.get("a") as Participant;
  people.join({ id: "b", name: "Ada", was: "a" });
  const successor = track("t2", "b", former);
  people.addTrack(successor);
  people.removeTrack(former);
  people.leave("a");
  assert.deepEqual([people.get("b") === ada, ada.id, ada.microphone === successor], [true, "b", true]);
  assert.deepEqual([...ada.tracks], [successor]);
  assert.deepEqual(told, ["+Ada"]);
});

test("a migration of which only the tracks tell keeps the participant as well", () => {
  const { people } = room();
  const former = announce(people, "a", "Ada");
  const ada = people.get("a");
  people.join({ id: "b", name: "Ada" });
  people.addTrack(track("t2", "b", former));
  people.removeTrack(former);
  people.leave("a");
  assert.deepEqual([people.get("b") === ada, people.all.length], [true, 1]);
});

test("in a loopback room this participant comes with its first track, and goes with its last", () => {
  const { people, told } = room();
  const own = track("t", "me");
  people.addTrack(own);
  assert.equal(people.get("me")?.isSelf, true);
  people.removeTrack(own);
  assert.deepEqual(told, ["+Me", "-Me"]);
});

test("in a loopback room this participant is the same after a reconnect, under another id", () => {
  const { people, told, state } = room();
  const own = track("t", "me");
  people.addTrack(own);
  const me = people.get("me");
  state.connected = false;
  people.removeTrack(own);
  state.connected = true;
  state.self = "me2";
  people.announced();
  people.addTrack(track("t", "me2"));
  assert.equal(people.get("me2"), me);
  assert.deepEqual(told, ["+Me"]);
});

test("one participant speaks at a time", () => {
  const { people } = room();
  announce(people, "a", "Ada");
  announce(people, "b", "Bo");
  people.speaks("a");
  people.speaks("b");
  assert.deepEqual(
    people.all.map(({ speaking }) => speaking),
    [false, true],
  );
});

test("the end of the call ends everybody's stay", () => {
  const { people, told } = room();
  announce(people, "a", "Ada");
  announce(people, "b", "Bo");
  people.end();
  assert.deepEqual(told, ["+Ada", "+Bo", "-Ada", "-Bo"]);
});

test("a participant is heard with all of its sounds but that of its screen", () => {
  const { people } = room();
  const microphone = announce(people, "a", "Ada");
  const music = { ...track("m", "a"), name: "music" };
  people.addTrack({ ...track("s", "a"), name: "screen_audio" });
  people.addTrack(music);
  const ada = people.get("a") as Participant;
  assert.deepEqual([ada.microphone, ada.sounds, ada.screenAudio?.id], [microphone, [microphone, music], "s"]);
});

test("name and attributes are those that were said last, also by who moved", () => {
  const { people, told } = room();
  people.join({ id: "a", name: "Ada", attributes: { hand: "up" } });
  const ada = people.get("a") as Participant;
  let changes = 0;
  ada.on("change", () => changes++);
  assert.deepEqual(ada.attributes, { hand: "up" });
  people.change({ id: "a", name: "Ada", attributes: { hand: "up" } });
  people.change({ id: "b", name: "Bo" });
  assert.deepEqual([told, changes], [["+Ada"], 0], "that was known, or is of nobody");
  people.change({ id: "a", name: "Countess", attributes: {} });
  assert.deepEqual([told.splice(1), changes, ada.attributes], [["~Countess"], 1, {}]);
  people.join({ id: "b", name: "Countess", was: "a", attributes: { pen: "red" } });
  people.change({ id: "a", name: "Ada" });
  assert.deepEqual([told.splice(1), ada.attributes], [["~Countess"], { pen: "red" }], "her former id is out of date");
});

test("a message is of a participant, by its id or the one before, or in a loopback room of this one", () => {
  const { people } = room();
  people.join({ id: "a", name: "Ada" });
  assert.equal(people.sender("a", undefined)?.name, "Ada");
  assert.equal(people.sender("b", "a")?.name, "Ada");
  assert.equal(people.sender("c", undefined), undefined);
  assert.equal(people.sender("me", undefined)?.isSelf, true);
});

test("a participant is as loud as the loudest of its sounds that is not muted", () => {
  const { people } = room();
  people.join({ id: "a", name: "Ada" });
  const ada = people.get("a") as Participant;
  assert.equal(ada.level, 0);
  people.addTrack(track("t1", "a"));
  people.addTrack({ ...track("t2", "a"), level: 0.9, muted: true });
  assert.equal(ada.level, 0.5);
});

test("only one comes in the place of another: a second one with the same former id is somebody else", () => {
  const { people, told } = room();
  const sound = announce(people, "a", "Ada");
  people.join({ id: "b", name: "Ada", was: "a" });
  people.addTrack(track("t-b", "b", sound));
  people.join({ id: "c", name: "Eve", was: "a" });
  people.addTrack(track("t-c", "c", sound));
  assert.deepEqual(told, ["+Ada", "+Eve"]);
  assert.deepEqual(
    people.all.map(({ id }) => id),
    ["b", "c"],
  );
});
