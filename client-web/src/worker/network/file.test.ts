import assert from "node:assert/strict";
import { test } from "node:test";
import { checkSizes, failureReason, NetworkFailure, type Plane } from "./backend.js";
import { CHANNEL_STEP, MAX_CHANNELS, MAX_CONVS, parseNetwork, sameShape } from "./file.js";
import { drawNetwork, joined, networkFile, random, residualOf } from "./testing/oracle.js";
import { startWebGpu } from "./webgpu.js";

const network = drawNetwork(1, 2, [8, 8]);
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

test("tensors beside those of the convolutions are refused", () => {
  for (const name of ["conv2.range", "conv3.range", "gate.weight", "conv4.weight", "conv01.weight"])
    refused(
      changed((header) => {
        header[name] = { dtype: "F32", shape: [1], data_offsets: [0, 4] };
      }),
      new RegExp(`${name} is none of 3 convolutions'`),
    );
});

test("ranges, which integer backends need, must be there and not below 0", () => {
  refused(
    changed((header) => {
      delete header["conv1.range"];
    }),
    /no conv1\.range/,
  );
  refused(
    changed((header, data) =>
      new DataView(data.buffer).setFloat32(header["conv0.range"]?.data_offsets[0] ?? 0, -1, true),
    ),
    /conv0\.range has a range below 0/,
  );
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
  refused(edit("conv1.weight", "shape", [8, 7, 3, 3]), /shape/);
  refused(edit("conv1.weight", "shape", [16, 8, 3, 3]), /shape/);
  refused(edit("conv1.weight", "shape", [8, 8, 3, 3, 1]), /shape/);
  refused(edit("conv1.bias", "shape", 8), /shape/);
  for (const channels of [0, 4, 12, 72, 8.5, -8, 1e300, "8", null])
    refused(edit("conv0.weight", "shape", [channels, 5, 3, 3]), /a multiple of 8 up to 64 channels/);
  for (const offsets of [[0, 4], [-32, 0], [1e9, 1e9 + 32], [0.5, 32.5], ["0", 32], [0, 32, 64], null])
    refused(edit("conv1.bias", "data_offsets", offsets), /offsets|inside the file/);
  refused(
    changed((header) => {
      delete header["conv1.bias"];
    }),
    /no conv1\.bias/,
  );
});

test("the convolutions are those that integer backends run: 2 to 16, of as many channels", () => {
  refused(
    networkFile({ ...network, layers: network.layers.slice(0, 2) }),
    /conv1\.weight has not the shape \[4,8,3,3\]/,
  );
  refused(networkFile(drawNetwork(1, 2, [8, 16])), /conv1\.weight has not the shape \[8,8,3,3\]/);
  for (const channels of [[], Array<number>(MAX_CONVS).fill(8)])
    refused(networkFile(drawNetwork(1, 2, channels)), /2 to 16 convolutions/);
  refused(networkFile({ ...network, layers: [] }), /2 to 16 convolutions/);
  const most = Array<number>(MAX_CONVS - 1).fill(CHANNEL_STEP);
  assert.equal(parseNetwork(networkFile(drawNetwork(1, 2, most))).layers.length, MAX_CONVS);
  const wide = networkFile(drawNetwork(1, 4, [MAX_CHANNELS]));
  assert.equal(parseNetwork(wide).layers[0]?.outputs, MAX_CHANNELS);
});

test("values that are no finite numbers, or far too large, are refused", () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2e6])
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
  assert.ok(sameShape(network, drawNetwork(2, 2, [8, 8])));
  for (const other of [drawNetwork(1, 2, [16, 16]), drawNetwork(1, 2, [8]), drawNetwork(1, 3, [8, 8])])
    assert.ok(!sameShape(network, other));
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
