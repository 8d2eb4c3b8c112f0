/**
 * The built-in networks on WebGPU: a script of its own (`network-webgpu.js`), which a worker imports by its address
 * where it may run a network and the browser has WebGPU. It holds the decoder's integers, those of `hybrid/network`.
 */

import { NETWORKS_VERSION } from "windlass:built";
import xsX2 from "../../../../hybrid/network/networks/xs-x2.bin";
import xsX3 from "../../../../hybrid/network/networks/xs-x3.bin";
import xsX4 from "../../../../hybrid/network/networks/xs-x4.bin";
import xxsX2 from "../../../../hybrid/network/networks/xxs-x2.bin";
import xxsX4 from "../../../../hybrid/network/networks/xxs-x4.bin";
import type { NetworkTier } from "../network-choice.js";
import { type BackendScript, type FrameNetwork, NetworkFailure, type Plane } from "./backend.js";
import { parseNetwork } from "./file.js";
import { residualOf, wrongSamples } from "./plain.js";
import { startWebGpu } from "./webgpu.js";

const FILES: Readonly<Record<string, Uint8Array>> = {
  "xxs-x2": xxsX2,
  "xxs-x4": xxsX4,
  "xs-x2": xsX2,
  "xs-x3": xsX3,
  "xs-x4": xsX4,
};

/** Size of the low picture on which a backend proves right: more than a workgroup computes, in both directions. */
const PROOF = { width: 20, height: 18 };
/** Error of a sample that is taken, grey levels beyond rounding; activations in f16 are within a fifth of it. */
const TOLERANCE = 0.25;

/** See {@link BackendScript}. */
export const version: BackendScript["version"] = NETWORKS_VERSION;

/** See {@link BackendScript}. */
export const startBuiltIn: BackendScript["startBuiltIn"] = async (tier, scale, options) => {
  const file = fileOf(tier, scale);
  const backend = await startWebGpu(file, options);
  try {
    await prove(backend, file);
  } catch (error) {
    backend.dispose();
    throw error;
  }
  return backend;
};

function fileOf(tier: NetworkTier, scale: number): Uint8Array {
  const file = FILES[`${tier}-x${scale}`];
  if (file === undefined) throw new NetworkFailure("invalid_weights", `there is no ${tier} of the scale ${scale}`);
  return file;
}

/** Throws unless the backend makes a picture as plain loops do. */
async function prove(backend: FrameNetwork, file: Uint8Array): Promise<void> {
  const network = parseNetwork(file);
  const { scale } = network;
  const low = drawn(PROOF.width, PROOF.height, 1);
  const high = drawn(scale * PROOF.width, scale * PROOF.height, scale);
  const out = { ...high, bytes: new Uint8Array(high.bytes.length) };
  await backend.run(low, high, out);
  const wrong = wrongSamples(out, high, residualOf(network, low, high), TOLERANCE);
  if (wrong > 0) throw new NetworkFailure("wrong", `${wrong} samples of ${out.bytes.length} are wrong`);
}

/** Waves with noise: the same picture in all sizes, but for the noise. */
function drawn(width: number, height: number, scale: number): Plane {
  const bytes = new Uint8Array(width * height);
  let noise = 1;
  for (let i = 0; i < bytes.length; i++) {
    const [x, y] = [(i % width) / scale, Math.floor(i / width) / scale];
    noise = (Math.imul(noise, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = 120 + 80 * Math.sin(x / 2) * Math.cos(y / 3) + (noise >>> 28);
  }
  return { bytes, width, height, stride: width };
}
