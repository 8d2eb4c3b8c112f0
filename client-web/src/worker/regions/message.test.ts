import assert from "node:assert/strict";
import { test } from "node:test";
import { regionMessages } from "./message.js";

const ANCHOR = {
  id: 0x1_0203,
  rtpTimestamp: 0x01020304,
  width: 640,
  height: 360,
  bits: Uint8Array.of(5, 0),
  frame: Uint8Array.of(0x82, 0x49, 0x83),
  ageMs: 42.4,
};

test("the header and the payload have the bytes of the format", () => {
  const [message, ...more] = regionMessages(ANCHOR).map((m) => [...new Uint8Array(m)]);
  assert.equal(more.length, 0);
  assert.deepEqual(
    message?.slice(0, 24),
    [1, 4, 1, 1, 0, 0, 0, 0, 2, 3, 0, 0, 0, 1, 0, 42, 1, 2, 3, 4, 2, 128, 1, 104],
  );
  // Tile map, head of a key picture whose number and reference are the same, frame.
  assert.deepEqual(message?.slice(24), [5, 0, 0x10, 0, 2, 3, 2, 3, 0, 0, 0x82, 0x49, 0x83]);
});

test("a long anchor is cut into packets and loses nothing", () => {
  const frame = Uint8Array.from({ length: 5000 }, (_, i) => i & 255);
  const messages = regionMessages({ ...ANCHOR, frame }).map((m) => new Uint8Array(m));
  assert.ok(messages.every((m) => m.length <= 1124));
  assert.deepEqual(
    messages.map((m) => [m[11], m[13]]),
    messages.map((_, i) => [i, messages.length]),
  );
  const payload = messages.flatMap((m) => [...m.subarray(24)]);
  assert.deepEqual(payload.slice(10), [...frame]);
});

test("an anchor beyond the format's bounds gives no messages", () => {
  assert.deepEqual(regionMessages({ ...ANCHOR, frame: new Uint8Array(400_000) }), []);
});
