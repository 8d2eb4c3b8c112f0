/**
 * Writes a still as data channel messages (`windlass_types::message`): HTJ2K of the detail beyond the built-in filters.
 * Pure.
 */

const VERSION = 1;
const CODEC_HTJ2K = 2;
const SOURCE_CAPTURED = 1;
const FLAG_TILED = 1;
const FLAG_BEYOND_PRIOR = 2;
const HEADER_BYTES = 24;
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

/** The messages of a still; none where it is too large for the format. */
export function stillMessages({ payload, ...anchor }: StillAnchor): ArrayBuffer[] {
  const count = Math.ceil(payload.length / CHUNK);
  if (count > MAX_CHUNKS) return [];
  return Array.from({ length: count }, (_, index) => {
    const chunk = payload.subarray(index * CHUNK, (index + 1) * CHUNK);
    const message = new Uint8Array(HEADER_BYTES + chunk.length);
    const view = new DataView(message.buffer);
    view.setUint8(0, VERSION);
    view.setUint8(1, CODEC_HTJ2K);
    view.setUint8(2, SOURCE_CAPTURED);
    view.setUint8(3, FLAG_BEYOND_PRIOR | (anchor.tiled ? FLAG_TILED : 0));
    view.setUint16(8, anchor.id & 0xffff);
    view.setUint16(10, index);
    view.setUint16(12, count);
    view.setUint16(14, Math.min(0xffff, Math.max(0, Math.round(anchor.ageMs))));
    view.setUint32(16, anchor.rtpTimestamp >>> 0);
    view.setUint16(20, anchor.width);
    view.setUint16(22, anchor.height);
    message.set(chunk, HEADER_BYTES);
    return message.buffer;
  });
}
