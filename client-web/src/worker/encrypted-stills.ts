/**
 * Stills of a track with end-to-end encryption: puts the messages of each together, and decrypts it. Whatever else comes is
 * dropped, an anchor that the server made among it.
 */
import { parseAnchorHeader } from "./anchors.js";
import { CHUNK_AT, fixedFields, HEADER_BYTES } from "./regions/message.js";
import { type BaseKey, Decryptor } from "./sframe.js";

/** Max stills whose messages have not all come; the oldest makes room. */
const MAX_UNFINISHED = 4;
/** Max bytes of a still: what one message holds. */
const MAX_BYTES = 16 * 1024;

/** A still whose messages have not all come. */
interface Unfinished {
  chunks: (Uint8Array | undefined)[];
  missing: number;
  bytes: number;
}

/**
 * The outcome of a message: the still in one message, decrypted; `incomplete`: further ones are missing; `unreadable`: it is
 * dropped.
 */
export type StillOutcome = ArrayBuffer | "incomplete" | "unreadable";

/** See the module's head. */
export class EncryptedStills {
  private readonly unfinished = new Map<string, Unfinished>();
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
    const fixed = fixedFields(head);
    const name = `${rtpTimestamp} ${chunks} ${fixed}`;
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
    const plain = await this.decryptor.decrypt(joined(still), fixed);
    return plain === null ? "unreadable" : alone(head, plain);
  }

  private begin(name: string, chunks: number): Unfinished {
    const [oldest] = this.unfinished.keys();
    if (this.unfinished.size >= MAX_UNFINISHED && oldest !== undefined) this.unfinished.delete(oldest);
    const still = { chunks: new Array<Uint8Array | undefined>(chunks).fill(undefined), missing: chunks, bytes: 0 };
    this.unfinished.set(name, still);
    return still;
  }
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
