/**
 * Runs a frame network on the GPU, by WebGPU.
 *
 * All that can fail (no GPU, one that is a CPU, no memory, a lost device, slow compilers, a stalled queue) rejects
 * with a reason within {@link BackendLimits}.
 *
 * Per picture: the planes are copied to the GPU (`writeBuffer`), one dispatch folds them, each convolution is a
 * dispatch, and the picture is copied back (`mapAsync`). Nothing but the commands is allocated. At 320×180, ×2, with
 * five convolutions of 16 channels that is 0.47 GMAC in 6 dispatches, 0.29 MB up, 0.23 MB down, and at least 34 MB of
 * GPU memory (18 in f16); `lab/notes/frame-networks.md` has other sizes.
 */
import {
  type BackendLimits,
  type BackendOptions,
  checkSizes,
  type FailureReason,
  type FrameNetwork,
  NetworkFailure,
  type Plane,
} from "./backend.js";
import { type Network, parseNetwork } from "./file.js";
import { layoutFor, type Making, Pictures, type Program, pictureBytes, type Stage, USAGE } from "./pictures.js";
import {
  type Answer,
  convolutionShader,
  foldShader,
  groupsOf,
  type Precision,
  packWeights,
  weightBytes,
} from "./wgsl.js";

const LIMITS: BackendLimits = { adapterMs: 1000, compileMs: 1000, pictureMs: 1000 };
/** A read that fails may come before the word of what failed. */
const CAUSE_MS = 100;

export interface WebGpuOptions extends BackendOptions {
  /** How activations are stored; by default `f16` where the GPU can. */
  precision?: Precision;
  /** `residual`: `out` takes the residual in grey levels, as f32 (four bytes a sample); for tests. */
  answer?: Answer;
}

/** Starts a network from the bytes of its file. Rejects with {@link NetworkFailure}. */
export async function startWebGpu(file: Uint8Array, options: WebGpuOptions = {}): Promise<FrameNetwork> {
  const network = parseNetwork(file);
  const limits = { ...LIMITS, ...options.limits };
  const device = await openDevice(options, limits.adapterMs);
  const backend = new WebGpuNetwork(device, network, limits);
  try {
    const precision = device.features.has("shader-f16") ? "f16" : "f32";
    await backend.compile(precision, options.answer ?? "picture");
  } catch (error) {
    backend.dispose();
    throw error;
  }
  return backend;
}

/** Settles as `promise` does, or rejects with `late` after `ms`; a value that comes later goes to `drop`. */
function within<T>(promise: Promise<T>, ms: number, late: NetworkFailure, drop?: (value: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = false;
    const timer = setTimeout(() => {
      over = true;
      reject(late);
    }, ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        if (over) drop?.(value);
        else resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

async function openDevice(options: WebGpuOptions, ms: number): Promise<GPUDevice> {
  const gpu = (globalThis.navigator as { gpu?: GPU } | undefined)?.gpu;
  if (gpu === undefined) throw new NetworkFailure("no_webgpu", "the browser has no WebGPU");
  const late = new NetworkFailure("no_adapter", `the browser gave no adapter or device within ${ms} ms`);
  try {
    const adapter = await within(gpu.requestAdapter(), ms, late);
    if (adapter === null) throw new NetworkFailure("no_adapter", "the browser gives no adapter");
    if (isSoftware(adapter.info) && !options.software)
      throw new NetworkFailure("software_adapter", `${adapter.info.description} is no GPU`);
    const half = options.precision !== "f32" && adapter.features.has("shader-f16");
    const request = adapter.requestDevice({ requiredFeatures: half ? ["shader-f16"] : [] });
    return await within(request, ms, late, (device) => device.destroy());
  } catch (error) {
    throw error instanceof NetworkFailure ? error : new NetworkFailure("no_adapter", String(error));
  }
}

/** Whether an adapter is a CPU that plays a GPU: by its own word, or by the names of those that there are. */
function isSoftware(info: GPUAdapterInfo): boolean {
  const names = `${info.architecture} ${info.device} ${info.description}`;
  return (
    info.isFallbackAdapter === true || /\b(swiftshader|llvmpipe|lavapipe|software|warp|basic render)\b/i.test(names)
  );
}

class WebGpuNetwork implements FrameNetwork {
  readonly scale: number;
  private program: Program | null = null;
  private pictures: Pictures | null = null;
  private failure: NetworkFailure | null = null;
  /** Rejects the pictures under way. */
  private readonly under = new Set<(failure: NetworkFailure) => void>();

  constructor(
    private readonly device: GPUDevice,
    private readonly network: Network,
    private readonly limits: BackendLimits,
  ) {
    this.scale = network.scale;
    device.lost.then(({ message }) => this.fail("device_lost", message));
    device.addEventListener("uncapturederror", ({ error }) => this.refused(error));
  }

  /** Compiles the shaders: one for all layers of the same shape. */
  async compile(precision: Precision, answer: Answer): Promise<void> {
    const { device, network } = this;
    const compiled = new Map<string, Promise<GPUComputePipeline>>();
    const pipeline = (code: string): Promise<GPUComputePipeline> => {
      const known = compiled.get(code);
      if (known !== undefined) return known;
      const module = device.createShaderModule({ code });
      const made = device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint: "main" } });
      compiled.set(code, made);
      return made;
    };
    const last = network.layers.length - 1;
    const fold = pipeline(foldShader(network.scale, precision));
    const stages = network.layers.map(async (layer, i): Promise<Stage> => {
      const uniform = weightBytes(layer) <= device.limits.maxUniformBufferBindingSize;
      const end = i === last ? { scale: network.scale, answer } : null;
      const usage = (uniform ? USAGE.uniform : USAGE.storage) | USAGE.copyTarget;
      const weights = device.createBuffer({ size: weightBytes(layer), usage });
      const { written, chunk } = groupsOf(layer);
      const code = convolutionShader(layer, end, precision, uniform);
      return { pipeline: await pipeline(code), weights, written, chunks: written / chunk };
    });
    const { compileMs } = this.limits;
    const late = new NetworkFailure("slow_compile", `the shaders were not compiled within ${compileMs} ms`);
    try {
      const [folding, ...rest] = await within(Promise.all([fold, ...stages]), compileMs, late);
      const folded = groupsOf({ inputs: 1 + network.scale ** 2, outputs: 1 }).read;
      this.program = { scale: network.scale, precision, answer, fold: folding, folded, stages: rest };
    } catch (error) {
      if (this.failure !== null || error instanceof NetworkFailure) throw this.failure ?? error;
      // What is not invalid, as a compiler that ended with the GPU's process, may pass.
      const invalid = (error as { reason?: unknown }).reason === "validation";
      throw new NetworkFailure(invalid ? "shader" : "device_lost", String(error));
    }
    if (this.failure !== null) throw this.failure;
    this.upload(network);
  }

  async run(low: Plane, high: Plane, out: Plane): Promise<boolean> {
    checkSizes(this.scale, low, high, out);
    if (this.failure !== null) throw this.failure;
    const making = this.begin(low, high);
    if (this.failure !== null) throw this.failure;
    if (making === null) return false;
    try {
      await this.finished(making);
      making.read(out);
    } finally {
      making.release();
    }
    return true;
  }

  dispose(): void {
    this.fail("device_lost", "the network was disposed of");
  }

  private upload(network: Network): void {
    const { program, device } = this;
    for (const [i, layer] of network.layers.entries()) {
      const stage = program?.stages[i];
      if (stage === undefined) continue;
      device.queue.writeBuffer(stage.weights, 0, packWeights(layer, i === network.layers.length - 1));
    }
  }

  /** What throws here is the browser, at a command. */
  private begin(low: Plane, high: Plane): Making | null {
    try {
      return this.make(low, high);
    } catch (error) {
      this.fail("device_lost", String(error));
      return null;
    }
  }

  /** Begins a picture, with new memory where its size is new. */
  private make(low: Plane, high: Plane): Making | null {
    const { device, program } = this;
    if (program === null) throw new Error("the network is not compiled");
    const layout = layoutFor(low, high);
    const now = this.pictures?.layout;
    const same = (["width", "height", "lowStride", "highStride"] as const).every((key) => now?.[key] === layout[key]);
    if (this.pictures !== null && same) return this.pictures.make(low, high);
    this.pictures?.retire();
    this.pictures = null;
    const bytes = pictureBytes(program, layout);
    const most = Math.max(bytes.activations, bytes.high * (program.answer === "residual" ? 4 : 1));
    if (most > Math.min(device.limits.maxStorageBufferBindingSize, device.limits.maxBufferSize)) {
      this.fail("out_of_memory", `${low.width}x${low.height} needs a buffer of ${most} bytes`);
      return null;
    }
    device.pushErrorScope("validation");
    device.pushErrorScope("out-of-memory");
    this.pictures = new Pictures(device, program, layout);
    const making = this.pictures.make(low, high);
    for (let scope = 0; scope < 2; scope++) {
      // The scopes of a lost device reject; what lost it is reported elsewhere.
      device.popErrorScope().then(
        (error) => error !== null && this.refused(error),
        () => {},
      );
    }
    return making;
  }

  /** Waits until a picture can be read. */
  private finished({ ready }: Making): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const { pictureMs } = this.limits;
      const timer = setTimeout(() => this.fail("stalled", `a picture took more than ${pictureMs} ms`), pictureMs);
      const settle = (): void => {
        clearTimeout(timer);
        this.under.delete(give);
      };
      const give = (failure: NetworkFailure): void => {
        settle();
        reject(failure);
      };
      this.under.add(give);
      ready.then(
        () => {
          settle();
          resolve();
        },
        (error) => setTimeout(() => this.fail("device_lost", String(error)), CAUSE_MS),
      );
    });
  }

  private refused(error: GPUError): void {
    const memory = typeof GPUOutOfMemoryError !== "undefined" && error instanceof GPUOutOfMemoryError;
    const invalid = typeof GPUValidationError !== "undefined" && error instanceof GPUValidationError;
    this.fail(memory ? "out_of_memory" : invalid ? "shader" : "device_lost", error.message);
  }

  /** Ends the backend: pictures under way and all further ones reject. */
  private fail(reason: FailureReason, detail: string): void {
    if (this.failure !== null) return;
    const failure = new NetworkFailure(reason, detail);
    this.failure = failure;
    for (const give of [...this.under]) give(failure);
    this.device.destroy();
  }
}
