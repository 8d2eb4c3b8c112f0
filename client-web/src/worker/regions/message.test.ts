import assert from "node:assert/strict";
import { test } from "node:test";
import { stillMessages } from "./message.js";

const ANCHOR = {
  id: 0x1_0203,
  rtpTimestamp: 0x01020304,
  width: 640,
  height: 360,
  tiled: true,
  payload: Uint8Array.of(5, 0, 0x82, 0x49, 0x83),
  ageMs: 42.4,
};

test("the header and the payload have the bytes of the format", () => {
  const [message, ...more] = stillMessages(ANCHOR).map((m) => [...new Uint8Array(m)]);
  assert.equal(more.length, 0);
  assert.deepEqual(
    message?.slice(0, 24),
    [1, 2, 1, 3, 0, 0, 0, 0, 2, 3, 0, 0, 0, 1, 0, 42, 1, 2, 3, 4, 2, 128, 1, 104],
  );
  assert.deepEqual(message?.slice(24), [...ANCHOR.payload]);
});

test("a whole picture says that it has no tiles", () => {
  const [message] = stillMessages({ ...ANCHOR, tiled: false });
  assert.equal(new Uint8Array(message ?? new ArrayBuffer(4))[3], 2);
});

test("a long anchor is cut into packets and loses nothing", () => {
  const payload = Uint8Array.from({ length: 5000 }, (_, i) => i & 255);
  const messages = stillMessages({ ...ANCHOR, payload }).map((m) => new Uint8Array(m));
  assert.ok(messages.every((m) => m.length <= 1124));
  assert.deepEqual(
    messages.map((m) => [m[11], m[13]]),
    messages.map((_, i) => [i, messages.length]),
  );
  assert.deepEqual(
    messages.flatMap((m) => [...m.subarray(24)]),
    [...payload],
  );
});

test("an anchor beyond the format's bounds gives no messages", () => {
  assert.deepEqual(stillMessages({ ...ANCHOR, payload: new Uint8Array(400_000) }), []);
});
