/** Networks and planes drawn from a seed, and the networks' files. */
import type { Plane } from "../backend.js";
import type { Network } from "../file.js";

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

/** Of a network's residual, grey levels, roughly. */
const RESIDUAL_GAIN = 40;

/** A network with these channels between its convolutions. */
export function drawNetwork(seed: number, scale: number, channels: number[]): Network {
  const next = random(seed);
  const widths = [1 + scale ** 2, ...channels, scale ** 2];
  const layers = widths.slice(1).map((outputs, n) => {
    const inputs = widths[n] as number;
    const gain = Math.sqrt(6 / (9 * inputs)) * (n === channels.length ? RESIDUAL_GAIN : 1);
    const draw = (count: number, range: number) => Float32Array.from({ length: count }, () => (2 * next() - 1) * range);
    return { inputs, outputs, weight: draw(outputs * inputs * 9, gain), bias: draw(outputs, gain / 4) };
  });
  return { scale, layers };
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

/** The file of a network. `edit` changes its header, and the bytes of its tensors, before they are joined. */
export function networkFile(
  { scale, layers }: Network,
  edit: (header: Record<string, unknown>, data: Uint8Array) => void = () => {},
): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = {
    __metadata__: { arch: "chain", inputs: "luma+twin", base: "twin", scale: String(scale) },
  };
  const parts: Float32Array[] = [];
  let at = 0;
  const add = (name: string, shape: number[], values: Float32Array): void => {
    header[name] = { dtype: "F32", shape, data_offsets: [at, at + values.byteLength] };
    at += values.byteLength;
    parts.push(values);
  };
  for (const [n, { inputs, outputs, weight, bias }] of layers.entries()) {
    add(`conv${n}.weight`, [outputs, inputs, 3, 3], weight);
    add(`conv${n}.bias`, [outputs], bias);
    if (n + 1 < layers.length) add(`conv${n}.range`, [outputs], new Float32Array(outputs).fill(1));
  }
  const data = new Uint8Array(at);
  let to = 0;
  for (const part of parts) {
    data.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), to);
    to += part.byteLength;
  }
  edit(header, data);
  return joined(JSON.stringify(header), data);
}

/** A safetensors file of a header and the bytes of tensors. */
export function joined(header: string, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(header);
  const padded = 8 * Math.ceil(text.length / 8);
  const file = new Uint8Array(8 + padded + data.length).fill(0x20);
  new DataView(file.buffer).setBigUint64(0, BigInt(padded), true);
  file.set(text, 8);
  file.set(data, 8 + padded);
  return file;
}
