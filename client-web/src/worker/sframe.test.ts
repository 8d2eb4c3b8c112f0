import assert from "node:assert/strict";
import { test } from "node:test";
import { type BaseKey, Decryptor, Encryptor, readHeader, writeHeader } from "./sframe.js";

const hex = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text, "hex"));
const text = (bytes: ArrayBuffer | Uint8Array): string => Buffer.from(bytes as Uint8Array).toString("hex");

async function baseKey(material: Uint8Array<ArrayBuffer>, index: number): Promise<BaseKey> {
  return { index, key: await crypto.subtle.importKey("raw", material, "HKDF", false, ["deriveBits"]) };
}

const MATERIAL = hex("000102030405060708090a0b0c0d0e0f");
const PLAIN = hex("64726166742d696574662d736672616d652d656e63");

test("headers are those of RFC 9605, appendix C.1", () => {
  for (const [kid, ctr, encoded] of [
    [0n, 0n, "00"],
    [0n, 255n, "08ff"],
    [1n, 256n, "190100"],
    [255n, 1n, "81ff"],
    [256n, 65_536n, "9a0100010000"],
    [16_777_216n, 4_294_967_296n, "bc010000000100000000"],
    [1_099_511_627_775n, 0n, "c0ffffffffff"],
    [18_446_744_073_709_551_615n, 18_446_744_073_709_551_615n, "ffffffffffffffffffffffffffffffffff"],
  ] as const) {
    assert.equal(text(writeHeader(kid, ctr)), encoded);
    assert.deepEqual(readHeader(hex(`${encoded}aa`)), { kid, ctr, length: encoded.length / 2 });
    if (encoded.length > 2) assert.equal(readHeader(hex(encoded.slice(0, -2))), null);
  }
  assert.equal(readHeader(new Uint8Array()), null);
});

test("a frame is that of RFC 9605, appendix C.3", async () => {
  const frame = await new Encryptor(await baseKey(MATERIAL, 0), 0x123n, 0x4567n).encrypt(
    PLAIN.buffer,
    "IETF SFrame WG",
  );
  const expected = "9901234567b7412c2513a1b66dbb48841bbaf17f598751176ad847681a69c6d0b091c07018ce4adb34eb";
  assert.equal(text(frame), expected);
});

test("who has the base key reads a frame, once", async () => {
  const base = await baseKey(MATERIAL, 7);
  const encryptor = new Encryptor(base);
  const frames = [await encryptor.encrypt(PLAIN.buffer, "video"), await encryptor.encrypt(new ArrayBuffer(0), "video")];
  const decryptor = new Decryptor(() => [base]);
  assert.equal(
    text((await decryptor.decrypt(frames[1] as ArrayBuffer, "video")) ?? new ArrayBuffer(1)),
    "",
    "in any order",
  );
  assert.equal(text((await decryptor.decrypt(frames[0] as ArrayBuffer, "video")) as ArrayBuffer), text(PLAIN));
  for (const frame of frames) assert.equal(await decryptor.decrypt(frame, "video"), null, "not again");
  for (const other of [await baseKey(hex("ff".repeat(16)), 7), await baseKey(MATERIAL, 8)])
    assert.equal(await new Decryptor(() => [other]).decrypt(frames[0] as ArrayBuffer, "video"), null);
  assert.equal(await new Decryptor(() => []).decrypt(frames[0] as ArrayBuffer, "video"), null);
  assert.equal(await new Decryptor(() => [base]).decrypt(frames[0] as ArrayBuffer, "audio"), null, "not as sound");
});

test("a frame that comes twice at once is read once", async () => {
  const base = await baseKey(MATERIAL, 7);
  const encryptor = new Encryptor(base);
  const [a, b] = [await encryptor.encrypt(PLAIN.buffer, "video"), await encryptor.encrypt(PLAIN.buffer, "video")];
  const decryptor = new Decryptor(() => [base]);
  const read = await Promise.all([a, b, a, b].map((frame) => decryptor.decrypt(frame, "video")));
  assert.equal(read.filter((plain) => plain !== null).length, 2, "also the first of an unknown sender");
  for (const frame of [a, b]) assert.equal(await decryptor.decrypt(frame, "video"), null, "nor later");
});

test("senders of one base key have keys of their own", async () => {
  const base = await baseKey(MATERIAL, 0);
  const [a, b] = await Promise.all([1, 2].map(() => new Encryptor(base).encrypt(PLAIN.buffer, "video")));
  assert.notEqual(text(a as ArrayBuffer).slice(-40), text(b as ArrayBuffer).slice(-40));
});

test("frames far back are refused, as nobody knows whether they came", async () => {
  const base = await baseKey(MATERIAL, 0);
  const [early, late] = [new Encryptor(base, 9n), new Encryptor(base, 9n, 2048n)];
  const decryptor = new Decryptor(() => [base]);
  const [zero, one, last] = [
    await early.encrypt(PLAIN.buffer, "video"),
    await early.encrypt(PLAIN.buffer, "video"),
    await late.encrypt(PLAIN.buffer, "video"),
  ];
  assert.notEqual(await decryptor.decrypt(last as ArrayBuffer, "video"), null);
  assert.equal(await decryptor.decrypt(zero as ArrayBuffer, "video"), null);
  assert.notEqual(await decryptor.decrypt(one as ArrayBuffer, "video"), null);
});

test("whatever byte changes, nothing is read", async () => {
  const base = await baseKey(MATERIAL, 0);
  const frame = new Uint8Array(await new Encryptor(base, 5n).encrypt(PLAIN.buffer, "video"));
  for (let at = 0; at < frame.length; at++) {
    const changed = frame.slice();
    changed[at] = (changed[at] as number) ^ 1;
    assert.equal(await new Decryptor(() => [base]).decrypt(changed.buffer, "video"), null, `byte ${at}`);
    assert.equal(await new Decryptor(() => [base]).decrypt(frame.slice(0, at).buffer, "video"), null, `${at} bytes`);
  }
});

test("frames of unknown senders cost eight keys a second", async () => {
  const base = await baseKey(MATERIAL, 0);
  let now = 5000;
  const decryptor = new Decryptor(
    () => [base],
    () => now,
  );
  const noise = new Uint8Array(40).fill(3);
  for (let kid = 8n; kid < 16n; kid++) {
    const header = writeHeader(kid, 0n);
    assert.equal(await decryptor.decrypt(Uint8Array.from([...header, ...noise]).buffer, "video"), null);
  }
  const sound = await new Encryptor(base).encrypt(PLAIN.buffer, "video");
  assert.equal(await decryptor.decrypt(sound, "video"), null, "the ninth is not looked at");
  now += 1000;
  assert.equal(text((await decryptor.decrypt(sound, "video")) as ArrayBuffer), text(PLAIN));
});
