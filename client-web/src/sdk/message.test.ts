import assert from "node:assert/strict";
import { test } from "node:test";
import { contentOf, draft, MAX_MESSAGE_BYTES, type SendOptions } from "./message.js";

const code = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return "none";
};

test("texts and bytes are written as the server reads them, and read again", () => {
  assert.deepEqual(draft("chat", "Tea?", {}).message, { topic: "chat", text: "Tea?" });
  const bytes = Uint8Array.of(0, 1, 255);
  for (const data of [bytes, bytes.buffer]) {
    const { message } = draft("pen", data, { reliable: false });
    assert.deepEqual(message, { topic: "pen", bytes: "AAH/", reliable: false });
    assert.deepEqual(contentOf(message), { bytes });
  }
  const view = new Uint8Array(Uint8Array.of(9, 0, 1, 255, 9).buffer, 1, 3);
  assert.equal(draft("pen", view, {}).message.bytes, "AAH/", "only what is seen of a buffer");
  assert.deepEqual(contentOf({ text: "" }), { text: "" });
  assert.equal(contentOf({ bytes: "?" }), null);
  assert.equal(contentOf({}), null);
});

test("a half of a character is replaced, as JSON cannot carry it", () => {
  assert.equal(draft("chat", "a\ud83d", {}).message.text, "a\ufffd");
  assert.equal(draft("chat", "\ufeffa", {}).message.text, "\ufeffa");
});

test("what is beyond the bounds is refused, with a code", () => {
  assert.equal(draft("t", "x".repeat(MAX_MESSAGE_BYTES), {}).bytes, MAX_MESSAGE_BYTES);
  assert.equal(
    code(() => draft("t", "x".repeat(MAX_MESSAGE_BYTES + 1), {})),
    "too_large",
  );
  assert.equal(
    code(() => draft("t", "é".repeat(MAX_MESSAGE_BYTES / 2 + 1), {})),
    "too_large",
    "bytes count, not characters",
  );
  for (const topic of ["", "a b", "é", "t".repeat(65)]) {
    assert.equal(
      code(() => draft(topic, "x", {})),
      "bad_option",
    );
  }
  assert.equal(
    code(() => draft("t", 7 as unknown as string, {})),
    "bad_option",
  );
  assert.equal(
    code(() => draft("t", "x", { to: Array(101).fill("p") })),
    "bad_option",
  );
});

test("a receiver that is nobody does not make a message one for all", () => {
  const bo = { id: "bo", away: false, left: false };
  assert.deepEqual(draft("t", "x", { to: bo }).to, [bo]);
  assert.deepEqual(draft("t", "x", { to: ["ada", bo] }).to, ["ada", bo]);
  assert.deepEqual(draft("t", "x", { to: [] }).to, []);
  assert.equal(draft("t", "x", {}).to, undefined);
  for (const options of [{ to: undefined }, { to: null }, { to: [undefined] }, { to: [bo, null] }, { to: 7 }, null]) {
    assert.equal(
      code(() => draft("t", "x", options as unknown as SendOptions)),
      "bad_option",
      JSON.stringify(options),
    );
  }
});
