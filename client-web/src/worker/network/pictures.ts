/**
 * The GPU's memory for pictures of one size, and the commands that make one of them.
 *
 * Everything is made once and kept while the size stays: the planes of samples, two sets of activations that the layers
 * read and write in turn, the bind groups, and a ring of buffers from which finished pictures are read.
 */
import type { Plane } from "./backend.js";
import { type Answer, type Layout, layoutOf, layoutWords, type Precision, TILE } from "./wgsl.js";

/** Values of WebGPU's `GPUBufferUsage` and `GPUMapMode`, which not every worker has as globals. */
export const USAGE = { mapRead: 0x1, copySource: 0x4, copyTarget: 0x8, uniform: 0x40, storage: 0x80 } as const;
const MAP_READ = 0x1;
/** Pictures that can be under way at once. */
export const RING = 3;

/** A compiled layer, with its weights. */
export interface Stage {
  pipeline: GPUComputePipeline;
  weights: GPUBuffer;
  /** Groups of channels that it writes, and how many workgroups share them out. */
  written: number;
  chunks: number;
}

/** A network on a device. */
export interface Program {
  scale: number;
  precision: Precision;
  answer: Answer;
  fold: GPUComputePipeline;
  /** Groups of inputs. */
  folded: number;
  stages: Stage[];
}

/** A picture that is being made. */
export interface Making {
  /** Resolves once it can be read. */
  ready: Promise<void>;
  /** Copies it to a plane. */
  read(out: Plane): void;
  /** Gives its place in the ring back. Must be called once, read or not. */
  release(): void;
}

/** Bytes of the buffers that pictures of a layout need. */
export function pictureBytes(program: Program, layout: Layout): { activations: number; low: number; high: number } {
  const groups = Math.max(program.folded, ...program.stages.slice(0, -1).map((stage) => stage.written));
  return {
    activations: groups * layout.plane * (program.precision === "f16" ? 8 : 16),
    low: layout.lowStride * layout.height,
    high: layout.highStride * layout.height * program.scale,
  };
}

/** Strides in the GPU's memory are multiples of four. */
const strideOf = ({ stride, width }: Plane): number => (stride % 4 === 0 ? stride : 4 * Math.ceil(width / 4));

/** The layout that takes these planes with the least copying. */
export const layoutFor = (low: Plane, high: Plane): Layout =>
  layoutOf(low.width, low.height, strideOf(low), strideOf(high));

/** GPU buffers for pictures of one size, and the commands that compute a picture in them. */
export class Pictures {
  private readonly buffers: GPUBuffer[] = [];
  private readonly low: GPUBuffer;
  private readonly high: GPUBuffer;
  private readonly answer: GPUBuffer;
  private readonly steps: { pipeline: GPUComputePipeline; group: GPUBindGroup; chunks: number }[] = [];
  /** Buffers to read from that are free. */
  private readonly ring: GPUBuffer[] = [];
  private under = 0;
  private retired = false;
  /** Rows of planes that the GPU cannot take as they are. */
  private scratch: Uint8Array<ArrayBuffer> | null = null;
  /** Bytes of a sample of the answer. */
  private readonly sampleBytes: number;

  constructor(
    private readonly device: GPUDevice,
    program: Program,
    readonly layout: Layout,
  ) {
    const bytes = pictureBytes(program, layout);
    this.sampleBytes = program.answer === "residual" ? 4 : 1;
    const { storage, uniform, copyTarget, copySource, mapRead } = USAGE;
    const size = this.buffer(32, uniform | copyTarget);
    device.queue.writeBuffer(size, 0, layoutWords(layout));
    this.low = this.buffer(bytes.low, storage | copyTarget);
    this.high = this.buffer(bytes.high, storage | copyTarget);
    this.answer = this.buffer(bytes.high * this.sampleBytes, storage | copySource);
    for (let i = 0; i < RING; i++) this.ring.push(this.buffer(this.answer.size, mapRead | copyTarget));
    let read = this.buffer(bytes.activations, storage);
    let write = this.buffer(bytes.activations, storage);
    this.step(program.fold, 1, [size, this.low, this.high, read]);
    for (const [i, { pipeline, weights, chunks }] of program.stages.entries()) {
      if (i + 1 < program.stages.length) this.step(pipeline, chunks, [size, weights, read, write]);
      else {
        const high = program.answer === "residual" ? [] : [this.high];
        this.step(pipeline, chunks, [size, weights, read, this.answer, ...high]);
      }
      [read, write] = [write, read];
    }
  }

  private buffer(bytes: number, usage: number): GPUBuffer {
    const buffer = this.device.createBuffer({ size: bytes, usage });
    this.buffers.push(buffer);
    return buffer;
  }

  private step(pipeline: GPUComputePipeline, chunks: number, buffers: GPUBuffer[]): void {
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
    const group = this.device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    this.steps.push({ pipeline, group, chunks });
  }

  /** Begins a picture; the planes are copied before it returns. Null where the ring is full. */
  make(low: Plane, high: Plane): Making | null {
    const slot = this.ring.pop();
    if (slot === undefined) return null;
    this.under++;
    this.upload(this.low, low, this.layout.lowStride);
    this.upload(this.high, high, this.layout.highStride);
    const encoder = this.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    const [columns, rows] = [Math.ceil(this.layout.width / TILE), Math.ceil(this.layout.height / TILE)];
    for (const { pipeline, group, chunks } of this.steps) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(columns, rows, chunks);
    }
    pass.end();
    encoder.copyBufferToBuffer(this.answer, 0, slot, 0, slot.size);
    this.device.queue.submit([encoder.finish()]);
    return {
      ready: slot.mapAsync(MAP_READ),
      read: (out) => this.read(slot, out),
      release: () => this.release(slot),
    };
  }

  private upload(buffer: GPUBuffer, plane: Plane, stride: number): void {
    const { bytes, width, height } = plane;
    const length = stride * (height - 1) + 4 * Math.ceil(width / 4);
    if (plane.stride === stride && bytes.length >= length) {
      // Not all of TypeScript's typed arrays are sources; WebGPU takes them all.
      this.device.queue.writeBuffer(buffer, 0, bytes as Uint8Array<ArrayBuffer>, 0, length);
      return;
    }
    if (this.scratch === null || this.scratch.length < length) this.scratch = new Uint8Array(length);
    for (let y = 0; y < height; y++)
      this.scratch.set(bytes.subarray(y * plane.stride, y * plane.stride + width), y * stride);
    this.device.queue.writeBuffer(buffer, 0, this.scratch, 0, length);
  }

  /** Copies rows; those of an answer that is no picture are wider by the bytes of a sample. */
  private read(slot: GPUBuffer, out: Plane): void {
    const from = new Uint8Array(slot.getMappedRange());
    const [stride, target] = [this.layout.highStride * this.sampleBytes, out.stride * this.sampleBytes];
    const width = out.width * this.sampleBytes;
    if (stride === target && width === stride) {
      out.bytes.set(from.subarray(0, stride * out.height));
      return;
    }
    for (let y = 0; y < out.height; y++) out.bytes.set(from.subarray(y * stride, y * stride + width), y * target);
  }

  private release(slot: GPUBuffer): void {
    slot.unmap();
    this.ring.push(slot);
    this.under--;
    if (this.retired && this.under === 0) this.destroy();
  }

  /** Frees the memory once no picture is under way. */
  retire(): void {
    this.retired = true;
    if (this.under === 0) this.destroy();
  }

  private destroy(): void {
    for (const buffer of this.buffers) buffer.destroy();
  }
}
