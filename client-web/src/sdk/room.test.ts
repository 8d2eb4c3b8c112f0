import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { WindlassError } from "./errors.js";
import type { Room } from "./room.js";
import { asked, joined, sound, startBrowser, stopBrowser } from "./testing/room.js";
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
