/** The base keys of a call with end-to-end encryption, as its workers have them. */
import { type BaseKey, Encryptor } from "./sframe.js";

/** Time in which all participants take a new key: until then the one before it decrypts. */
const FORMER_KEY_MS = 10_000;

/** The key that encrypts, and the one before it, which decrypts for a while longer. */
export class BaseKeys {
  /** The latest first. */
  private keys: BaseKey[] = [];
  private encryptor: Encryptor | null = null;

  /** The keys that decrypt now. */
  get all(): readonly BaseKey[] {
    return this.keys;
  }

  /** Encrypts by this key from now on. The one before it decrypts on for {@link FORMER_KEY_MS}. */
  add(key: BaseKey): void {
    const [former] = this.keys;
    this.keys = former === undefined || former.index === key.index ? [key] : [key, former];
    this.encryptor = new Encryptor(key);
    setTimeout(() => {
      if (this.keys[0] === key) this.keys = [key];
    }, FORMER_KEY_MS);
  }

  /** Encrypts by the latest key, as {@link Encryptor.encrypt}; null: there is none, or it fails. */
  async encrypt(plain: ArrayBuffer, metadata: string): Promise<ArrayBuffer | null> {
    const hidden = await this.encryptor?.encrypt(plain, metadata).catch(() => null);
    return hidden ?? null;
  }
}
