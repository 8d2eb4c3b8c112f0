/**
 * Parses the fields of a VP9 uncompressed header that the worker needs before decoding: key frame, size and colour.
 * Rejects (null) all but VP9 profile 0. Source: VP9 bitstream specification 0.7, §6.2.
 */

/** The fields of a header. */
export interface Vp9Header {
  /** A key frame. */
  key: boolean;
  /** Luma size, pixels; key frames only. */
  size?: { width: number; height: number };
  /** Colour as signalled; key frames only. Unsignalled colour counts as BT.709, as in browsers. */
  colour?: { matrix: "bt709" | "smpte170m"; fullRange: boolean };
}

const FRAME_MARKER = 0b10;
const COLOUR_BT601 = 1;
const COLOUR_SMPTE170 = 3;
const COLOUR_SRGB = 7;

/** Parses the header at the start of a frame or superframe. */
export function parseVp9Header(data: Uint8Array): Vp9Header | null {
  const first = data[0];
  if (first === undefined || first >> 6 !== FRAME_MARKER) return null;
  if ((first & 0b0011_0000) !== 0) return null; // profile 0 only
  const showExisting = (first & 0b0000_1000) !== 0;
  const key = !showExisting && (first & 0b0000_0100) === 0;
  if (!key) return { key: false };
  if (data.length < 10 || data[1] !== 0x49 || data[2] !== 0x83 || data[3] !== 0x42) return null;
  const bit = (position: number): number => ((data[position >> 3] ?? 0) >> (7 - (position & 7))) & 1;
  const bits = (position: number, count: number): number => {
    let value = 0;
    for (let i = 0; i < count; i++) value = value * 2 + bit(position + i);
    return value;
  };
  const colourSpace = bits(32, 3);
  if (colourSpace === COLOUR_SRGB) return null; // not allowed in profile 0
  return {
    key: true,
    size: { width: bits(36, 16) + 1, height: bits(52, 16) + 1 },
    colour: {
      matrix: colourSpace === COLOUR_BT601 || colourSpace === COLOUR_SMPTE170 ? "smpte170m" : "bt709",
      fullRange: bit(35) === 1,
    },
  };
}
