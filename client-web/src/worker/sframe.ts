/**
 * SFrame (RFC 9605): encrypts whole encoded frames, by AES_128_GCM_SHA256_128 (section 4.5).
 *
 * A protected frame is a header (key id KID, counter CTR), the encrypted frame and a tag, which also covers whether it
 * is audio or video. The application gives base keys, each with an index of a byte. A sender's KID is that index, and
 * seven random bytes: senders of one base key derive different keys from it (section 4.4.2), so that no key is used
 * twice with one counter.
 */

/** A base key. */
export interface BaseKey {
  /** 0 to 255: tells receivers which base key a frame needs. */
  index: number;
  /** For HKDF. */
  key: CryptoKey;
}

/** What a header says, and its length in bytes. */
export interface Header {
  kid: bigint;
  ctr: bigint;
  length: number;
}

/** AES_128_GCM_SHA256_128. */
const SUITE = 4;
const KEY_BITS = 128;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Max bytes that encryption adds. */
export const MAX_OVERHEAD = 17 + TAG_BYTES;
/** Bits of a KID that a sender draws; above them is the index of its base key. */
const DRAWN_BITS = 56n;
/** Counters back from the latest that are taken, each once: some seconds of a sender with three layers. */
const WINDOW = 2048;
/** Max senders whose derived keys are kept. */
const MAX_SENDERS = 32;
/** Max keys that are derived for unknown senders in a second: frames without a key behind them must cost little. */
const MAX_DERIVED = 8;

/** A number in as few bytes as it takes. */
function bytesOf(value: bigint): number[] {
  const bytes: number[] = [];
  for (let rest = value; rest > 0n || bytes.length === 0; rest >>= 8n) bytes.unshift(Number(rest & 0xffn));
  return bytes;
}

/** Half of the first byte of a header, and the bytes that follow: small numbers are in the half itself. */
function field(value: bigint): [number, number[]] {
  if (value < 8n) return [Number(value), []];
  const bytes = bytesOf(value);
  return [8 | (bytes.length - 1), bytes];
}

/** The header of a key id and a counter, each below 2⁶⁴ (section 4.3). */
export function writeHeader(kid: bigint, ctr: bigint): Uint8Array<ArrayBuffer> {
  const [k, kidBytes] = field(kid);
  const [c, ctrBytes] = field(ctr);
  return Uint8Array.of((k << 4) | c, ...kidBytes, ...ctrBytes);
}

/** Reads a header; null where the bytes end within it. */
export function readHeader(bytes: Uint8Array): Header | null {
  const config = bytes[0];
  if (config === undefined) return null;
  let length = 1;
  const take = (half: number): bigint => {
    if (half < 8) return BigInt(half);
    const end = length + (half & 7) + 1;
    const value = bytes.subarray(length, end).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    length = end;
    return value;
  };
  const kid = take(config >> 4);
  const ctr = take(config & 15);
  return length > bytes.length ? null : { kid, ctr, length };
}

/** A number in a field of `length` bytes, big-endian. */
function padded(value: bigint, length: number): Uint8Array<ArrayBuffer> {
  const bytes = bytesOf(value);
  return Uint8Array.from([...Array<number>(length - bytes.length).fill(0), ...bytes]);
}

/** The key and the salt of a sender (section 4.4.2). */
class SenderKey {
  private constructor(
    private readonly key: CryptoKey,
    private readonly salt: Uint8Array,
  ) {}

  static async derive(base: CryptoKey, kid: bigint): Promise<SenderKey> {
    const bits = (label: string, length: number) => {
      const info = Uint8Array.from([
        ...new TextEncoder().encode(label),
        ...padded(kid, 8),
        ...padded(BigInt(SUITE), 2),
      ]);
      return crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info }, base, length);
    };
    const [key, salt] = await Promise.all([
      bits("SFrame 1.0 Secret key ", KEY_BITS),
      bits("SFrame 1.0 Secret salt ", 8 * NONCE_BYTES),
    ]);
    const usages: KeyUsage[] = ["encrypt", "decrypt"];
    return new SenderKey(await crypto.subtle.importKey("raw", key, "AES-GCM", false, usages), new Uint8Array(salt));
  }

  async encrypt(ctr: bigint, header: BufferSource, plain: BufferSource): Promise<ArrayBuffer> {
    return crypto.subtle.encrypt(this.parameters(ctr, header), this.key, plain);
  }

  async decrypt(ctr: bigint, header: BufferSource, protectedFrame: BufferSource): Promise<ArrayBuffer> {
    return crypto.subtle.decrypt(this.parameters(ctr, header), this.key, protectedFrame);
  }

  /** The nonce is the salt, with the counter added bit by bit (section 4.4.3). */
  private parameters(ctr: bigint, additionalData: BufferSource): AesGcmParams {
    const counter = padded(ctr, NONCE_BYTES);
    const iv = this.salt.map((byte, i) => byte ^ (counter[i] as number));
    return { name: "AES-GCM", iv: iv as Uint8Array<ArrayBuffer>, additionalData, tagLength: 8 * TAG_BYTES };
  }
}

/** Encrypts the frames of one sender. */
export class Encryptor {
  private ctr = 0n;
  private readonly key: Promise<SenderKey>;

  /** `kid` is for tests: with one base key it must never be the same twice. */
  constructor(
    base: BaseKey,
    private readonly kid: bigint = drawn(base.index),
    first = 0n,
  ) {
    this.key = SenderKey.derive(base.key, kid);
    this.ctr = first;
  }

  /** `metadata`: what else the tag covers. */
  async encrypt(plain: ArrayBuffer, metadata: string): Promise<ArrayBuffer> {
    const ctr = this.ctr++;
    const header = writeHeader(this.kid, ctr);
    const body = await (await this.key).encrypt(ctr, covered(header, metadata), plain);
    const frame = new Uint8Array(header.length + body.byteLength);
    frame.set(header);
    frame.set(new Uint8Array(body), header.length);
    return frame.buffer;
  }
}

/** What the tag covers beside the frame (section 4.4.3). */
const covered = (header: Uint8Array, metadata: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from([...header, ...new TextEncoder().encode(metadata)]);

/** A key id of this base key that nobody else has. */
function drawn(index: number): bigint {
  const random = crypto.getRandomValues(new Uint8Array(7));
  return random.reduce((sum, byte) => (sum << 8n) | BigInt(byte), BigInt(index) & 0xffn);
}

/** A sender, as a receiver knows it. */
interface Sender {
  base: CryptoKey;
  key: SenderKey;
  latest: bigint;
  /** The counters that came, each at its number modulo {@link WINDOW}. */
  came: BigInt64Array;
}

/** Decrypts frames of any senders. */
export class Decryptor {
  private readonly senders = new Map<bigint, Sender>();
  /** Keys that were derived for unknown senders since then, milliseconds. */
  private derived = { since: 0, count: 0 };

  /** `keys`: the base keys of now. */
  constructor(
    private readonly keys: () => readonly BaseKey[],
    private readonly clock: () => number = () => performance.now(),
  ) {}

  /**
   * The plain frame; null where it cannot be decrypted, or has come before. Nothing else is shown of it. `metadata`:
   * what else the tag covers.
   */
  async decrypt(data: ArrayBuffer, metadata: string): Promise<ArrayBuffer | null> {
    const bytes = new Uint8Array(data);
    const header = readHeader(bytes);
    if (header === null || bytes.length < header.length + TAG_BYTES) return null;
    const { kid, ctr, length } = header;
    const base = this.keys().find(({ index }) => BigInt(index) === kid >> DRAWN_BITS)?.key;
    if (base === undefined) return null;
    const found = this.senders.get(kid);
    const known = found?.base === base ? found : undefined;
    if (known === undefined ? !this.mayDerive() : isOld(known, ctr)) return null;
    const key = known?.key ?? (await SenderKey.derive(base, kid));
    let plain: ArrayBuffer;
    try {
      plain = await key.decrypt(ctr, covered(bytes.subarray(0, length), metadata), bytes.slice(length));
    } catch {
      return null;
    }
    // Other frames may have been decrypted meanwhile.
    const now = this.senders.get(kid);
    // Only who has the base key gets a place.
    const sender = now?.base === base ? now : { base, key, latest: -1n, came: new BigInt64Array(WINDOW).fill(-1n) };
    if (isOld(sender, ctr)) return null;
    this.keep(kid, sender);
    sender.came[Number(ctr % BigInt(WINDOW))] = ctr;
    if (ctr > sender.latest) sender.latest = ctr;
    return plain;
  }

  private mayDerive(): boolean {
    const now = this.clock();
    if (now - this.derived.since >= 1000) this.derived = { since: now, count: 0 };
    return this.derived.count++ < MAX_DERIVED;
  }

  /** Keeps a sender as the latest. */
  private keep(kid: bigint, sender: Sender): void {
    this.senders.delete(kid);
    this.senders.set(kid, sender);
    const oldest = this.senders.keys().next().value;
    if (this.senders.size > MAX_SENDERS && oldest !== undefined) this.senders.delete(oldest);
  }
}

/** Whether a frame has come already, or is so late that nobody knows. */
function isOld({ latest, came }: Sender, ctr: bigint): boolean {
  return ctr + BigInt(WINDOW) <= latest || came[Number(ctr % BigInt(WINDOW))] === ctr;
}
