import assert from "node:assert/strict";
import { test } from "node:test";
import { convolutionShader, foldShader, groupsOf, layoutOf, packWeights, weightBytes } from "./wgsl.js";

const layer = (inputs: number, outputs: number) => ({
  inputs,
  outputs,
  weight: Float32Array.from({ length: inputs * outputs * 9 }, (_, i) => i),
  bias: Float32Array.from({ length: outputs }, (_, i) => -1 - i),
});

test("no thread computes more than four groups of channels, and groups are shared out evenly", () => {
  const groups = (outputs: number) => groupsOf({ inputs: 5, outputs });
  assert.deepEqual(groups(4), { read: 2, written: 1, chunk: 1 });
  assert.deepEqual(groups(16), { read: 2, written: 4, chunk: 4 });
  assert.deepEqual(groups(20), { read: 2, written: 6, chunk: 3 }, "five groups take two threads of three");
  assert.deepEqual(groups(64), { read: 2, written: 16, chunk: 4 });
});

test("the border lets every thread read around four samples", () => {
  assert.deepEqual(layoutOf(21, 19, 24, 64), {
    width: 21,
    height: 19,
    row: 26,
    plane: 26 * 22,
    lowStride: 24,
    highStride: 64,
  });
});

test("weights are packed as matrices of inputs by outputs, taps by columns, in the last convolution by rows", () => {
  for (const last of [false, true]) {
    const { inputs, outputs, weight, bias } = layer(6, 7);
    const packed = packWeights({ inputs, outputs, weight, bias }, last);
    assert.equal(packed.byteLength, weightBytes(layer(6, 7)));
    assert.deepEqual([...packed.subarray(0, 8)], [...bias, 0]);
    // Output 6 (group 1, row 2) of input 5 (group 1, column 1) at the tap of the row below, to the left.
    const [x, y] = [0, 2];
    const turn = last ? 3 * y + x : 3 * x + y;
    const at = 8 + 16 * ((1 * 9 + turn) * 2 + 1) + 4 * 1 + 2;
    assert.equal(packed[at], weight[(6 * 6 + 5) * 9 + 3 * y + x]);
    assert.equal(packed.filter((v) => v > 0).length, weight.length - 1, "each weight once");
  }
});

test("the shaders of f16 are those of f32 but for what is stored", () => {
  const plain = (code: string): string => code.replace("enable f16;\n", "").replace("vec4<f16>", "vec4<f32>");
  assert.equal(plain(foldShader(3, "f16")), foldShader(3, "f32"));
  const layers = [layer(10, 7), layer(7, 18), layer(18, 5), layer(5, 9)];
  for (const [i, one] of layers.entries()) {
    const end = i + 1 === layers.length ? ({ scale: 3, answer: "picture" } as const) : null;
    const half = convolutionShader(one, end, "f16", true);
    assert.match(half, /alias Stored = vec4<f16>/);
    assert.equal(plain(half), convolutionShader(one, end, "f32", true));
  }
});
