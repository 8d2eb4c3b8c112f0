/** End-to-end encryption of a call: the keys that its page gives. */
import type { GiveKey } from "../worker/messages.js";
import type { BaseKey } from "../worker/sframe.js";
import { badOption, noEncryption } from "./errors.js";

/** A key of end-to-end encryption. All participants need the same. */
export interface EncryptionKey {
  /** Random bytes, 16 at least: no password. They never leave the browser. */
  key: Uint8Array;
  /** 0 to 255: participants use another one for each new key. Default: 0. */
  index?: number;
}

const MIN_BYTES = 16;

/**
 * Gives a worker the key of now, and each later one, until the function is called that this returns. `encryption`: null
 * where nothing is encrypted.
 */
export function giveKeys(encryption: Encryption | null, worker: { post(message: GiveKey): void }): () => void {
  return encryption?.giveTo((key) => worker.post({ type: "key", key })) ?? (() => undefined);
}

/** The key of a call, and whoever needs it. */
export class Encryption {
  private readonly takers = new Set<(key: BaseKey) => void>();
  private latest: BaseKey | null = null;

  /** Gives the key of now, and each later one, until the function is called that this returns. */
  giveTo(take: (key: BaseKey) => void): () => void {
    this.takers.add(take);
    if (this.latest !== null) take(this.latest);
    return () => this.takers.delete(take);
  }

  /** Encrypts by this key from now on. */
  async add({ key, index = 0 }: EncryptionKey): Promise<void> {
    if (!(key instanceof Uint8Array) || key.length < MIN_BYTES)
      throw badOption(`A key of encryption has ${MIN_BYTES} bytes at least.`, "Give random bytes: no password.");
    if (!Number.isInteger(index) || index < 0 || index > 255)
      throw badOption(`"${String(index)}" is no index of a key.`, "Give a number from 0 to 255.");
    // A page without HTTPS has no `subtle`.
    if (typeof RTCRtpScriptTransform === "undefined" || globalThis.crypto?.subtle === undefined) throw noEncryption();
    const bytes = Uint8Array.from(key);
    const base = { index, key: await crypto.subtle.importKey("raw", bytes, "HKDF", false, ["deriveBits"]) };
    this.latest = base;
    for (const take of [...this.takers]) take(base);
  }
}
