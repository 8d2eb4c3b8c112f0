/** Writes a captured anchor of tiles as data channel messages (`hybrid::anchor::message`, codec `vp9-pictures`). Pure. */

const VERSION = 1;
const CODEC_VP9_PICTURES = 4;
const SOURCE_CAPTURED = 1;
const FLAG_TILED = 1;
const HEADER_BYTES = 24;
/** Payload bytes of a message: one packet. */
const CHUNK = 1100;
const MAX_CHUNKS = 256;
/** Head of a key picture: version 1, prediction `Key`, no gain, then number, number of its reference, run. */
const STREAM_HEADER_BYTES = 8;

export interface RegionAnchor {
  /** The request's id. */
  id: number;
  rtpTimestamp: number;
  /** HR size. */
  width: number;
  height: number;
  /** The tile map's bits. */
  bits: Uint8Array;
  /** One VP9 key frame: the mosaic of the tiles. */
  frame: Uint8Array;
  /** Milliseconds since the frame was captured. */
  ageMs: number;
}

/** Bytes that an answer has beside its VP9 frame, chunk headers left out. */
export const overhead = (bits: Uint8Array): number => bits.length + STREAM_HEADER_BYTES;

/** The messages of one anchor; none where it is beyond the format's bounds. */
export function regionMessages(anchor: RegionAnchor): ArrayBuffer[] {
  const { bits, frame, id } = anchor;
  const payload = new Uint8Array(overhead(bits) + frame.length);
  payload.set(bits);
  const head = new DataView(payload.buffer, bits.length);
  head.setUint8(0, 0x10);
  head.setUint16(2, id & 0xffff);
  head.setUint16(4, id & 0xffff);
  payload.set(frame, overhead(bits));
  const count = Math.ceil(payload.length / CHUNK);
  if (count > MAX_CHUNKS) return [];
  return Array.from({ length: count }, (_, index) => {
    const chunk = payload.subarray(index * CHUNK, (index + 1) * CHUNK);
    const message = new Uint8Array(HEADER_BYTES + chunk.length);
    const view = new DataView(message.buffer);
    view.setUint8(0, VERSION);
    view.setUint8(1, CODEC_VP9_PICTURES);
    view.setUint8(2, SOURCE_CAPTURED);
    view.setUint8(3, FLAG_TILED);
    view.setUint16(8, id & 0xffff);
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
