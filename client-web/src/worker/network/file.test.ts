import assert from "node:assert/strict";
import { test } from "node:test";
import { checkSizes, failureReason, NetworkFailure, type Plane } from "./backend.js";
import { CHANNEL_STEP, MAX_ACTIVATION, MAX_CHANNELS, MAX_CONVS, parseNetwork } from "./file.js";
import { drawFile, random, residualOf } from "./testing/oracle.js";
import { startWebGpu } from "./webgpu.js";

const file = drawFile(1, 2, 8, 3);

/** Asserts that the parser refuses a file for that reason. */
function refused(bytes: Uint8Array, why: RegExp): void {
  assert.throws(
    () => parseNetwork(bytes),
    (error) => error instanceof NetworkFailure && error.reason === "invalid_weights" && why.test(error.message),
  );
}

/** The file with other bytes from `at` on. */
function changed(at: number, ...bytes: number[]): Uint8Array {
  const other = file.slice();
  other.set(bytes, at);
  return other;
}

test("integers are read as the floats for which they stand", () => {
  const one = new Uint8Array(drawFile(1, 2, 8, 2).length);
  const view = new DataView(one.buffer);
  one.set([1, 2, 8, 2]);
  // The first convolution: a shift of 3, the second channel's bias, its weight of the third input, below to the right.
  const first = { at: 5, weights: 5 + 4 * 8 };
  one[4] = 3;
  for (let o = 0; o < 8; o++) view.setInt32(first.at + 4 * o, 4, true);
  view.setInt32(first.at + 4, 4 - 8 * 4096, true);
  view.setInt16(first.weights + 2 * ((1 * 5 + 2) * 9 + 8), -8192, true);
  // The last: a shift of 1.
  const last = first.weights + 2 * 8 * 5 * 9;
  one[last] = 1;
  for (let o = 0; o < 4; o++) view.setInt32(last + 1 + 4 * o, 1, true);
  view.setInt32(last + 1, 1 + 2 * 7, true);
  view.setInt16(last + 1 + 4 * 4, 2, true);
  const { scale, layers } = parseNetwork(one);
  assert.equal(scale, 2);
  assert.deepEqual(
    layers.map(({ inputs, outputs }) => [inputs, outputs]),
    [
      [5, 8],
      [8, 4],
    ],
  );
  assert.deepEqual([...(layers[0]?.bias ?? [])], [0, -0.5, 0, 0, 0, 0, 0, 0]);
  assert.equal(layers[0]?.weight[(1 * 5 + 2) * 9 + 8], -510 / 8);
  assert.deepEqual([...(layers[1]?.bias ?? [])], [7, 0, 0, 0]);
  assert.equal(layers[1]?.weight[0], 8192);
  assert.equal(layers.flatMap(({ weight }) => [...weight]).filter((v) => v !== 0).length, 2);
});

test("a network is the same wherever its bytes lie", () => {
  for (const offset of [1, 4]) {
    const moved = new Uint8Array(file.length + offset + 5);
    moved.set(file, offset);
    assert.deepEqual(parseNetwork(moved.subarray(offset, offset + file.length)), parseNetwork(file));
  }
});

test("the sizes are those that the decoder runs", () => {
  refused(changed(0, 2), /begins with 2/);
  for (const scale of [0, 1, 5]) refused(changed(1, scale), /its scale is/);
  for (const channels of [0, 4, 12, 72]) refused(changed(2, channels), /a multiple of 8 up to 64/);
  for (const convs of [0, 1, 17]) refused(changed(3, convs), /convolutions, not 2 to 16/);
  for (const shift of [0, 25]) refused(changed(4, shift), /shifts by/);
  assert.equal(parseNetwork(drawFile(1, 2, CHANNEL_STEP, MAX_CONVS)).layers.length, MAX_CONVS);
  assert.equal(parseNetwork(drawFile(1, 4, MAX_CHANNELS, 2)).layers[0]?.outputs, MAX_CHANNELS);
});

test("a file that ends early or late is refused", () => {
  for (let length = 0; length < file.length; length++) refused(file.subarray(0, length), /./);
  const longer = new Uint8Array(file.length + 1);
  longer.set(file);
  refused(longer, /bytes, and a network of its size/);
});

test("whatever bytes change, the parser gives a network of finite numbers or refuses", () => {
  const next = random(7);
  const outcomes = { parsed: 0, refused: 0 };
  for (let round = 0; round < 20_000; round++) {
    const bytes = file.slice();
    for (let i = 0; i < 1 + 3 * next(); i++) {
      // Half of the changes are to the head.
      const end = next() < 0.5 ? 5 : bytes.length;
      bytes[Math.floor(next() * end)] = 256 * next();
    }
    try {
      const { layers } = parseNetwork(bytes);
      assert.ok(layers.every(({ weight, bias }) => weight.every(Number.isFinite) && bias.every(Number.isFinite)));
      outcomes.parsed++;
    } catch (error) {
      assert.equal(failureReason(error), "invalid_weights", String(error));
      outcomes.refused++;
    }
  }
  assert.ok(outcomes.parsed > 100 && outcomes.refused > 1000, JSON.stringify(outcomes));
});

test("activations are held to what the decoder's integers hold", () => {
  const [inputs, outputs] = [5, 4];
  const first = { inputs, outputs: 1, weight: new Float32Array(9 * inputs), bias: Float32Array.of(100) };
  const weight = Float32Array.from({ length: 9 * outputs }, (_, i) => (i === 4 ? 1 : 0));
  const layers = [first, { inputs: 1, outputs, weight, bias: new Float32Array(outputs) }];
  const plane = (side: number): Plane => ({
    bytes: new Uint8Array(side * side),
    width: side,
    height: side,
    stride: side,
  });
  assert.equal(residualOf({ scale: 2, layers }, plane(2), plane(4))[0], MAX_ACTIVATION);
});

test("a plain convolution is zero beyond the picture", () => {
  const weight = new Float32Array(4 * 5 * 9);
  // Phase 0 is luma of the sample to the right, and a half of the first phase of the high picture above.
  weight[0 * 9 + 5] = 255;
  weight[1 * 9 + 1] = 127.5;
  const bias = Float32Array.of(3, 0, 0, 0);
  const one = { scale: 2, layers: [{ inputs: 5, outputs: 4, weight, bias }] };
  const low = { bytes: Uint8Array.of(0, 255, 51, 102), width: 2, height: 2, stride: 2 };
  const high = { bytes: new Uint8Array(16).fill(255), width: 4, height: 4, stride: 4 };
  const found = [...residualOf(one, low, high)].map((v) => Math.round(1000 * v) / 1000);
  assert.deepEqual(found, [130.5, 0, 3, 0, 0, 0, 0, 0, 41.25, 0, 66.75, 0, 0, 0, 0, 0]);
});

test("planes must be whole, and of one scale", () => {
  const plane = (width: number, height: number, stride = width, length = stride * height): Plane => ({
    bytes: new Uint8Array(length),
    width,
    height,
    stride,
  });
  checkSizes(2, plane(3, 2), plane(6, 4, 8, 3 * 8 + 6), plane(6, 4));
  for (const [low, high, out] of [
    [plane(3, 2), plane(6, 4, 8, 3 * 8 + 5), plane(6, 4)],
    [plane(3, 2), plane(6, 5), plane(6, 5)],
    [plane(3, 2), plane(6, 4), plane(5, 4)],
    [plane(0, 2), plane(0, 4), plane(0, 4)],
    [{ ...plane(3, 2), width: Number.NaN }, plane(6, 4), plane(6, 4)],
    [{ ...plane(3, 2), stride: 2 }, plane(6, 4), plane(6, 4)],
  ] as const)
    assert.throws(() => checkSizes(2, low, high, out), RangeError);
});

test("a runtime without WebGPU says so", async () => {
  await assert.rejects(startWebGpu(file), (error) => failureReason(error) === "no_webgpu");
});

test("reasons are read from failures of another script too", () => {
  class NetworkFailure extends Error {
    override readonly name = "NetworkFailure";
    readonly reason = "stalled";
  }
  assert.equal(failureReason(new NetworkFailure()), "stalled");
  assert.equal(failureReason(new RangeError("x")), null);
});
