/**
 * Writes a still as data channel messages (`windlass_types::message`): HTJ2K of the detail beyond the built-in filters.
 * Pure.
 */

const VERSION = 1;
const CODEC_HTJ2K = 2;
const SOURCE_CAPTURED = 1;
const FLAG_TILED = 1;
const FLAG_BEYOND_PRIOR = 2;
/** Length of a message's header. */
export const HEADER_BYTES = 24;
/** Where the index of the chunk is in the header; the number of chunks follows. */
export const CHUNK_AT = 10;
/** Max payload bytes of a message: one packet. */
const CHUNK = 1100;
const MAX_CHUNKS = 256;

/** A still. */
export interface StillAnchor {
  /** The id of its request. */
  id: number;
  rtpTimestamp: number;
  /** HR width, pixels. */
  width: number;
  /** HR height, pixels. */
  height: number;
  /** Whether the payload begins with a tile map. */
  tiled: boolean;
  payload: Uint8Array;
  /** Time since the frame was captured, milliseconds. */
  ageMs: number;
}

/** A still without what it shows. */
export type StillHead = Omit<StillAnchor, "payload">;

function header(still: StillHead, index: number, count: number): Uint8Array {
  const head = new Uint8Array(HEADER_BYTES);
  const view = new DataView(head.buffer);
  view.setUint8(0, VERSION);
  view.setUint8(1, CODEC_HTJ2K);
  view.setUint8(2, SOURCE_CAPTURED);
  view.setUint8(3, FLAG_BEYOND_PRIOR | (still.tiled ? FLAG_TILED : 0));
  view.setUint16(8, still.id & 0xffff);
  view.setUint16(CHUNK_AT, index);
  view.setUint16(CHUNK_AT + 2, count);
  view.setUint16(14, Math.min(0xffff, Math.max(0, Math.round(still.ageMs))));
  view.setUint32(16, still.rtpTimestamp >>> 0);
  view.setUint16(20, still.width);
  view.setUint16(22, still.height);
  return head;
}

/** The fields of a header that no server changes: codec, source, form and size. Encryption covers them. */
export function fixedFields(head: Uint8Array): string {
  return ["still", ...head.subarray(1, 4), ...head.subarray(20, 24)].join(" ");
}

/** The fields that all messages of a still share, for one that has no messages yet. */
export const fixedFieldsOf = (still: StillHead): string => fixedFields(header(still, 0, 1));

/** What encryption covers of a still beside its payload: those fields, and the encoded frame that it is of. */
export async function metadataOf(fields: string, frame: BufferSource): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", frame));
  return [fields, ...digest].join(" ");
}

/** The messages of a still; none where it is too large for the format. */
export function stillMessages({ payload, ...still }: StillAnchor): ArrayBuffer[] {
  const count = Math.ceil(payload.length / CHUNK);
  if (count > MAX_CHUNKS) return [];
  return Array.from({ length: count }, (_, index) => {
    const chunk = payload.subarray(index * CHUNK, (index + 1) * CHUNK);
    const message = new Uint8Array(HEADER_BYTES + chunk.length);
    message.set(header(still, index, count));
    message.set(chunk, HEADER_BYTES);
    return message.buffer;
  });
}
