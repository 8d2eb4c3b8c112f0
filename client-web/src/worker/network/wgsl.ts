/**
 * The shaders of a frame network, and the memory that they share.
 *
 * One dispatch folds the planes of 8-bit samples to the network's inputs, then there is one dispatch a convolution; the
 * last one adds the residual to the high picture and packs the samples, so no plane of residuals is ever stored.
 *
 * Activations are groups of four channels: a group is a plane of `vec4` with a border of zeros, which the shaders never
 * write, so that no tap needs a check of bounds. A thread computes four neighbouring samples (along a column, so that
 * neighbouring threads read neighbouring memory; along a row in the last convolution, which packs rows) and up to four
 * groups of channels: a vector that is read serves up to 12 products, and a 4×4 matrix of weights serves four. Weights
 * are uniforms where they fit: some GPUs multiply by those without loading them first.
 *
 * Products and sums are f32 in both variants; with `f16` activations are stored in half the bytes.
 */
import { type Convolution, MAX_ACTIVATION } from "./file.js";

/** How activations are stored. */
export type Precision = "f32" | "f16";

/** What the last shader gives: the picture (u8), or the residual (f32), for checks. */
export type Answer = "picture" | "residual";

/** Samples that a thread computes, in one direction; also the channels of a group. */
const FOUR = 4;
/** Groups of outputs that a thread computes. */
const MAX_GROUPS = 4;
/** Samples a side that a workgroup of 64 threads computes. */
export const TILE = 16;
const TAPS = 9;
const MATRIX = 16;

const quarter = (n: number): number => Math.ceil(n / FOUR);

/** Groups of channels that a convolution reads, and writes: a multiple of `chunk`, which a thread computes. */
export interface Groups {
  read: number;
  written: number;
  chunk: number;
}

/** How the channels of a convolution are grouped. */
export function groupsOf({ inputs, outputs }: Pick<Convolution, "inputs" | "outputs">): Groups {
  const chunks = Math.ceil(quarter(outputs) / MAX_GROUPS);
  const chunk = Math.ceil(quarter(outputs) / chunks);
  return { read: quarter(inputs), written: chunk * chunks, chunk };
}

/** The memory of pictures of one size, as the shaders address it. */
export interface Layout {
  width: number;
  height: number;
  /** Vectors from row to row, and from group to group. */
  row: number;
  plane: number;
  /** Bytes from row to row of the planes of samples; multiples of four. */
  lowStride: number;
  highStride: number;
}

/** The layout of pictures with such a low picture. */
export function layoutOf(width: number, height: number, lowStride: number, highStride: number): Layout {
  const row = FOUR * quarter(width) + 2;
  return { width, height, row, plane: row * (FOUR * quarter(height) + 2), lowStride, highStride };
}

/** The layout as the shaders' uniform. */
export const layoutWords = (l: Layout): Uint32Array<ArrayBuffer> =>
  Uint32Array.of(l.width, l.height, l.row, l.plane, l.lowStride, l.highStride, 0, 0);

const LAYOUT = `struct Layout { width: u32, height: u32, row: u32, plane: u32, low_stride: u32, high_stride: u32 }
@group(0) @binding(0) var<uniform> size: Layout;`;

const header = (precision: Precision): string =>
  `${precision === "f16" ? "enable f16;\n" : ""}alias Stored = vec4<${precision}>;\n${LAYOUT}`;

/** Folds the planes to groups of inputs: luma, then the scale² phases of the high picture; bytes to -0.5…0.5. */
export function foldShader(scale: number, precision: Precision): string {
  const inputs = ["sample(low[luma >> 2u], luma)"];
  for (let dy = 0; dy < scale; dy++) for (let dx = 0; dx < scale; dx++) inputs.push(`phase(at, ${dx}u, ${dy}u)`);
  const stores = Array.from({ length: quarter(inputs.length) }, (_, group) => {
    const four = Array.from({ length: FOUR }, (_, i) => inputs[FOUR * group + i] ?? "0.0");
    return `  y[${group}u * size.plane + to] = Stored(vec4<f32>(${four.join(", ")}));`;
  });
  return `${header(precision)}
@group(0) @binding(1) var<storage, read> low: array<u32>;
@group(0) @binding(2) var<storage, read> high: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;
fn sample(word: u32, at: u32) -> f32 { return f32((word >> (8u * (at & 3u))) & 255u) / 255.0 - 0.5; }
fn phase(at: vec2<u32>, dx: u32, dy: u32) -> f32 {
  let byte = (${scale}u * at.y + dy) * size.high_stride + ${scale}u * at.x + dx;
  return sample(high[byte >> 2u], byte);
}
@compute @workgroup_size(${TILE}, ${TILE / FOUR})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  for (var i = 0u; i < ${FOUR}u; i++) {
    let at = vec2<u32>(id.x, ${FOUR}u * id.y + i);
    if (at.x >= size.width || at.y >= size.height) { return; }
    let luma = at.y * size.low_stride + at.x;
    let to = (at.y + 1u) * size.row + at.x + 1u;
${stores.map((line) => `  ${line}`).join("\n")}
  }
}`;
}

/** Numbers from 0. */
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
/** The sum of a group and a sample of the thread. */
const sum = (group: number, sample: number): string => `a${group}_${sample}`;

/**
 * What one group of inputs adds to the sums, in three passes: pass `k` reads the six vectors of a column (a row in the
 * last convolution) that the thread's samples see, and each tap is a matrix.
 */
function taps(group: string, channels: number, groups: Groups, across: string, along: string): string {
  const product = (vector: string): string =>
    channels === FOUR
      ? `m * ${vector}`
      : upTo(channels)
          .map((i) => `m[${i}] * ${vector}[${i}]`)
          .join(" + ");
  const lines = upTo(FOUR + 2).map((i) => `let v${i} = vec4<f32>(x[at + ${i}u * ${along}]);`);
  for (const tap of upTo(3)) {
    for (const g of upTo(groups.chunk)) {
      const sums = upTo(FOUR).map((i) => `${sum(g, i)} += ${product(`v${i + tap}`)};`);
      lines.push(`{ let m = weights.taps[t + ${tap * groups.written + g}u]; ${sums.join(" ")} }`);
    }
  }
  return `for (var k = 0u; k < 3u; k++) {
    let at = ${group} * size.plane + corner + k * ${across};
    let t = (${group} * 3u + k) * ${3 * groups.written}u + first;
    ${lines.join("\n    ")}
  }`;
}

/**
 * The sums of a convolution, from `corner`, its upper left tap. Weights are ordered as {@link packWeights} has them.
 */
function sums(layer: Convolution, groups: Groups, last: boolean): string {
  const [across, along] = last ? ["size.row", "1u"] : ["1u", "size.row"];
  const whole = Math.floor(layer.inputs / FOUR);
  const rest = layer.inputs % FOUR;
  const starts = upTo(groups.chunk).flatMap((g) =>
    upTo(FOUR).map((i) => `var ${sum(g, i)} = weights.bias[first + ${g}u];`),
  );
  return `${starts.join(" ")}
  for (var g = 0u; g < ${whole}u; g++) {
  ${taps("g", FOUR, groups, across, along)}
  }
  ${rest > 0 ? taps(`${whole}u`, rest, groups, across, along) : ""}`;
}

/** A convolution but the last, with what activations are held to. */
function middleShader(layer: Convolution, precision: Precision, weights: string): string {
  const groups = groupsOf(layer);
  const store = upTo(FOUR).map((i) => {
    const lines = upTo(groups.chunk).map(
      (g) =>
        `y[(first + ${g}u) * size.plane + to + ${i}u * size.row] = Stored(clamp(${sum(g, i)}, vec4<f32>(0.0), vec4<f32>(${MAX_ACTIVATION})));`,
    );
    return `if (py + ${i}u < size.height) { ${lines.join(" ")} }`;
  });
  return `${header(precision)}
${weights}
@group(0) @binding(2) var<storage, read> x: array<Stored>;
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;
@compute @workgroup_size(${TILE}, ${TILE / FOUR})
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_id) id: vec3<u32>) {
  let px = ${TILE}u * tile.x + id.x;
  let py = ${TILE}u * tile.y + ${FOUR}u * id.y;
  let first = ${groups.chunk}u * tile.z;
  if (px >= size.width || py >= size.height) { return; }
  let corner = py * size.row + px;
  ${sums(layer, groups, false)}
  let to = corner + size.row + 1u;
  ${store.join("\n  ")}
}`;
}

/** The last convolution: channel `scale`·dy + dx is the residual of a phase of the high picture. */
function lastShader(layer: Convolution, scale: number, precision: Precision, answer: Answer, weights: string): string {
  const groups = groupsOf(layer);
  const store = upTo(scale).map((dy) => {
    const words = upTo(scale).map((word) => {
      const four = upTo(FOUR).map((byte) => {
        const column = FOUR * word + byte;
        const channel = scale * dy + (column % scale);
        return `${sum(channel >> 2, Math.floor(column / scale))}[${channel & 3}]`;
      });
      return `answer(to + ${word}u, end, vec4<f32>(${four.join(", ")}));`;
    });
    return `{ let row = (${scale}u * py + ${dy}u) * words; let to = row + ${scale}u * (px >> 2u); let end = row + words;
    ${words.join("\n    ")} }`;
  });
  const put =
    answer === "residual"
      ? "y[at] = residual;"
      : `let samples = vec4<f32>((vec4<u32>(high[at]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
  let made = vec4<u32>(clamp(round(samples + residual), vec4<f32>(0.0), vec4<f32>(255.0)));
  y[at] = made.x | (made.y << 8u) | (made.z << 16u) | (made.w << 24u);`;
  return `${header(precision)}
${weights}
@group(0) @binding(2) var<storage, read> x: array<Stored>;
@group(0) @binding(3) var<storage, read_write> y: array<${answer === "residual" ? "vec4<f32>" : "u32"}>;
${answer === "residual" ? "" : "@group(0) @binding(4) var<storage, read> high: array<u32>;"}
fn answer(at: u32, end: u32, residual: vec4<f32>) {
  if (at >= end) { return; }
  ${put}
}
@compute @workgroup_size(${TILE / FOUR}, ${TILE})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let px = ${FOUR}u * id.x;
  let py = id.y;
  const first = 0u;
  if (px >= size.width || py >= size.height) { return; }
  let corner = py * size.row + px;
  ${sums(layer, groups, true)}
  let words = size.high_stride / 4u;
  ${store.join("\n  ")}
}`;
}

/** Bytes of a convolution's packed weights. */
export function weightBytes(layer: Pick<Convolution, "inputs" | "outputs">): number {
  const { read, written } = groupsOf(layer);
  return 4 * (FOUR * written + MATRIX * TAPS * read * written);
}

/** The shader of a convolution; `last`: the scale, where it is the last one; `uniform`: its weights are uniforms. */
export function convolutionShader(
  layer: Convolution,
  last: { scale: number; answer: Answer } | null,
  precision: Precision,
  uniform: boolean,
): string {
  const { read, written } = groupsOf(layer);
  const weights = `struct Weights { bias: array<vec4<f32>, ${written}>, taps: array<mat4x4<f32>, ${TAPS * read * written}> }
@group(0) @binding(1) var<${uniform ? "uniform" : "storage, read"}> weights: Weights;`;
  return last === null
    ? middleShader(layer, precision, weights)
    : lastShader(layer, last.scale, precision, last.answer, weights);
}

/**
 * Packs weights as the shaders read them: the biases, then a 4×4 matrix (columns: inputs) for each group of inputs, tap
 * and group of outputs. Taps go column by column, as the threads do; in the last convolution row by row.
 */
export function packWeights({ inputs, outputs, weight, bias }: Convolution, last: boolean): Float32Array<ArrayBuffer> {
  const { written } = groupsOf({ inputs, outputs });
  const packed = new Float32Array(weightBytes({ inputs, outputs }) / 4);
  packed.set(bias);
  const start = FOUR * written;
  for (let i = 0; i < inputs; i++) {
    for (let tap = 0; tap < TAPS; tap++) {
      const [y, x] = [Math.floor(tap / 3), tap % 3];
      const turn = last ? tap : 3 * x + y;
      const matrices = ((i >> 2) * TAPS + turn) * written;
      for (let o = 0; o < outputs; o++) {
        const at = start + MATRIX * (matrices + (o >> 2)) + FOUR * (i & 3) + (o & 3);
        packed[at] = weight[(o * inputs + i) * TAPS + tap] as number;
      }
    }
  }
  return packed;
}
