/**
 * The file of a frame network: the integers that the decoder has, as `hybrid/network` packs them (`packed.rs`).
 *
 * Little-endian: version (1), scale, channels between convolutions, number of convolutions, a byte each; then by
 * convolution its shift (a byte), biases `[outputs]` of 32 bits and weights `[outputs, inputs, 3, 3]` of 16.
 *
 * Integers are read as the floats of the same network: inputs are -0.5…0.5, activations 0…{@link MAX_ACTIVATION},
 * outputs grey levels. What is taken is what `hybrid/network` takes (`size.rs` has the bounds), so that a network runs
 * on both backends or on none. The file may come from anyone: whatever it holds, {@link parseNetwork} gives a network
 * within the bounds below or throws a {@link NetworkFailure}, and its memory is bounded by the file's length.
 */
import { NetworkFailure } from "./backend.js";

/** A 3×3 convolution. */
export interface Convolution {
  inputs: number;
  outputs: number;
  /** [outputs, inputs, 3, 3]. */
  weight: Float32Array;
  /** [outputs]. */
  bias: Float32Array;
}

/** A chain of convolutions; between them activations are held to 0…{@link MAX_ACTIVATION}. */
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
/** Channels between convolutions are a multiple of this. */
export const CHANNEL_STEP = 8;
const VERSION = 1;
const MAX_SHIFT = 24;
const TAPS = 9;
/** The integers of the decoder that stand for 1: of an input, of an activation, of an output. */
const INPUT = 510;
const ACTIVATION = 8192;
const OUTPUT = 1;
/** What an activation may be: the largest integer of 16 bits. */
export const MAX_ACTIVATION = 32_767 / ACTIVATION;

/** Reads a network from its file. Throws {@link NetworkFailure} (`invalid_weights`), and nothing else. */
export function parseNetwork(file: Uint8Array): Network {
  const [version, scale = 0, channels = 0, convs = 0] = file;
  if (version !== VERSION) refuse(`it begins with ${version}, not ${VERSION}`);
  if (scale < 2 || scale > 4) refuse(`its scale is ${scale}, not 2 to 4`);
  if (convs < 2 || convs > MAX_CONVS) refuse(`it has ${convs} convolutions, not 2 to ${MAX_CONVS}`);
  if (channels === 0 || channels > MAX_CHANNELS || channels % CHANNEL_STEP !== 0)
    refuse(`it has ${channels} channels, not a multiple of ${CHANNEL_STEP} up to ${MAX_CHANNELS}`);
  const phases = scale ** 2;
  const shapes = Array.from({ length: convs }, (_, n) => {
    const inputs = n === 0 ? 1 + phases : channels;
    return { inputs, outputs: n + 1 === convs ? phases : channels };
  });
  const length = shapes.reduce((sum, { inputs, outputs }) => sum + 1 + outputs * (4 + 2 * TAPS * inputs), 4);
  if (file.length !== length) refuse(`it has ${file.length} bytes, and a network of its size ${length}`);
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  let at = 4;
  const layers = shapes.map(({ inputs, outputs }, n): Convolution => {
    const shift = view.getUint8(at);
    if (shift < 1 || shift > MAX_SHIFT) refuse(`it shifts by ${shift}, not 1 to ${MAX_SHIFT}`);
    const [biases, weights] = [at + 1, at + 1 + 4 * outputs];
    at = weights + 2 * TAPS * inputs * outputs;
    const from = n === 0 ? INPUT : ACTIVATION;
    const unit = 2 ** shift * (n + 1 === convs ? OUTPUT : ACTIVATION);
    // The decoder's biases hold the half that rounds its sums.
    const half = 2 ** (shift - 1);
    const bias = (_: unknown, i: number) => (view.getInt32(biases + 4 * i, true) - half) / unit;
    const weight = (_: unknown, i: number) => (view.getInt16(weights + 2 * i, true) * from) / unit;
    return {
      inputs,
      outputs,
      weight: Float32Array.from({ length: TAPS * inputs * outputs }, weight),
      bias: Float32Array.from({ length: outputs }, bias),
    };
  });
  return { scale, layers };
}

function refuse(what: string): never {
  throw new NetworkFailure("invalid_weights", `the network's file is refused: ${what}`);
}
