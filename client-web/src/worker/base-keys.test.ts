import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { BaseKeys } from "./base-keys.js";
import { Decryptor, readHeader } from "./sframe.js";
import { baseKey } from "./testing/keys.js";

test("a key decrypts for ten seconds after the next one", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const [keys, first, second] = [new BaseKeys(), await baseKey(1), await baseKey(2)];
    assert.deepEqual(keys.all, []);
    keys.add(first);
    keys.add(second);
    assert.deepEqual(keys.all, [second, first]);
    mock.timers.tick(10_000);
    assert.deepEqual(keys.all, [second]);
  } finally {
    mock.timers.reset();
  }
});

test("when two leave together, the key before both of theirs decrypts on", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const keys = new BaseKeys();
    const three = [await baseKey(1), await baseKey(2), await baseKey(3)] as const;
    keys.add(three[0]);
    mock.timers.tick(60_000);
    keys.add(three[1]);
    mock.timers.tick(4000);
    keys.add(three[2]);
    assert.deepEqual(keys.all, [...three].reverse());
    mock.timers.tick(6000);
    assert.deepEqual(keys.all, [three[2], three[1]]);
    mock.timers.tick(4000);
    assert.deepEqual(keys.all, [three[2]]);
  } finally {
    mock.timers.reset();
  }
});

test("the latest key encrypts, and without one nothing is encrypted", async () => {
  const keys = new BaseKeys();
  const plain = Uint8Array.of(1, 2).buffer;
  assert.equal(await keys.encrypt(plain, "video"), null);
  keys.add(await baseKey(1));
  keys.add(await baseKey(2));
  const hidden = (await keys.encrypt(plain, "video")) as ArrayBuffer;
  assert.equal((readHeader(new Uint8Array(hidden))?.kid ?? 0n) >> 56n, 2n);
  assert.deepEqual(await new Decryptor(() => keys.all).decrypt(hidden, "video"), plain);
});
