import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { WindlassError } from "./errors.js";
import { type JoinOptions, join } from "./join.js";
import type { Welcome } from "./protocol.js";
import type { Publication } from "./publication.js";
import { joined, sound, startBrowser, stopBrowser } from "./testing/room.js";
import { video } from "./testing/server.js";
import { FakeTransport } from "./testing/transport.js";
import type { RemoteVideoTrack } from "./tracks.js";

beforeEach(startBrowser);
afterEach(stopBrowser);

/** What a page without types may write. */
// biome-ignore lint/suspicious/noExplicitAny: it stands for a page without types.
type Untyped = any;

const isHelpful = (error: unknown, code: string): boolean =>
  error instanceof WindlassError && error.code === code && error.hint !== "";

const THROWN: Record<string, (room: Untyped) => void> = {
  "a cap that is undefined": (room) => room.setMaxUplink(undefined),
  "a cap that is no number": (room) => room.setMaxUplink(Number.NaN),
  "a cap below zero": (room) => room.setMaxUplink(-1),
  "a cap that is a text": (room) => room.setMaxUplink("300"),
};

for (const [what, call] of Object.entries(THROWN)) {
  test(`refused at once: ${what}`, async () => {
    const room = await joined();
    assert.throws(
      () => call(room),
      (error) => isHelpful(error, "bad_option"),
    );
  });
}

const REJECTED: Record<string, (room: Untyped) => Promise<unknown>> = {
  "layers that there are not": (room) => room.publish(sound(), { layers: "z" }),
  "a content that there is not": (room) => room.publish(sound(), { content: "film" }),
  "a detail that there is not": (room) => room.publish(sound(), { detail: "always" }),
  "a track name that is no text": (room) => room.publish(sound(), { name: 7 }),
  "options that are null": (room) => room.publish(sound(), null),
  "no track": (room) => room.publish(null),
  "a list with something else": (room) => room.publish([sound(), "a track"]),
  "other layers that there are not": (room) =>
    room.publish(sound()).then(([sent]: Publication[]) => sent?.setLayers("z" as "q")),
  "a mute of nothing": (room) => room.moderate.mute(undefined),
  "an admission of nobody": (room) => room.moderate.admit({}),
  "grants for nobody": (room) => room.moderate.setGrants(null, []),
  "grants that are no list": (room) => room.moderate.setGrants("p1"),
  "a grant that there is not": (room) => room.moderate.setGrants("p1", ["fly"]),
  "a ban without an end": (room) => room.moderate.ban("p1", Number.NaN),
  "an unban of nobody": (room) => room.moderate.unban(undefined),
  "a network that there is not": () => join("wss://a.example/ws", wrongly({ maxNetwork: "xxl" })),
  "a network that is a property of all objects": () => join("wss://a.example/ws", wrongly({ maxNetwork: "toString" })),
  "a backend that there is not": () => join("wss://a.example/ws", wrongly({ networkBackend: "cuda" })),
  "an output that there is not": () => join("wss://a.example/ws", wrongly({ output: "paper" })),
};

function wrongly(wrong: object): JoinOptions {
  return { room: "standup", name: "Me", ...wrong };
}

for (const [what, call] of Object.entries(REJECTED)) {
  test(`refused by the promise: ${what}`, async () => {
    const room = await joined();
    let promise: Promise<unknown> | undefined;
    assert.doesNotThrow(() => {
      promise = call(room);
    });
    await assert.rejects(promise as Promise<unknown>, (error) => isHelpful(error, "bad_option"));
  });
}

test("a rung or a view that there is not is refused, and never offered", () => {
  const asked: unknown[] = [];
  const track = new FakeTransport({} as Welcome, new Map()).subscribe(video("t1", "ada")) as RemoteVideoTrack;
  track.requests = {
    keyAnchor: () => undefined,
    view: (width, height) => asked.push([width, height]),
    maxRung: (rung) => asked.push(rung),
    report: () => undefined,
  };
  const wrong = [
    () => track.setMaxRung("high" as "h"),
    () => track.setView({ width: Number.NaN, height: 100 }),
    () => track.setView({ width: 100, height: undefined as unknown as number }),
  ];
  for (const call of wrong) assert.throws(call, (error) => isHelpful(error, "bad_option"));
  assert.deepEqual(asked, []);
  track.setMaxRung("q+");
  track.setView({ width: -1, height: 70_000 });
  assert.deepEqual(asked, ["q+", [0, 65_535]]);
});

test("events that there are not are refused by all that a room has", async () => {
  const room: Untyped = await joined();
  for (const part of ["camera", "microphone", "devices", "sound"]) {
    assert.throws(
      () => room[part].on("levels", () => undefined),
      (error) => isHelpful(error, "unknown_event"),
      part,
    );
  }
});
