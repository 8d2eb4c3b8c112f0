/**
 * Stills of a track with end-to-end encryption: puts the messages of each together, and decrypts it. Each is bound to
 * the encoded frame that it is of, so it waits until that has come. Whatever else comes is dropped, an anchor that the
 * server made among it.
 */
import { parseAnchorHeader } from "./anchors.js";
import { CHUNK_AT, fixedFields, HEADER_BYTES, metadataOf } from "./regions/message.js";
import { type BaseKey, Decryptor } from "./sframe.js";

/** Max stills whose messages have not all come, or whose frame has not; the oldest makes room. */
const MAX_WAITING = 4;
/** Max bytes of a still: what one message holds. */
const MAX_BYTES = 16 * 1024;
/** Frames that are remembered: two seconds of them, as a still takes a while on a slow uplink. */
const MAX_FRAMES = 64;

/** A still whose messages have not all come. */
interface Unfinished {
  chunks: (Uint8Array | undefined)[];
  missing: number;
  bytes: number;
}

/** A still whose frame has not come. */
interface Early {
  head: Uint8Array;
  payload: ArrayBuffer;
}

/**
 * The outcome of a message: the still in one message, decrypted; `incomplete`: other messages or its frame are missing;
 * `unreadable`: it is dropped.
 */
export type StillOutcome = ArrayBuffer | "incomplete" | "unreadable";

/** Assembles the encrypted stills of one track, and decrypts each once its encoded frame has come. */
export class EncryptedStills {
  private readonly unfinished = new Map<string, Unfinished>();
  private readonly early = new Map<number, Early>();
  private readonly frames = new Map<number, Uint8Array<ArrayBuffer>>();
  private readonly decryptor: Decryptor;

  /** `keys`: the base keys of now. */
  constructor(keys: () => readonly BaseKey[]) {
    this.decryptor = new Decryptor(keys);
  }

  /** Takes a message of the track's anchors. */
  async take(message: ArrayBuffer): Promise<StillOutcome> {
    const header = parseAnchorHeader(message);
    if (header === null) return "unreadable";
    const { chunk, chunks, rtpTimestamp } = header;
    const head = new Uint8Array(message.slice(0, HEADER_BYTES));
    const name = `${rtpTimestamp} ${chunks} ${fixedFields(head)}`;
    const still = this.unfinished.get(name) ?? this.begin(name, chunks);
    if (still.chunks[chunk] !== undefined) return "incomplete";
    const body = new Uint8Array(message, HEADER_BYTES);
    still.chunks[chunk] = body;
    still.missing--;
    still.bytes += body.length;
    if (still.bytes > MAX_BYTES) {
      this.unfinished.delete(name);
      return "unreadable";
    }
    if (still.missing > 0) return "incomplete";
    this.unfinished.delete(name);
    const whole = { head, payload: joined(still) };
    const frame = this.frames.get(rtpTimestamp);
    if (frame !== undefined) return this.open(whole, frame);
    keep(this.early, rtpTimestamp, whole, MAX_WAITING);
    return "incomplete";
  }

  /** Takes an encoded frame of the track; resolves to the outcome of the still that has waited for it, or null. */
  async frame(rtpTimestamp: number, data: Uint8Array<ArrayBuffer>): Promise<StillOutcome | null> {
    keep(this.frames, rtpTimestamp, data, MAX_FRAMES);
    const still = this.early.get(rtpTimestamp);
    if (still === undefined) return null;
    this.early.delete(rtpTimestamp);
    return this.open(still, data);
  }

  private async open({ head, payload }: Early, frame: Uint8Array<ArrayBuffer>): Promise<StillOutcome> {
    const plain = await this.decryptor.decrypt(payload, await metadataOf(fixedFields(head), frame));
    return plain === null ? "unreadable" : alone(head, plain);
  }

  private begin(name: string, chunks: number): Unfinished {
    const still = { chunks: new Array<Uint8Array | undefined>(chunks).fill(undefined), missing: chunks, bytes: 0 };
    keep(this.unfinished, name, still, MAX_WAITING);
    return still;
  }
}

/** Keeps a value as the latest of at most `max`. */
function keep<K, V>(values: Map<K, V>, key: K, value: V, max: number): void {
  values.delete(key);
  values.set(key, value);
  const oldest = values.keys().next();
  if (values.size > max && oldest.done !== true) values.delete(oldest.value);
}

function joined({ chunks, bytes }: Unfinished): ArrayBuffer {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    if (chunk === undefined) continue;
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole.buffer;
}

/** A still as the only message of itself. */
function alone(head: Uint8Array, payload: ArrayBuffer): ArrayBuffer {
  const message = new Uint8Array(HEADER_BYTES + payload.byteLength);
  message.set(head);
  message.set(new Uint8Array(payload), HEADER_BYTES);
  const view = new DataView(message.buffer);
  view.setUint16(CHUNK_AT, 0);
  view.setUint16(CHUNK_AT + 2, 1);
  return message.buffer;
}
