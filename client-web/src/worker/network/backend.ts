/**
 * What runs a frame network outside of the decoder: a small chain of convolutions that makes every rebuilt picture of a
 * track better.
 *
 * The network sees the decoded low picture (luma) and the rebuilt high one, and answers with what to add to the high
 * one. Chroma is left alone. A backend is behind {@link FrameNetwork}; where one fails it says why, and the pictures go
 * on without it.
 */
import type { NetworkTier } from "../network-choice.js";

/** 8-bit samples of luma, row after row. */
export interface Plane {
  bytes: Uint8Array;
  width: number;
  height: number;
  /** Bytes from row to row. */
  stride: number;
}

/** Where a network runs outside of the decoder: on the GPU, or in workers of its own. */
export type OutsideBackend = "webgpu" | "workers";

/**
 * Why a backend is not used, or no longer.
 * - `no_webgpu`: the browser has no WebGPU.
 * - `no_adapter`: it gives no adapter or device.
 * - `software_adapter`: the adapter is a CPU that plays a GPU.
 * - `device_lost`: the device or a worker went away, or failed without a reason.
 * - `out_of_memory`: buffers of this picture size cannot be had.
 * - `shader`: the device finds a shader or a command invalid.
 * - `slow_compile`: shaders were not compiled, or workers not started, in time.
 * - `stalled`: a picture was not ready in time.
 * - `invalid_weights`: the weights' file is not one of a frame network.
 * - `no_script`: its script cannot be loaded, or was not in time; or workers cannot be started.
 * - `wrong`: its picture is not the network's.
 * - `late`: its pictures take too much of the time between frames, or the worker does.
 * - `slower`: its pictures take longer than what the worker is spared.
 */
export type FailureReason =
  | "no_webgpu"
  | "no_adapter"
  | "software_adapter"
  | "device_lost"
  | "out_of_memory"
  | "shader"
  | "slow_compile"
  | "stalled"
  | "invalid_weights"
  | "no_script"
  | "wrong"
  | "late"
  | "slower";

/** A backend cannot start, or has ended. */
export class NetworkFailure extends Error {
  override readonly name = "NetworkFailure";

  constructor(
    readonly reason: FailureReason,
    detail: string,
  ) {
    super(detail);
  }
}

/**
 * The reason of an error that a backend threw; null where it is another error. A backend loaded as a script of its own
 * has its own {@link NetworkFailure}, so `instanceof` does not tell.
 */
export function failureReason(error: unknown): FailureReason | null {
  return error instanceof Error && error.name === "NetworkFailure" ? (error as NetworkFailure).reason : null;
}

/** A frame network that is ready to run. */
export interface FrameNetwork {
  /** High over low size: 2, 3 or 4. */
  readonly scale: number;

  /**
   * Puts the better picture into `out`, which is as large as `high`, and may be the same memory. The planes `low` and
   * `high` are read before the call returns; `out` is written before the promise resolves, and must not move until
   * then.
   *
   * Resolves with false, and leaves `out` alone, where too many pictures are under way: this one is shown as it is.
   * Rejects with a {@link NetworkFailure} where the backend has ended: then it never runs again. Rejects with a
   * `RangeError` where the sizes do not match; the backend stays usable.
   */
  run(low: Plane, high: Plane, out: Plane): Promise<boolean>;

  /** Frees what it holds. Pictures under way reject. */
  dispose(): void;
}

/** How a backend is started. */
export interface BackendOptions {
  /** Takes a CPU that plays a GPU as well; for tests. */
  software?: boolean;
  /** Max times, milliseconds. */
  limits?: Partial<BackendLimits>;
}

/** Max times, milliseconds. */
export interface BackendLimits {
  /** For the adapter, and again for the device. */
  adapterMs: number;
  compileMs: number;
  /** For one picture. */
  pictureMs: number;
}

/** The script of a backend, as a worker imports it. */
export interface BackendScript {
  /** Changes with the script. */
  readonly version: string;
  /** Starts a built-in network, once it has proved right. Rejects with a {@link NetworkFailure}. */
  startBuiltIn(tier: NetworkTier, scale: number, options: BackendOptions): Promise<FrameNetwork>;
}

/** Throws a `RangeError` unless the planes are whole, and the high ones `scale` times as large as the low one. */
export function checkSizes(scale: number, low: Plane, high: Plane, out: Plane): void {
  for (const { bytes, width, height, stride } of [low, high, out]) {
    const whole = Number.isSafeInteger(width * height) && width > 0 && height > 0 && stride >= width;
    if (!whole || bytes.length < stride * (height - 1) + width)
      throw new RangeError(`a plane of ${bytes.length} bytes is not ${width}x${height} with rows of ${stride}`);
  }
  for (const { width, height } of [high, out]) {
    if (width !== scale * low.width || height !== scale * low.height)
      throw new RangeError(`${width}x${height} is not ${scale} times ${low.width}x${low.height}`);
  }
}
