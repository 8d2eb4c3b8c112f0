/** Networks' files and planes, drawn from a seed. */
import type { Plane } from "../backend.js";

export { residualOf, wrongSamples } from "../plain.js";

/** Numbers in 0…1 from a seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The size of a network's residual, grey levels, roughly. */
const RESIDUAL_GAIN = 40;
/**
 * Shifts with which the weights of a drawn network take most of 16 bits: of the first convolution, the last and others.
 */
const SHIFTS = { first: 12, last: 20, other: 14 };

/** The file of a network with a number of convolutions, and the same number of channels between all of them. */
export function drawFile(seed: number, scale: number, channels: number, convs: number): Uint8Array<ArrayBuffer> {
  const next = random(seed);
  const widths = [1 + scale ** 2, ...Array<number>(convs - 1).fill(channels), scale ** 2];
  const size = widths.slice(1).reduce((sum, outputs, n) => sum + 1 + outputs * (4 + 18 * (widths[n] as number)), 4);
  const file = new Uint8Array(size);
  const view = new DataView(file.buffer);
  file.set([1, scale, channels, convs]);
  let at = 4;
  for (const [n, outputs] of widths.slice(1).entries()) {
    const inputs = widths[n] as number;
    const [first, last] = [n === 0, n + 1 === convs];
    const shift = first ? SHIFTS.first : last ? SHIFTS.last : SHIFTS.other;
    const gain = Math.sqrt(6 / (9 * inputs)) * (last ? RESIDUAL_GAIN : 1);
    const unit = 2 ** shift * (last ? 1 : 8192);
    view.setUint8(at, shift);
    at += 1;
    for (let i = 0; i < outputs; i++, at += 4)
      view.setInt32(at, ((2 * next() - 1) * gain * unit) / 4 + 2 ** (shift - 1), true);
    for (let i = 0; i < 9 * inputs * outputs; i++, at += 2)
      view.setInt16(at, ((2 * next() - 1) * gain * unit) / (first ? 510 : 8192), true);
  }
  return file;
}

/** A plane of smooth shapes with some noise, with rows of `stride` bytes. */
export function drawPlane(seed: number, width: number, height: number, stride = width): Plane {
  const next = random(seed);
  const [a, b, c] = [next() / 3, next() / 3, next() * 6];
  const bytes = new Uint8Array(stride * height).fill(77);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      bytes[y * stride + x] = 110 + 100 * Math.sin(a * x + c) * Math.cos(b * y) + 40 * next();
  return { bytes, width, height, stride };
}
