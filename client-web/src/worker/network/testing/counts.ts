/**
 * What the WebGPU backend does for a picture, counted from the shapes of its shaders, for
 * `lab/notes/frame-networks.md`. Counts say nothing of time.
 */
import type { Convolution } from "../file.js";
import { groupsOf, layoutOf, type Precision, weightBytes } from "../wgsl.js";

export interface Counts {
  dispatches: number;
  /** Multiply-accumulates of the network. */
  macs: number;
  /** Multiply-accumulates that the GPU does, with channels filled up to fours. */
  issued: number;
  /** Bytes from and to the worker. */
  up: number;
  down: number;
  /**
   * Bytes that the GPU reads and writes where each value is read but once by a dispatch: what caches can come down to.
   */
  least: number;
  /** Bytes of activations that threads ask for, mostly of caches. Weights are the same for all threads of a wave. */
  asked: number;
  /** Bytes of all buffers. */
  memory: number;
}

const RING = 3;
/** A thread computes four samples, and reads three times six vectors of each group for them. */
const VECTORS_PER_SAMPLE = 18 / 4;

/** The counts for a picture whose low one has that size. */
export function countsOf(
  scale: number,
  layers: Pick<Convolution, "inputs" | "outputs">[],
  width: number,
  height: number,
  precision: Precision,
): Counts {
  const samples = width * height;
  const vector = precision === "f16" ? 8 : 16;
  const [low, high] = [samples, samples * scale ** 2];
  const folded = groupsOf({ inputs: 1 + scale ** 2, outputs: 1 }).read;
  const counts: Counts = {
    dispatches: 1 + layers.length,
    macs: 0,
    issued: 0,
    up: low + high,
    down: high,
    // The fold; then the last convolution adds to the high picture, and the picture is copied.
    least: low + high + folded * vector * samples + 4 * high,
    asked: 0,
    memory: low + high + (1 + RING) * high,
  };
  let groups = folded;
  for (const [i, layer] of layers.entries()) {
    const { read, written, chunk } = groupsOf(layer);
    const last = i === layers.length - 1;
    const weights = weightBytes(layer);
    counts.macs += 9 * layer.inputs * layer.outputs * samples;
    counts.issued += 9 * layer.inputs * 4 * written * samples;
    counts.least += (read + (last ? 0 : written)) * vector * samples + weights;
    counts.asked += VECTORS_PER_SAMPLE * read * vector * (written / chunk) * samples;
    counts.memory += weights;
    if (!last) groups = Math.max(groups, written);
  }
  counts.memory += 2 * groups * layoutOf(width, height, width, width * scale).plane * vector;
  return counts;
}
