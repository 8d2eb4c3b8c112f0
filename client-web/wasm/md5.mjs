// MD5 (RFC 1321) of bytes, which neither browsers' own digests nor all builds of Node have.

const SHIFTS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
];
const SINES = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32));

/** The MD5 of all parts, one after the other, in hex. */
export function md5(parts) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = new Uint8Array((((length + 8) >> 6) + 1) << 6);
  parts.reduce((at, part) => {
    bytes.set(part, at);
    return at + part.length;
  }, 0);
  bytes[length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 8, length << 3, true);
  view.setUint32(bytes.length - 4, Math.floor(length / 2 ** 29), true);
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  const words = new Int32Array(16);
  for (let at = 0; at < bytes.length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + 4 * i, true);
    let [a, b, c, d] = state;
    for (let i = 0; i < 64; i++) {
      const round = i >> 4;
      let f;
      let g;
      if (round === 0) [f, g] = [(b & c) | (~b & d), i];
      else if (round === 1) [f, g] = [(d & b) | (~d & c), (5 * i + 1) & 15];
      else if (round === 2) [f, g] = [b ^ c ^ d, (3 * i + 5) & 15];
      else [f, g] = [c ^ (b | ~d), (7 * i) & 15];
      const sum = (a + f + SINES[i] + words[g]) | 0;
      const shift = SHIFTS[round][i & 3];
      [a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0];
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
  }
  return [...new Uint8Array(state.buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
