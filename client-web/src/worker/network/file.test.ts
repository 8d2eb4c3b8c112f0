import assert from "node:assert/strict";
import { test } from "node:test";
import { checkSizes, failureReason, NetworkFailure, type Plane } from "./engine.js";
import { MAX_CONVOLUTIONS, parseNetwork, sameShape } from "./file.js";
import { drawNetwork, joined, networkFile, random, residualOf } from "./testing/oracle.js";
import { startWebGpu } from "./webgpu.js";

const network = drawNetwork(1, 2, [8, 6]);
const file = networkFile(network);

type Header = Record<string, { dtype: string; shape: number[]; data_offsets: number[] }> & {
  __metadata__: Record<string, unknown>;
};

/** Asserts that the parser refuses a file for that reason. */
function refused(bytes: Uint8Array, why: RegExp): void {
  assert.throws(
    () => parseNetwork(bytes),
    (error) => error instanceof NetworkFailure && error.reason === "invalid_weights" && why.test(error.message),
  );
}

/** The file with a changed header. */
const changed = (edit: (header: Header, data: Uint8Array) => void): Uint8Array =>
  networkFile(network, (header, data) => edit(header as Header, data));

test("a network is read as it was written, wherever its bytes lie", () => {
  assert.deepEqual(parseNetwork(file), network);
  for (const offset of [1, 4]) {
    const moved = new Uint8Array(file.length + offset + 5);
    moved.set(file, offset);
    assert.deepEqual(parseNetwork(moved.subarray(offset, offset + file.length)), network);
  }
});

test("aligned weights are views of the file, so nothing is taken beyond it", () => {
  for (const { weight, bias } of parseNetwork(file).layers) {
    assert.equal(weight.buffer, file.buffer);
    assert.equal(bias.buffer, file.buffer);
  }
});

test("ranges for integer engines are passed over, other tensors are not", () => {
  const with_ = (name: string) =>
    changed((header) => {
      header[name] = { dtype: "F32", shape: [1], data_offsets: [0, 4] };
    });
  assert.deepEqual(parseNetwork(with_("conv1.range")), network);
  refused(with_("conv3.range"), /none of 3 convolutions'/);
  refused(with_("gate.weight"), /gate\.weight/);
  refused(with_("conv4.weight"), /conv4\.weight/);
});

test("metadata of another kind of network is refused", () => {
  for (const [key, value] of [
    ["arch", "blocks"],
    ["inputs", "luma"],
    ["base", "lanczos3"],
    ["scale", "5"],
    ["scale", 2],
  ] as const)
    refused(
      changed((header) => {
        header.__metadata__[key] = value;
      }),
      new RegExp(`its ${key}`),
    );
  refused(
    changed((header) => {
      delete (header as Partial<Header>).__metadata__;
    }),
    /no metadata/,
  );
});

test("tensors of another type, shape or place are refused", () => {
  const edit = (name: string, key: string, value: unknown) =>
    changed((header) => {
      (header[name] as unknown as Record<string, unknown>)[key] = value;
    });
  refused(edit("conv1.weight", "dtype", "F16"), /not F32/);
  refused(edit("conv1.weight", "shape", [6, 7, 3, 3]), /shape/);
  refused(edit("conv1.weight", "shape", [6, 8, 3, 3, 1]), /shape/);
  refused(edit("conv1.bias", "shape", 6), /shape/);
  for (const outputs of [0, 65, 1.5, -1, 1e300, "6", null])
    refused(edit("conv1.weight", "shape", [outputs, 8, 3, 3]), /1 to 64 outputs/);
  for (const offsets of [[0, 4], [-24, 0], [1e9, 1e9 + 24], [0.5, 24.5], ["0", 24], [0, 24, 48], null])
    refused(edit("conv1.bias", "data_offsets", offsets), /offsets|inside the file/);
  refused(
    changed((header) => {
      delete header["conv1.bias"];
    }),
    /no conv1\.bias/,
  );
});

test("a chain that does not end in the phases of the scale is refused, and so are none and too many", () => {
  refused(networkFile({ ...network, layers: network.layers.slice(0, 2) }), /6 outputs/);
  refused(networkFile({ ...network, layers: [] }), /no convolution/);
  const most = Array<number>(MAX_CONVOLUTIONS - 1).fill(4);
  assert.equal(parseNetwork(networkFile(drawNetwork(1, 2, most))).layers.length, MAX_CONVOLUTIONS);
  refused(networkFile(drawNetwork(1, 2, [...most, 4])), /conv40\.weight/);
});

test("values that are no finite numbers are refused", () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    for (const at of [0, 100])
      refused(
        changed((_, data) => new DataView(data.buffer).setFloat32(4 * at, value, true)),
        /conv0\.weight has a value/,
      );
});

test("a file that ends early is refused at every length", () => {
  for (let length = 0; length < file.length; length++) refused(file.subarray(0, length), /./);
});

test("headers that are long, broken, nested or no objects are refused", () => {
  refused(joined(" ".repeat(70_000), new Uint8Array(8)), /too long/);
  const endless = file.slice();
  endless.fill(0xff, 4, 8);
  refused(endless, /too long/);
  refused(joined("{", new Uint8Array(0)), /not JSON/);
  refused(joined("[".repeat(60_000), new Uint8Array(0)), /not JSON/);
  for (const header of ["null", "[]", "1", '"a"']) refused(joined(header, new Uint8Array(0)), /not an object/);
  refused(joined('{"__proto__": {"__metadata__": {}}}', new Uint8Array(0)), /no metadata/);
  const words = file.slice();
  words[20] = 0xff;
  refused(words, /not JSON/);
});

test("whatever bytes change, the parser gives a network or refuses", () => {
  const next = random(7);
  const header = new DataView(file.buffer).getUint32(0, true) + 8;
  const outcomes = { parsed: 0, refused: 0 };
  for (let round = 0; round < 20_000; round++) {
    const bytes = file.slice();
    for (let i = 0; i < 1 + 3 * next(); i++) {
      // Half of the changes are to the header, of which nearly every byte means something.
      const end = next() < 0.5 ? header : bytes.length;
      bytes[Math.floor(next() * end)] = next() < 0.5 ? 0x20 + 96 * next() : 256 * next();
    }
    try {
      parseNetwork(bytes);
      outcomes.parsed++;
    } catch (error) {
      assert.equal(failureReason(error), "invalid_weights", String(error));
      outcomes.refused++;
    }
  }
  assert.ok(outcomes.parsed > 100 && outcomes.refused > 1000, JSON.stringify(outcomes));
});

test("weights stand in for those of the same shape only", () => {
  assert.ok(sameShape(network, drawNetwork(2, 2, [8, 6])));
  for (const other of [drawNetwork(1, 2, [8, 7]), drawNetwork(1, 2, [8]), drawNetwork(1, 3, [8, 6])])
    assert.ok(!sameShape(network, other));
});

test("the oracle's convolution is zero beyond the picture", () => {
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
