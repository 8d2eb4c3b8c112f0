// Frame networks on WebGPU: what the shaders give is what plain loops in f64 give, and each failure says its reason at once.
//
// Chromium's software adapter computes, so nothing here is a figure of speed. The built-in networks are compared with the
// fixtures of models/frames as well.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { serveFiles } from "../support/files.mjs";
import { skipped } from "../support/skips.mjs";
import { bundle } from "../wasm/bundle.mjs";

const DIST = path.join(import.meta.dirname, "../../../client-web/dist/network-webgpu.js");
const NETWORKS = path.join(import.meta.dirname, "../../../hybrid/network/networks");
const MODELS = path.join(import.meta.dirname, "../../../models/frames");
/** Enough for Chromium to give its software adapter. */
const SOFTWARE = ["--enable-unsafe-webgpu"];
/** Max error of the residual, grey levels. */
const TOLERANCE = 0.01;
/** Max rms of what rounding weights to integers makes, grey levels; the fixture's picture is harsher than any camera's. */
const MAX_ROUNDING = 0.1;
/** Failures must be told within a second, and some for a busy machine. */
const SOON_MS = 2000;

/** The backend as the product has it, a script of its own, and the oracle. */
const bundles = () => ({
  "/network-webgpu.mjs": bundle("network/webgpu.ts"),
  "/built-in.mjs": readFileSync(DIST),
  "/oracle.mjs": bundle("network/testing/oracle.ts", "network/file.ts"),
});

/** The built-in networks; the tests' own are drawn. */
const trained = readdirSync(NETWORKS).map((file) => path.basename(file, ".bin"));

const files = () => ({
  "/index.html": Buffer.from("<!doctype html><title>frame networks</title>"),
  ...bundles(),
  ...Object.fromEntries(trained.map((name) => [`/${name}`, path.join(NETWORKS, `${name}.bin`)])),
  ...Object.fromEntries(trained.map((name) => [`/${name}.fixture`, path.join(MODELS, `${name}.fixture.safetensors`)])),
});

/** In the page: runs functions in a worker like those of tracks, which start from a copy of their script. */
const workerLab = () => {
  const script = (base) => `
    import * as oracle from "${base}oracle.mjs";
    // A machine that does other work, and no GPU.
    const patient = { software: true, limits: { adapterMs: 20000, compileMs: 60000, pictureMs: 60000 } };
    const { startWebGpu } = await import("${base}network-webgpu.mjs");
    const reasonOf = async (promise) => {
      const from = performance.now();
      const reason = await Promise.resolve(promise).then(() => "none", (e) => (e.name === "NetworkFailure" ? e.reason : String(e)));
      return { reason, ms: performance.now() - from };
    };
    const blank = (plane, bytes = 1) => ({ ...plane, bytes: new Uint8Array(plane.stride * plane.height * bytes) });
    const fileOf = async (name) => new Uint8Array(await (await fetch("${base}" + name)).arrayBuffer());
    /** The tensors of a safetensors file. */
    const tensorsOf = async (name) => {
      const { buffer: bytes } = await fileOf(name);
      const length = Number(new DataView(bytes).getBigUint64(0, true));
      const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length)));
      const Types = { U8: Uint8Array, F32: Float32Array };
      const tensor = ({ dtype, shape, data_offsets: [a, b] }) =>
        ({ shape, values: new Types[dtype](bytes.slice(8 + length + a, 8 + length + b)) });
      return Object.fromEntries(Object.entries(header).filter(([key]) => key !== "__metadata__").map(([key, t]) => [key, tensor(t)]));
    };
    /** The residual and the picture as the backend gives them. */
    const answers = async (file, low, high) => {
      const lab = await startWebGpu(file, { ...patient, answer: "residual" });
      const wide = blank(high, 4);
      await lab.run(low, high, wide);
      lab.dispose();
      const network = await startWebGpu(file, patient);
      const out = blank(high);
      await network.run(low, high, out);
      network.dispose();
      return { residual: new Float32Array(wide.bytes.buffer), out };
    };
    const largest = (residual, stride, expected, width) =>
      expected.reduce((max, v, i) => Math.max(max, Math.abs(residual[Math.floor(i / width) * stride + (i % width)] - v)), 0);
    const { startBuiltIn } = await import("${base}built-in.mjs");
    const tools = { oracle, patient, startWebGpu, startBuiltIn, reasonOf, blank, fileOf, tensorsOf, answers, largest };
    onmessage = async ({ data: { code, given } }) => {
      try {
        postMessage({ value: await (0, eval)(code)(tools, given) });
      } catch (error) {
        postMessage({ error: String(error?.stack ?? error) });
      }
    };
    postMessage("ready");`;
  window.inWorker = (code, given) =>
    new Promise((resolve, reject) => {
      const url = URL.createObjectURL(new Blob([script(`${location.origin}/`)], { type: "text/javascript" }));
      const worker = new Worker(url, { type: "module" });
      worker.onerror = (event) => reject(new Error(event.message ?? "the worker did not start"));
      worker.onmessage = ({ data }) => {
        if (data === "ready") return worker.postMessage({ code, given });
        worker.terminate();
        return data.error ? reject(new Error(data.error)) : resolve(data.value);
      };
    });
};

/** Opens a browser that runs functions of (tools, given) in workers. */
async function openLab(args) {
  const tab = await openPage({ args });
  const server = await serveFiles(files());
  const close = async () => {
    await tab.close();
    server.close();
  };
  try {
    await tab.page.goto(`${server.url}index.html`);
    await tab.page.evaluate(workerLab);
  } catch (error) {
    await close();
    throw error;
  }
  return { run: (work, given) => tab.page.evaluate(([code, given]) => window.inWorker(code, given), [`(${work})`, given]), close };
}

const told = ({ reason, ms }, expected) => {
  assert.equal(reason, expected);
  assert.ok(ms < SOON_MS, `${expected} was told after ${Math.round(ms)} ms`);
};

const lab = await openLab(SOFTWARE);
after(() => lab.close());
const adapter = await lab.run(async () => (await navigator.gpu?.requestAdapter()) != null);
const missing = !adapter && "this Chromium has no software adapter for WebGPU";

describe("with an adapter", { only: true, skip: skipped("frame networks on WebGPU", missing) }, () => {

  for (const [what, given] of [
    ["x2", { scale: 2, channels: 16, convs: 5, width: 24, height: 20 }],
    ["x3, odd sizes, rows with gaps", { scale: 3, channels: 24, convs: 4, width: 21, height: 19, gap: 3 }],
    ["x4", { scale: 4, channels: 16, convs: 4, width: 24, height: 20 }],
    ["two convolutions, a picture smaller than a workgroup", { scale: 2, channels: 8, convs: 2, width: 3, height: 2 }],
    ["more weights than uniforms may be", { scale: 2, channels: 64, convs: 3, width: 33, height: 10, gap: 4 }],
  ]) {
    test(`${what}: the residual and the picture are those of plain loops`, { only: what === "x2" }, async () => {
      const found = await lab.run(async ({ oracle, answers, largest }, { scale, channels, convs, width, height, gap = 0 }) => {
        const file = oracle.drawFile(1 + scale, scale, channels, convs);
        const low = oracle.drawPlane(5, width, height, width + gap);
        const high = oracle.drawPlane(6, scale * width, scale * height, scale * width + gap);
        const expected = oracle.residualOf(oracle.parseNetwork(file), low, high);
        const { residual, out } = await answers(file, low, high);
        return {
          error: largest(residual, high.stride, expected, high.width),
          rms: Math.sqrt(expected.reduce((sum, v) => sum + v * v, 0) / expected.length),
          wrong: oracle.wrongSamples(out, high, expected, 0.01),
          gap: out.bytes.filter((v, i) => i % out.stride >= out.width && v !== 0).length,
        };
      }, given);
      console.log(`webgpu: ${what}: error ${found.error.toExponential(1)} of a residual of rms ${found.rms.toFixed(1)} grey levels`);
      assert.ok(found.rms > 2, `the network does little: rms ${found.rms}`);
      assert.ok(found.error <= TOLERANCE, `error ${found.error}`);
      assert.equal(found.wrong, 0);
      assert.equal(found.gap, 0, "bytes between rows were written");
    });
  }

  for (const name of trained) {
    test(`${name}: the residual and the picture are those of plain loops`, async () => {
      const found = await lab.run(async ({ oracle, fileOf, answers, largest }, name) => {
        const file = await fileOf(name);
        const network = oracle.parseNetwork(file);
        const low = oracle.drawPlane(5, 24, 20);
        const high = oracle.drawPlane(6, 24 * network.scale, 20 * network.scale);
        const expected = oracle.residualOf(network, low, high);
        const { residual, out } = await answers(file, low, high);
        return { error: largest(residual, high.stride, expected, high.width), wrong: oracle.wrongSamples(out, high, expected, 0.01) };
      }, name);
      console.log(`webgpu: ${name}: error ${found.error.toExponential(1)} grey levels`);
      assert.ok(found.error <= TOLERANCE, `error ${found.error}`);
      assert.equal(found.wrong, 0);
    });
  }

  for (const name of trained) {
    test(`${name}: the residual is that of its fixture, but for the rounding of weights`, { only: true }, async () => {
      const rms = await lab.run(async ({ fileOf, tensorsOf, answers }, name) => {
        const { lr, twin, residual: expected } = await tensorsOf(`${name}.fixture`);
        const plane = ({ shape: [height, width], values: bytes }) => ({ bytes, width, height, stride: width });
        const { residual } = await answers(await fileOf(name), plane(lr), plane(twin));
        return Math.sqrt(expected.values.reduce((sum, v, i) => sum + (residual[i] - v) ** 2, 0) / expected.values.length);
      }, name);
      console.log(`webgpu: ${name}: ${rms.toFixed(3)} grey levels rms from PyTorch's residual`);
      assert.ok(rms <= MAX_ROUNDING, `rms ${rms}`);
    });
  }

  test("pictures under way keep their planes: at once, in place, as sizes change, and a fourth is not taken", async () => {
    const found = await lab.run(async ({ oracle, patient, startWebGpu, blank }) => {
      const file = oracle.drawFile(3, 2, 8, 2);
      const drawn = oracle.parseNetwork(file);
      const network = await startWebGpu(file, patient);
      const pictures = [[16, 12], [16, 12], [16, 12], [16, 12], [9, 7], [16, 12]].map(([width, height], seed) => {
        const low = oracle.drawPlane(10 + seed, width, height);
        const high = oracle.drawPlane(20 + seed, 2 * width, 2 * height);
        return { low, high, before: { ...high, bytes: high.bytes.slice() }, residual: oracle.residualOf(drawn, low, high) };
      });
      // The third is written over its own high picture.
      const outs = pictures.map(({ high }, i) => (i === 2 ? high : blank(high)));
      const taken = await Promise.all(
        pictures.map(({ low, high }, i) => {
          const run = network.run(low, high, outs[i]);
          low.bytes.fill(0);
          if (i !== 2) high.bytes.fill(0);
          return run;
        }),
      );
      network.dispose();
      return { taken, wrong: pictures.map(({ before, residual }, i) => oracle.wrongSamples(outs[i], before, residual, 0.01)) };
    });
    assert.deepEqual(found.taken, [true, true, true, false, true, true]);
    assert.deepEqual([...found.wrong.slice(0, 3), ...found.wrong.slice(4)], [0, 0, 0, 0, 0]);
  });

  test("planes that do not match are refused, and the backend goes on", async () => {
    const found = await lab.run(async ({ oracle, patient, startWebGpu, reasonOf, blank }) => {
      const network = await startWebGpu(oracle.drawFile(3, 2, 8, 2), patient);
      const low = oracle.drawPlane(5, 8, 8);
      const high = oracle.drawPlane(6, 16, 16);
      const short = { ...high, bytes: high.bytes.subarray(1) };
      const refused = [
        await reasonOf(network.run(low, oracle.drawPlane(6, 17, 16), blank(high))),
        await reasonOf(network.run(low, short, blank(high))),
        await reasonOf(network.run(low, high, short)),
      ];
      return [...refused.map(({ reason }) => reason.split(":")[0]), await network.run(low, high, blank(high))];
    });
    assert.deepEqual(found, ["RangeError", "RangeError", "RangeError", true]);
  });

  test("a lost device ends pictures under way and all further ones", async () => {
    const found = await lab.run(async ({ oracle, patient, startWebGpu, reasonOf, blank }) => {
      const request = GPUAdapter.prototype.requestDevice;
      let device;
      GPUAdapter.prototype.requestDevice = async function (...args) {
        device = await request.apply(this, args);
        return device;
      };
      const network = await startWebGpu(oracle.drawFile(3, 2, 16, 3), patient);
      const low = oracle.drawPlane(5, 64, 64);
      const high = oracle.drawPlane(6, 128, 128);
      const under = reasonOf(network.run(low, high, blank(high)));
      device.destroy();
      return [await under, await reasonOf(network.run(low, high, blank(high)))];
    });
    for (const one of found) told(one, "device_lost");
  });

  test("a read, a command or a compiler that fails for no known reason may pass", async () => {
    const found = await lab.run(async ({ oracle, patient, startWebGpu, reasonOf, blank }) => {
      const file = oracle.drawFile(3, 2, 8, 2);
      const low = oracle.drawPlane(5, 8, 8);
      const high = oracle.drawPlane(6, 16, 16);
      const planted = () => Promise.reject(new DOMException("planted", "OperationError"));
      const picture = async (of, method, fails) => {
        const network = await startWebGpu(file, patient);
        const plain = of[method];
        of[method] = fails;
        const one = await reasonOf(network.run(low, high, blank(high)));
        of[method] = plain;
        return one;
      };
      const read = await picture(GPUBuffer.prototype, "mapAsync", planted);
      const command = await picture(GPUQueue.prototype, "submit", () => {
        throw new TypeError("planted");
      });
      GPUDevice.prototype.createComputePipelineAsync = () => Promise.reject(new GPUPipelineError("planted", { reason: "internal" }));
      return [read, command, await reasonOf(startWebGpu(file, patient))];
    });
    for (const one of found) told(one, "device_lost");
  });

  test("a picture that memory is too small for ends the backend", async () => {
    const found = await lab.run(async ({ oracle, patient, startWebGpu, reasonOf, blank }) => {
      const wide = oracle.drawFile(3, 2, 64, 3);
      const low = oracle.drawPlane(5, 8, 8);
      const high = oracle.drawPlane(6, 16, 16);
      const huge = (scale) => blank({ width: scale * 4000, height: scale * 3000, stride: scale * 4000 });
      const absurd = await startWebGpu(wide, patient);
      const limit = await reasonOf(absurd.run(huge(1), huge(2), huge(2)));
      const again = await reasonOf(absurd.run(low, high, blank(high)));
      // A device that has none left: what the browser then says of the first picture.
      const pop = GPUDevice.prototype.popErrorScope;
      GPUDevice.prototype.popErrorScope = async function () {
        await pop.apply(this);
        return new GPUOutOfMemoryError("planted");
      };
      const network = await startWebGpu(wide, patient);
      return [limit, again, await reasonOf(network.run(low, high, blank(high)))];
    });
    for (const one of found) told(one, "out_of_memory");
  });

  test("a built-in network starts once it has proved right, and not on a GPU that is wrong", async () => {
    const found = await lab.run(async ({ patient, startBuiltIn, reasonOf }) => {
      const built = await startBuiltIn("xxs", 2, patient);
      built.dispose();
      const none = await reasonOf(startBuiltIn("xxs", 3, patient));
      const plain = GPUDevice.prototype.createShaderModule;
      GPUDevice.prototype.createShaderModule = function ({ code }) {
        return plain.call(this, { code: code.replaceAll(" += ", " = ") });
      };
      return { scale: built.scale, none: none.reason, wrong: (await reasonOf(startBuiltIn("xxs", 2, patient))).reason };
    });
    assert.deepEqual(found, { scale: 2, none: "invalid_weights", wrong: "wrong" });
  });

  test("a software adapter is not taken unasked", async () => {
    const found = await lab.run(({ oracle, startWebGpu, reasonOf }) =>
      reasonOf(startWebGpu(oracle.drawFile(3, 2, 8, 2))),
    );
    told(found, "software_adapter");
  });

  test("bytes that are no network are refused before a device is asked for", async () => {
    const found = await lab.run(({ oracle, startWebGpu, reasonOf }) => {
      delete WorkerNavigator.prototype.gpu;
      return reasonOf(startWebGpu(oracle.drawFile(3, 2, 8, 2).subarray(1)));
    });
    told(found, "invalid_weights");
  });

  test("shaders that take long, or are refused, end the start", async () => {
    const found = await lab.run(async ({ oracle, patient, startWebGpu, reasonOf }) => {
      const file = oracle.drawFile(3, 2, 8, 2);
      const plain = GPUDevice.prototype.createShaderModule;
      GPUDevice.prototype.createShaderModule = function ({ code }) {
        return plain.call(this, { code: code.replace("fn main", "fn man") });
      };
      const refused = await reasonOf(startWebGpu(file, patient));
      GPUDevice.prototype.createComputePipelineAsync = () => new Promise(() => {});
      const slow = await reasonOf(startWebGpu(file, { ...patient, limits: { ...patient.limits, compileMs: 1000 } }));
      return { refused, slow };
    });
    told(found.refused, "shader");
    told(found.slow, "slow_compile");
  });

  test("an adapter, a device or a picture that never comes ends it", async () => {
    const found = await lab.run(async ({ oracle, patient, startWebGpu, reasonOf, blank }) => {
      const file = oracle.drawFile(3, 2, 8, 2);
      const never = () => new Promise(() => {});
      const network = await startWebGpu(file, { ...patient, limits: { ...patient.limits, pictureMs: 1000 } });
      const high = oracle.drawPlane(6, 16, 16);
      GPUBuffer.prototype.mapAsync = never;
      const picture = await reasonOf(network.run(oracle.drawPlane(5, 8, 8), high, blank(high)));
      GPUAdapter.prototype.requestDevice = never;
      const device = await reasonOf(startWebGpu(file, { software: true }));
      GPU.prototype.requestAdapter = never;
      return { picture, device, adapter: await reasonOf(startWebGpu(file, { software: true })) };
    });
    told(found.picture, "stalled");
    told(found.device, "no_adapter");
    told(found.adapter, "no_adapter");
  });
});

describe("without", { only: true }, () => {
  test("a browser that gives no adapter says so", { only: true }, async () => {
    const lab = await openLab([]);
    try {
      const found = await lab.run(async ({ oracle, startWebGpu, reasonOf }) => {
        const file = oracle.drawFile(3, 2, 8, 2);
        const adapter = await reasonOf(startWebGpu(file, { software: true }));
        delete WorkerNavigator.prototype.gpu;
        return { adapter, api: await reasonOf(startWebGpu(file, { software: true })) };
      });
      told(found.adapter, "no_adapter");
      told(found.api, "no_webgpu");
    } finally {
      await lab.close();
    }
  });
});
