import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { CHECK_TITLES, type CheckResult } from "./check.js";
import { WindlassError } from "./errors.js";
import type { Room } from "./room.js";
import { pass } from "./testing/clock.js";
import { FakeTrack } from "./testing/devices.js";
import { asked, FakeStream, joined, sound, startBrowser, stopBrowser } from "./testing/room.js";
import { FakeServer } from "./testing/server.js";

beforeEach(startBrowser);
afterEach(stopBrowser);

test("where the browser makes no media connection, the join is refused with a code and the cause", async () => {
  const planted = new DOMException("'turn:' is not a valid URL", "SyntaxError");
  Object.assign(globalThis, {
    RTCPeerConnection: class {
      constructor() {
        throw planted;
      }
    },
  });
  const server = new FakeServer("a");
  await assert.rejects(joined({}, server), (error) => {
    assert.ok(error instanceof WindlassError);
    assert.deepEqual([error.code, error.cause], ["media_failed", planted]);
    return true;
  });
  assert.equal(server.open, 0);
});

test("of two screens that are chosen at once, the second one replaces the first", async () => {
  const room = await joined();
  const screens = ["a", "b"].map((name) => new FakeTrack("video", name, {}));
  const chosen: (() => void)[] = [];
  const getDisplayMedia = () => {
    const screen = screens[chosen.length] as FakeTrack;
    return new Promise((resolve) => chosen.push(() => resolve(new FakeStream([screen]))));
  };
  Object.assign(navigator.mediaDevices, { getDisplayMedia });
  const shares = [room.shareScreen(), room.shareScreen()];
  for (const choose of chosen) choose();
  await Promise.all(shares);
  assert.deepEqual(
    screens.map(({ readyState }) => readyState),
    ["ended", "live"],
  );
  assert.deepEqual(
    room.published.map(({ track }) => track.label),
    ["b"],
  );
});

test("a screen that is chosen once the call is over is not captured", async () => {
  const server = new FakeServer("a");
  const room = await joined({}, server);
  const screen = new FakeTrack("video", "a", {});
  Object.assign(navigator.mediaDevices, { getDisplayMedia: async () => new FakeStream([screen]) });
  server.silent = true;
  const shared = room.shareScreen();
  await pass(50);
  room.leave();
  await assert.rejects(shared, { code: "ended" });
  assert.equal(screen.readyState, "ended");
});

test("a check beside the call asks its server, with its token, and opens no device", async () => {
  const server = new FakeServer("a");
  const room = await joined({ token: () => "T" }, server);
  const results: CheckResult[] = [];
  let over = false;
  const checked = (async () => {
    for await (const result of room.check()) results.push(result);
  })().finally(() => {
    over = true;
  });
  for (let seconds = 0; !over && seconds < 60; seconds++) await pass(1000);
  await checked;
  assert.deepEqual(
    results.map(({ name }) => name),
    Object.keys(CHECK_TITLES),
  );
  const outcome = (name: string) => results.find((result) => result.name === name)?.outcome;
  assert.deepEqual(["socket", "camera", "microphone"].map(outcome), ["ok", "skipped", "skipped"]);
  const [call, ...guests] = server.all("join");
  assert.equal(call?.["loopback"], false);
  assert.ok(guests.length > 0);
  for (const { loopback, room: name, token } of guests)
    assert.deepEqual([loopback, name, token], [true, "standup", "T"]);
  assert.deepEqual(asked, []);
  assert.equal(server.open, 1);
});

/** What a page may still call after the end. */
const LATE: Record<string, (room: Room) => Promise<unknown>> = {
  publish: (room) => room.publish(sound()),
  send: (room) => room.send("chat", "Tea?"),
  "send, not reliably": (room) => room.send("chat", "Tea?", { reliable: false }),
  setAttributes: (room) => room.setAttributes({ hand: "up" }),
  setName: (room) => room.setName("Bo"),
  "moderate.mute": (room) => room.moderate.mute("t1"),
  "camera.start": (room) => room.camera.start(),
  "microphone.start": (room) => room.microphone.start({ muted: true }),
  shareScreen: (room) => room.shareScreen(),
};

for (const [what, call] of Object.entries(LATE)) {
  test(`after the end, ${what} says that the call is over, and opens nothing`, async () => {
    const room = await joined();
    room.leave();
    await assert.rejects(call(room), { code: "ended", message: "The call is over.", hint: "Join again." });
    assert.deepEqual(asked, []);
  });
}

test("a track that is given to an input after the end is closed", async () => {
  const room = await joined();
  room.leave();
  const track = sound();
  await assert.rejects(room.microphone.start({ track }), { code: "ended" });
  assert.equal(track.readyState, "ended");
});
