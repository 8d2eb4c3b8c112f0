import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAnchorHeader } from "./anchors.js";
import { BaseKeys } from "./base-keys.js";
import { EncryptedStills } from "./encrypted-stills.js";
import { fixedFieldsOf, metadataOf, stillMessages } from "./regions/message.js";
import { baseKey } from "./testing/keys.js";

const STILL = { id: 7, rtpTimestamp: 90_000, width: 640, height: 360, tiled: false, ageMs: 12 };
const PLAIN = Uint8Array.from({ length: 5000 }, (_, n) => n % 251);

/** The frame that the still is of, and another one. */
const [FRAME, OTHER] = [Uint8Array.of(1, 2, 3), Uint8Array.of(1, 2, 4)];

/** A call: the messages of an encrypted still, and who has its key and, unless it is `early`, its frame. */
async function call({ early = false } = {}) {
  const keys = new BaseKeys();
  keys.add(await baseKey(1));
  const hidden = await keys.encrypt(PLAIN.slice().buffer, await metadataOf(fixedFieldsOf(STILL), FRAME));
  const messages = stillMessages({ ...STILL, payload: new Uint8Array(hidden as ArrayBuffer) });
  const stills = new EncryptedStills(() => keys.all);
  if (!early) await stills.frame(STILL.rtpTimestamp, FRAME);
  return { keys, messages, stills };
}

/** What comes of messages, one after the other. */
async function taken(stills: EncryptedStills, messages: ArrayBuffer[]) {
  const outcomes: (ArrayBuffer | string)[] = [];
  for (const message of messages) outcomes.push(await stills.take(message));
  return outcomes;
}

/** A message with one byte changed. */
function changed(message: ArrayBuffer, at: number): ArrayBuffer {
  const bytes = new Uint8Array(message.slice(0));
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes.buffer;
}

test("a still is put together in any order, and decrypted into one message", async () => {
  const { stills, messages } = await call();
  assert.equal(messages.length, 5);
  const outcomes = await taken(stills, [...messages].reverse());
  const still = outcomes.pop();
  assert.deepEqual(outcomes, Array(4).fill("incomplete"));
  assert.ok(still instanceof ArrayBuffer);
  const header = parseAnchorHeader(still);
  assert.deepEqual(
    [header?.chunk, header?.chunks, header?.rtpTimestamp, header?.source],
    [0, 1, STILL.rtpTimestamp, "captured"],
  );
  assert.deepEqual(new Uint8Array(still, 24), PLAIN);
});

test("a still waits for its frame", async () => {
  const { stills, messages } = await call({ early: true });
  assert.deepEqual(await taken(stills, messages), Array(5).fill("incomplete"));
  assert.equal(await stills.frame(STILL.rtpTimestamp + 1, OTHER), null);
  assert.ok((await stills.frame(STILL.rtpTimestamp, FRAME)) instanceof ArrayBuffer);
  assert.equal(await stills.frame(STILL.rtpTimestamp, FRAME), null, "once");
});

test("a still that a server moves to another frame is refused", async () => {
  const { stills, messages } = await call();
  await stills.frame(STILL.rtpTimestamp ^ 1, OTHER);
  const moved = messages.map((message) => changed(message, 19));
  assert.equal((await taken(stills, moved)).pop(), "unreadable");
});

test("a server may change what it says of its own, and neither size, form nor content", async () => {
  const refused = [1, 3, 20, 23, 40];
  for (const at of [...refused, 4, 8, 14]) {
    const { stills, messages } = await call();
    const last = (
      await taken(
        stills,
        messages.map((message) => changed(message, at)),
      )
    ).pop();
    assert.equal(last === "unreadable", refused.includes(at), `byte ${at}`);
    assert.notEqual(last, "incomplete");
  }
});

test("a still is taken once", async () => {
  const { stills, messages } = await call();
  assert.ok((await taken(stills, messages)).pop() instanceof ArrayBuffer);
  assert.equal((await taken(stills, messages)).pop(), "unreadable");
});

test("who lacks the key, and anchors of a server, get nowhere", async () => {
  const { messages, stills } = await call();
  const stranger = new EncryptedStills(() => []);
  await stranger.frame(STILL.rtpTimestamp, FRAME);
  assert.equal((await taken(stranger, messages)).pop(), "unreadable");
  const plain = stillMessages({ ...STILL, payload: PLAIN });
  assert.equal((await taken(stills, plain)).pop(), "unreadable");
  assert.equal(await stills.take(new ArrayBuffer(3)), "unreadable");
});

test("stills that never end, and too large ones, take bounded memory", async () => {
  const { stills, messages } = await call();
  const begun = async (n: number) => {
    const [first] = stillMessages({ ...STILL, rtpTimestamp: n, payload: PLAIN });
    return stills.take(first as ArrayBuffer);
  };
  assert.equal(await stills.take(messages[0] as ArrayBuffer), "incomplete");
  for (let n = 0; n < 4; n++) assert.equal(await begun(n), "incomplete");
  assert.deepEqual(await taken(stills, messages.slice(1)), Array(4).fill("incomplete"), "the oldest has made room");
  const large = stillMessages({ ...STILL, payload: new Uint8Array(20_000) });
  assert.ok((await taken(stills, large)).includes("unreadable"));
});
