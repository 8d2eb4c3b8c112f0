/** The base keys of a call with end-to-end encryption, as its workers have them. */
import { type BaseKey, Encryptor } from "./sframe.js";

/** Time in which all participants take a new key: until then those before it decrypt. */
const FORMER_KEY_MS = 10_000;
/** Maximum number of keys that decrypt: several participants may leave at once, and each key is tried on each frame. */
const MAX_KEYS = 8;

/** The key that encrypts, and those before it, which decrypt for a while longer. */
export class BaseKeys {
  /** The latest first. */
  private keys: BaseKey[] = [];
  private encryptor: Encryptor | null = null;

  /** The keys that decrypt now. */
  get all(): readonly BaseKey[] {
    return this.keys;
  }

  /** Encrypts by this key from now on. Each one before it decrypts for {@link FORMER_KEY_MS} from now, or less. */
  add(key: BaseKey): void {
    const former = this.keys.filter(({ index }) => index !== key.index);
    this.keys = [key, ...former].slice(0, MAX_KEYS);
    this.encryptor = new Encryptor(key);
    setTimeout(() => {
      this.keys = this.keys.filter((one) => !former.includes(one));
    }, FORMER_KEY_MS);
  }

  /** Encrypts by the latest key, as {@link Encryptor.encrypt}; null: there is none, or it fails. */
  async encrypt(plain: ArrayBuffer, metadata: string): Promise<ArrayBuffer | null> {
    const hidden = await this.encryptor?.encrypt(plain, metadata).catch(() => null);
    return hidden ?? null;
  }
}
