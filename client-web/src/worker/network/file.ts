/**
 * The file of a frame network: safetensors with the tensors `conv{n}.weight` (f32, [outputs, inputs, 3, 3]) and
 * `conv{n}.bias` (f32, [outputs]), and the metadata `arch: chain`, `inputs: luma+twin`, `base: twin` and `scale`.
 * `conv{n}.range` (f32, [outputs], of all convolutions but the last) is for integer backends: checked, and not used here.
 *
 * What is taken is what `hybrid/network` takes (`file.rs`, and `size.rs` for the bounds), so that a network runs on both
 * backends or on none.
 *
 * Safetensors is a 64-bit little-endian length, a JSON header of that length, and the tensors' bytes. The file may come
 * from anyone: whatever it holds, {@link parseNetwork} gives a network within the bounds below or throws a
 * {@link NetworkFailure}, and its memory is bounded by the file's length.
 */
import { NetworkFailure } from "./backend.js";

/** A 3×3 convolution. */
export interface Convolution {
  inputs: number;
  outputs: number;
  /** [outputs, inputs, 3, 3], all within {@link MAX_WEIGHT}. */
  weight: Float32Array;
  /** [outputs], all within {@link MAX_WEIGHT}. */
  bias: Float32Array;
}

/** A chain of convolutions with ReLU between them. */
export interface Network {
  /** High over low size. */
  scale: number;
  /** The first has 1 + scale² inputs, the last scale² outputs. */
  layers: Convolution[];
}

/** Max convolutions of a network; two at least. */
export const MAX_CONVS = 16;
/** Max channels between convolutions. */
export const MAX_CHANNELS = 64;
/** Channels between convolutions are a multiple of this, and as many between all of them. */
export const CHANNEL_STEP = 8;
/** Max magnitude of a weight. */
const MAX_WEIGHT = 1e6;
const SCALES = ["2", "3", "4"];
const TAPS = 9;
const LENGTH_BYTES = 8;
/** A header of 16 convolutions takes about 4 KB. */
const MAX_HEADER_BYTES = 65_536;
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Reads a network from its file. Throws {@link NetworkFailure} (`invalid_weights`), and nothing else. */
export function parseNetwork(file: Uint8Array): Network {
  const { header, data } = split(file);
  const scale = scaleOf(header["__metadata__"]);
  const phases = scale * scale;
  const count = countOf(header);
  const channels = channelsOf(header);
  const layers = Array.from({ length: count }, (_, n) => {
    const last = n + 1 === count;
    return convolution(header, data, n, n === 0 ? 1 + phases : channels, last ? phases : channels, last);
  });
  refuseOthers(header, count);
  return { scale, layers };
}

/** Whether the weights of one network can stand in for those of another. */
export function sameShape(a: Network, b: Network): boolean {
  return (
    a.scale === b.scale &&
    a.layers.length === b.layers.length &&
    a.layers.every((layer, i) => layer.inputs === b.layers[i]?.inputs && layer.outputs === b.layers[i]?.outputs)
  );
}

type Fields = Record<string, unknown>;

function refuse(what: string): never {
  throw new NetworkFailure("invalid_weights", `the network's file is refused: ${what}`);
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function split(file: Uint8Array): { header: Fields; data: Uint8Array } {
  if (file.length < LENGTH_BYTES) refuse("it has no header");
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const length = view.getUint32(0, true);
  if (view.getUint32(4, true) !== 0 || length > MAX_HEADER_BYTES) refuse("its header is too long");
  if (length > file.length - LENGTH_BYTES) refuse("it ends within its header");
  let header: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true });
    header = JSON.parse(text.decode(file.subarray(LENGTH_BYTES, LENGTH_BYTES + length)));
  } catch {
    refuse("its header is not JSON");
  }
  if (!isFields(header)) refuse("its header is not an object");
  return { header, data: file.subarray(LENGTH_BYTES + length) };
}

function scaleOf(metadata: unknown): number {
  if (!isFields(metadata)) refuse("it has no metadata");
  for (const [key, expected] of [
    ["arch", "chain"],
    ["inputs", "luma+twin"],
    ["base", "twin"],
  ] as const) {
    if (metadata[key] !== expected) refuse(`its ${key} is not ${expected}`);
  }
  if (!SCALES.includes(metadata["scale"] as string)) refuse(`its scale is none of ${SCALES}`);
  return Number(metadata["scale"]);
}

function countOf(header: Fields): number {
  let count = 0;
  while (count <= MAX_CONVS && Object.hasOwn(header, `conv${count}.weight`)) count++;
  if (count < 2 || count > MAX_CONVS) refuse(`it does not have 2 to ${MAX_CONVS} convolutions`);
  return count;
}

/** The channels between convolutions: the outputs of the first. */
function channelsOf(header: Fields): number {
  const weight = header["conv0.weight"];
  const channels: unknown = isFields(weight) && Array.isArray(weight["shape"]) ? weight["shape"][0] : undefined;
  const runs = typeof channels === "number" && channels >= CHANNEL_STEP && channels <= MAX_CHANNELS;
  if (!runs || channels % CHANNEL_STEP !== 0)
    refuse(`it does not have a multiple of ${CHANNEL_STEP} up to ${MAX_CHANNELS} channels`);
  return channels;
}

function convolution(
  header: Fields,
  data: Uint8Array,
  n: number,
  inputs: number,
  outputs: number,
  last: boolean,
): Convolution {
  const weight = tensor(header, data, `conv${n}.weight`, [outputs, inputs, 3, 3], outputs * inputs * TAPS);
  const bias = tensor(header, data, `conv${n}.bias`, [outputs], outputs);
  if (!last && !tensor(header, data, `conv${n}.range`, [outputs], outputs).every((range) => range >= 0))
    refuse(`conv${n}.range has a range below 0`);
  return { inputs, outputs, weight, bias };
}

/** The values of a tensor that must have this shape: a view of the file where they are aligned, else a copy. */
function tensor(header: Fields, data: Uint8Array, name: string, shape: number[], count: number): Float32Array {
  const entry = Object.hasOwn(header, name) ? header[name] : undefined;
  if (!isFields(entry)) refuse(`it has no ${name}`);
  if (entry["dtype"] !== "F32") refuse(`${name} is not F32`);
  const given: unknown = entry["shape"];
  if (!Array.isArray(given) || given.length !== shape.length || !shape.every((side, i) => given[i] === side))
    refuse(`${name} has not the shape [${shape}]`);
  const offsets: unknown = entry["data_offsets"];
  if (!Array.isArray(offsets) || offsets.length !== 2) refuse(`${name} has no offsets`);
  const [start, end]: unknown[] = offsets;
  const inside = typeof start === "number" && Number.isSafeInteger(start) && start >= 0;
  if (!inside || end !== start + 4 * count || end > data.length) refuse(`${name} is not inside the file`);
  const values = floats(data.subarray(start, end));
  if (!values.every((value) => Math.abs(value) <= MAX_WEIGHT))
    refuse(`${name} has a value that is not finite, or beyond ${MAX_WEIGHT}`);
  return values;
}

function floats(bytes: Uint8Array): Float32Array {
  const count = bytes.length / 4;
  if (LITTLE_ENDIAN && bytes.byteOffset % 4 === 0) return new Float32Array(bytes.buffer, bytes.byteOffset, count);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: count }, (_, i) => view.getFloat32(4 * i, true));
}

/** Refuses tensors that a chain of that many convolutions does not have: they would mean something. */
function refuseOthers(header: Fields, convolutions: number): void {
  for (const name of Object.keys(header)) {
    const found = /^conv(0|[1-9]\d?)\.(weight|bias|range)$/.exec(name);
    const of = Number(found?.[1]) + (found?.[2] === "range" ? 1 : 0);
    if (name !== "__metadata__" && !(of < convolutions))
      refuse(`${name.slice(0, 40)} is none of ${convolutions} convolutions' tensors`);
  }
}
