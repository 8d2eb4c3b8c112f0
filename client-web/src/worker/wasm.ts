/**
 * Typed calls of the hybrid decoder's WebAssembly module (`client-web/wasm/src/lib.rs` defines the exports).
 *
 * A module instance serves one track. A trap leaves its memory in an unknown state: the caller drops the
 * {@link HybridDecoder} and makes a new one.
 */
import type { Plane } from "./network/backend.js";
import { NETWORKS, type NetworkTier } from "./network-choice.js";
import type { DecodedPicture } from "./picture-decoder.js";

/** The exports for memory. Pointers and lengths are bytes. */
export interface ModuleMemory {
  memory: WebAssembly.Memory;
  alloc(length: number): number;
  dealloc(pointer: number, length: number): void;
}

/** An export that takes a picture of packed I420. */
export type TakePicture = (
  handle: number,
  rtpTimestamp: number,
  pointer: number,
  length: number,
  width: number,
  height: number,
) => number;

/** The exports for rows of a picture. */
export interface RowExports extends ModuleMemory {
  rows_new(tier: number, scale: number): number;
  rows_reach(handle: number): number;
  rows_place(handle: number, width: number, height: number): number;
  rows_run(handle: number): number;
}

/** The exports for subscribers. */
export interface HybridExports extends ModuleMemory {
  decoder_new(scale: number): number;
  decoder_free(handle: number): void;
  rescale(handle: number, scale: number): number;
  set_effort(handle: number, effort: number): number;
  set_network(handle: number, tier: number): number;
  push_frame(handle: number, rtpTimestamp: number, pointer: number, length: number): number;
  push_picture: TakePicture;
  push_message(handle: number, pointer: number, length: number): number;
  refresh(handle: number): number;
  hr_ptr(handle: number, plane: number): number;
  lr_ptr(handle: number, plane: number): number;
  hr_width(handle: number): number;
  hr_height(handle: number): number;
  lr_width(handle: number): number;
  lr_height(handle: number): number;
  stride(handle: number, which: number, plane: number): number;
  kept_ptr(handle: number): number;
  stat(handle: number, index: number): number;
  reset(handle: number): void;
  warm_up(handle: number, step: number): number;
}

/** The outcome of a frame. */
export interface FrameOutcome {
  /** It has made a picture to show. */
  shown: boolean;
  /** The picture has detail of anchors. */
  detail: boolean;
}

/**
 * The outcome of an anchor message.
 * - `incomplete`: further chunks are missing.
 * - `applied`: applied to its own frame; `applied-late`: to a later one.
 * - `early`: kept for its frame, which has not come.
 * - `duplicate`: its frame has all its detail already.
 * - `former-epoch`: an anchor of a newer epoch has come.
 * - `lost`: too old, malformed, or of another size.
 */
export type AnchorOutcome = "incomplete" | "applied" | "applied-late" | "early" | "duplicate" | "former-epoch" | "lost";

/** Loss of quality after anchors, as sums. */
export interface Decay {
  /** Mean squared error of luma. */
  lost: number;
  /** Frames over which it was lost. */
  frames: number;
}

/** A picture in the module's memory; valid until the next call into it. */
export interface PictureView {
  width: number;
  height: number;
  /** Contains all three planes. */
  bytes: Uint8Array;
  layout: [PlaneLayout, PlaneLayout, PlaneLayout];
}

const FLAG_SHOWN = 1;
const FLAG_DETAIL = 4;
const OUTCOME_INCOMPLETE = 0;
const OUTCOME_APPLIED = 1;
const OUTCOME_EARLY = 2;
const OUTCOME_DUPLICATE = 4;
const OUTCOME_FORMER_EPOCH = 5;
const STAT_FRAMES = 0;
const STAT_FRAMES_LATE = 8;
const STAT_DECAY_LOST = 15;
const STAT_DECAY_FRAMES = 16;
const HR = 0;
const LR = 1;
/** Side of a cell, low samples. */
const CELL = 8;

/** The scales, HR over LR size, that the module supports. */
export const SCALES: readonly number[] = [2, 3, 4];

/** How thoroughly the decoder searches for the detail of anchors. */
export type Effort = "full" | "little";

/** The bit stream could not be decoded. Decoding continues at the next key frame. */
export class DecodeFailure extends Error {}

/** A buffer in the module's memory that grows with its content. */
export class Input {
  private pointer = 0;
  private length = 0;

  constructor(private readonly wasm: ModuleMemory) {}

  /** Copies bytes into the buffer; returns its address, valid until the next call. */
  place(data: Uint8Array): number {
    if (data.length > this.length) {
      if (this.pointer !== 0) this.wasm.dealloc(this.pointer, this.length);
      this.length = Math.max(65_536, 2 ** Math.ceil(Math.log2(data.length)));
      this.pointer = this.wasm.alloc(this.length) >>> 0;
      if (this.pointer === 0) throw new Error("the decoder is out of memory");
    }
    new Uint8Array(this.wasm.memory.buffer, this.pointer, data.length).set(data);
    return this.pointer;
  }
}

function outcomeOf(code: number): FrameOutcome {
  if (code < 0) throw new DecodeFailure(`the decoder rejected a frame (code ${code})`);
  return { shown: (code & FLAG_SHOWN) !== 0, detail: (code & FLAG_DETAIL) !== 0 };
}

/** One track's decoder. */
export class HybridDecoder {
  private readonly wasm: HybridExports;
  private readonly handle: number;
  private readonly input: Input;

  /** `scale`: HR over LR size, one of {@link SCALES}. Throws on another one. */
  constructor(module: WebAssembly.Module, scale: number) {
    this.wasm = new WebAssembly.Instance(module, {}).exports as unknown as HybridExports;
    this.input = new Input(this.wasm);
    this.handle = this.wasm.decoder_new(scale);
    if (this.handle === 0) throw new Error(`the decoder does not support the scale ${scale}`);
  }

  /** Changes the scale, without a key frame. Throws unless it is one of {@link SCALES}. */
  rescale(scale: number): void {
    if (this.wasm.rescale(this.handle, scale) < 0) throw new Error(`the decoder does not support the scale ${scale}`);
  }

  /** Sets the effort; `little` is for a machine that is too slow. */
  setEffort(effort: Effort): void {
    this.wasm.set_effort(this.handle, effort === "full" ? 0 : 1);
  }

  /** Runs a network on every picture from the next on. */
  setNetwork(network: NetworkTier): void {
    this.wasm.set_network(this.handle, NETWORKS.indexOf(network));
  }

  /** Decodes a frame. Throws {@link DecodeFailure} on an invalid one; any other error is a trap. */
  pushFrame(rtpTimestamp: number, data: Uint8Array): FrameOutcome {
    const pointer = this.input.place(data);
    return outcomeOf(this.wasm.push_frame(this.handle, rtpTimestamp | 0, pointer, data.length));
  }

  /** Takes the picture that the browser decoded of a frame. Throws as {@link pushFrame} does. */
  pushPicture(rtpTimestamp: number, { data, width, height }: DecodedPicture): FrameOutcome {
    const pointer = this.input.place(data);
    return outcomeOf(this.wasm.push_picture(this.handle, rtpTimestamp | 0, pointer, data.length, width, height));
  }

  /** Takes a data channel message with an anchor. */
  pushMessage(data: Uint8Array): AnchorOutcome {
    switch (this.wasm.push_message(this.handle, this.input.place(data), data.length)) {
      case OUTCOME_INCOMPLETE:
        return "incomplete";
      case OUTCOME_APPLIED:
        return this.wasm.stat(this.handle, STAT_FRAMES_LATE) > 0 ? "applied-late" : "applied";
      case OUTCOME_EARLY:
        return "early";
      case OUTCOME_DUPLICATE:
        return "duplicate";
      case OUTCOME_FORMER_EPOCH:
        return "former-epoch";
      default:
        return "lost";
    }
  }

  /** Rebuilds the current HR picture if anchors have come since; returns whether they had. */
  refresh(): boolean {
    return this.wasm.refresh(this.handle) === 1;
  }

  /** The loss of quality after anchors since the start, as far as it was measured. */
  decay(): Decay {
    const stat = (index: number) => this.wasm.stat(this.handle, index);
    return { lost: stat(STAT_DECAY_LOST), frames: stat(STAT_DECAY_FRAMES) };
  }

  /** The current HR picture; null before the first. */
  hr(): PictureView | null {
    const { wasm, handle } = this;
    const width = wasm.hr_width(handle);
    const height = wasm.hr_height(handle);
    if (width === 0 || height === 0) return null;
    const pointers = [0, 1, 2].map((plane) => wasm.hr_ptr(handle, plane) >>> 0);
    const strides = [0, 1, 2].map((plane) => wasm.stride(handle, HR, plane));
    const rows = [height, (height + 1) >> 1, (height + 1) >> 1];
    const start = Math.min(...pointers);
    const end = Math.max(...pointers.map((p, i) => p + (strides[i] as number) * (rows[i] as number)));
    const plane = (i: number): PlaneLayout => ({
      offset: (pointers[i] as number) - start,
      stride: strides[i] as number,
    });
    return {
      width,
      height,
      bytes: new Uint8Array(wasm.memory.buffer, start, Math.min(end, wasm.memory.buffer.byteLength) - start),
      layout: [plane(0), plane(1), plane(2)],
    };
  }

  /** Luma of the current low picture, valid until the next call into the module; null before the first. */
  low(): Plane | null {
    const { wasm, handle } = this;
    const [width, height] = [wasm.lr_width(handle), wasm.lr_height(handle)];
    if (width === 0 || height === 0) return null;
    const stride = wasm.stride(handle, LR, 0);
    const pointer = wasm.lr_ptr(handle, 0) >>> 0;
    return { bytes: new Uint8Array(wasm.memory.buffer, pointer, stride * (height - 1) + width), width, height, stride };
  }

  /**
   * By cell of the current picture, 8×8 low samples, row by row: 1 where no network makes it better. Null while there
   * is none, or {@link refresh} would make another.
   */
  kept(): Uint8Array | null {
    const { wasm, handle } = this;
    const count = Math.ceil(wasm.lr_width(handle) / CELL) * Math.ceil(wasm.lr_height(handle) / CELL);
    const pointer = wasm.kept_ptr(handle) >>> 0;
    return pointer === 0 || count === 0 ? null : new Uint8Array(wasm.memory.buffer, pointer, count).slice();
  }

  /** Decodes step `step` of the module's own stream, in a decoder of its own; true where another follows. */
  warmUp(step: number): boolean {
    return this.wasm.warm_up(this.handle, step) === 1;
  }

  /** Frames decoded so far. */
  get frames(): number {
    return this.wasm.stat(this.handle, STAT_FRAMES);
  }

  /** Drops all pictures; the next frame must be a key frame. */
  reset(): void {
    this.wasm.reset(this.handle);
  }
}

/** A network of the module that runs on some rows of pictures. */
export class RowNetwork {
  /** Low rows above and below a row on which it depends. */
  readonly reach: number;
  private readonly wasm: RowExports;
  private readonly handle: number;

  /** Throws where there is no such network. */
  constructor(
    module: WebAssembly.Module,
    tier: NetworkTier,
    private readonly scale: number,
  ) {
    this.wasm = new WebAssembly.Instance(module, {}).exports as unknown as RowExports;
    this.handle = this.wasm.rows_new(NETWORKS.indexOf(tier), scale);
    if (this.handle === 0) throw new Error(`there is no network ${tier} of the scale ${scale}`);
    this.reach = this.wasm.rows_reach(this.handle);
  }

  /**
   * Runs on luma of low rows and, behind it, of the high ones, without gaps. Replaces the high ones by what it makes.
   */
  run(bytes: Uint8Array, width: number, height: number): void {
    const { wasm, handle } = this;
    const low = width * height;
    const place = wasm.rows_place(handle, width, height) >>> 0;
    if (place === 0 || bytes.length !== low * (1 + this.scale ** 2))
      throw new RangeError(`${bytes.length} bytes are no rows of ${width}x${height}`);
    new Uint8Array(wasm.memory.buffer, place, bytes.length).set(bytes);
    const made = wasm.rows_run(handle) >>> 0;
    bytes.set(new Uint8Array(wasm.memory.buffer, made, bytes.length - low), low);
  }
}
