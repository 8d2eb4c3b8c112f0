/**
 * The hybrid decoder's WebAssembly module behind typed calls (`client-web/wasm/src/lib.rs` defines the exports).
 *
 * A module instance serves one track. A trap leaves its memory in an unknown state: the caller drops the whole
 * {@link HybridDecoder} and makes a new one.
 */

/** What every use of the module needs of it. Pointers and lengths are bytes in its memory. */
export interface ModuleMemory {
  memory: WebAssembly.Memory;
  alloc(length: number): number;
  dealloc(pointer: number, length: number): void;
}

/** The module's exports for subscribers. */
export interface HybridExports extends ModuleMemory {
  decoder_new(scale: number): number;
  decoder_free(handle: number): void;
  rescale(handle: number, scale: number): number;
  set_effort(handle: number, effort: number): number;
  push_frame(handle: number, rtpTimestamp: number, pointer: number, length: number): number;
  push_message(handle: number, pointer: number, length: number): number;
  refresh(handle: number): number;
  hr_ptr(handle: number, plane: number): number;
  lr_ptr(handle: number, plane: number): number;
  hr_width(handle: number): number;
  hr_height(handle: number): number;
  lr_width(handle: number): number;
  lr_height(handle: number): number;
  stride(handle: number, which: number, plane: number): number;
  stat(handle: number, index: number): number;
  reset(handle: number): void;
  warm_up(handle: number, step: number): number;
}

/** What became of a frame. */
export interface FrameOutcome {
  /** A picture came of it that is to be shown. */
  shown: boolean;
  /** Anchors have had a part in the picture. */
  detail: boolean;
}

/**
 * What became of an anchor message: not complete yet, applied (to its frame on time, or to a later one), kept for its
 * frame, with nothing that its frame has not, of a former epoch, or of no use (too old, malformed, of another size).
 */
export type AnchorOutcome = "incomplete" | "applied" | "applied-late" | "early" | "duplicate" | "former-epoch" | "lost";

/** What pictures have lost after anchors, in mean square grey levels of luma, and in how many frames: sums. */
export interface Decay {
  lost: number;
  frames: number;
}

/** Planes of a picture in the module's memory; valid until the next call into it. */
export interface PictureView {
  width: number;
  height: number;
  /** All three planes lie in here. */
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
const STAT_FRAMES_LATE = 8;
const STAT_DECAY_LOST = 15;
const STAT_DECAY_FRAMES = 16;
const HR = 0;

/** HR sizes over LR sizes that the module can make. */
export const SCALES: readonly number[] = [2, 3, 4];

/** How thoroughly the decoder searches. */
export type Effort = "full" | "little";

/** The bit stream could not be decoded; a key frame mends it. */
export class DecodeFailure extends Error {}

/** A place in the module's memory that grows with what is put there. */
export class Input {
  private pointer = 0;
  private length = 0;

  constructor(private readonly wasm: ModuleMemory) {}

  /** Puts bytes there; where they lie until the next call. */
  place(data: Uint8Array): number {
    if (data.length > this.length) {
      if (this.pointer !== 0) this.wasm.dealloc(this.pointer, this.length);
      this.length = Math.max(65_536, 2 ** Math.ceil(Math.log2(data.length)));
      this.pointer = this.wasm.alloc(this.length) >>> 0;
      if (this.pointer === 0) throw new Error("the decoder has no memory left");
    }
    new Uint8Array(this.wasm.memory.buffer, this.pointer, data.length).set(data);
    return this.pointer;
  }
}

/** One track's decoder. */
export class HybridDecoder {
  private readonly wasm: HybridExports;
  private readonly handle: number;
  private readonly input: Input;

  /** `scale`: HR size over LR size, one of {@link SCALES}. */
  constructor(module: WebAssembly.Module, scale: number) {
    this.wasm = new WebAssembly.Instance(module, {}).exports as unknown as HybridExports;
    this.input = new Input(this.wasm);
    this.handle = this.wasm.decoder_new(scale);
    if (this.handle === 0) throw new Error(`the decoder knows no scale ${scale}`);
  }

  /** Makes HR pictures of another size from now on; the low layer needs no key frame for it. */
  rescale(scale: number): void {
    if (this.wasm.rescale(this.handle, scale) < 0) throw new Error(`the decoder knows no scale ${scale}`);
  }

  /** How thoroughly to search for what pictures take from anchors: little is for a machine that does not keep up. */
  setEffort(effort: Effort): void {
    this.wasm.set_effort(this.handle, effort === "full" ? 0 : 1);
  }

  /** Decodes one frame. Throws {@link DecodeFailure} on a bad one; anything else thrown is a trap. */
  pushFrame(rtpTimestamp: number, data: Uint8Array): FrameOutcome {
    const pointer = this.input.place(data);
    const code = this.wasm.push_frame(this.handle, rtpTimestamp | 0, pointer, data.length);
    if (code < 0) throw new DecodeFailure(`the decoder refused a frame (${code})`);
    return { shown: (code & FLAG_SHOWN) !== 0, detail: (code & FLAG_DETAIL) !== 0 };
  }

  /** Gives a data channel message. */
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

  /** Makes the current HR picture anew where anchors have come since it was made; whether it did. */
  refresh(): boolean {
    return this.wasm.refresh(this.handle) === 1;
  }

  /** What pictures have lost after anchors so far, as far as it was looked at. */
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

  /** Decodes piece `step` of the module's own stream, in a decoder made for this alone; true when another follows. */
  warmUp(step: number): boolean {
    return this.wasm.warm_up(this.handle, step) === 1;
  }

  /** Forgets all pictures; the next frame must be a key frame. */
  reset(): void {
    this.wasm.reset(this.handle);
  }
}
