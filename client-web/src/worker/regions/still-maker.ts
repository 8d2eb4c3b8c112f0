/** Typed calls of the WebAssembly module's exports for stills (`client-web/wasm/src/stills.rs`). */
import type { DecodedPicture } from "../picture-decoder.js";
import { Input, type ModuleMemory, type TakePicture } from "../wasm.js";
import { type Picture, pack, packedBytes } from "./picture.js";

interface StillExports extends ModuleMemory {
  stills_new(): number;
  stills_follow(handle: number, rtpTimestamp: number, pointer: number, length: number): number;
  stills_follow_picture: TakePicture;
  stills_reset(handle: number): void;
  stills_camera(handle: number, width: number, height: number): number;
  stills_make(handle: number, rtp: number, scale: number, tiles: number, tilesLength: number, bytes: number): number;
  stills_payload(handle: number): number;
}

/** The parameters of a still. */
export interface StillTask {
  /** RTP timestamp of the low layer's frame. */
  rtp: number;
  /** HR over LR size. */
  scale: number;
  /** The tile map. */
  bits: Uint8Array;
  /** Max bytes of the payload. */
  bytes: number;
}

/**
 * Why there is no still: the low picture is not decoded, the camera is too small or too large, too few bytes, or an
 * invalid task.
 */
export type StillFault = "no-base" | "camera" | "budget" | "format";

const FAULTS: Partial<Record<number, StillFault>> = { [-2]: "no-base", [-3]: "format", [-4]: "camera", [-5]: "budget" };

/**
 * Makes stills of one camera that refine one low layer. An error is a trap: the caller drops the object and makes a new
 * one.
 *
 * Times in Node on two busy cores, 1280×720 over 320×180: 2.2 ms for a low frame; for a still of 8 kB 6 to 14 ms at
 * scale 2, 16 to 27 ms at scale 3, 20 to 34 ms at scale 4.
 */
export class StillMaker {
  private readonly wasm: StillExports;
  private readonly handle: number;
  private readonly input: Input;

  constructor(module: WebAssembly.Module) {
    this.wasm = new WebAssembly.Instance(module, {}).exports as unknown as StillExports;
    this.input = new Input(this.wasm);
    this.handle = this.wasm.stills_new();
  }

  /** Decodes the next frame of the low layer; false: it cannot be decoded before a key frame. */
  follow(rtp: number, data: Uint8Array): boolean {
    return this.wasm.stills_follow(this.handle, rtp | 0, this.input.place(data), data.length) === 0;
  }

  /** Takes the picture that the browser decoded of the next frame of the low layer; false: it is malformed. */
  followPicture(rtp: number, { data, width, height }: DecodedPicture): boolean {
    const pointer = this.input.place(data);
    return this.wasm.stills_follow_picture(this.handle, rtp | 0, pointer, data.length, width, height) === 0;
  }

  /** Notes that frames are missing. Decoding continues at a key frame. */
  reset(): void {
    this.wasm.stills_reset(this.handle);
  }

  /** The payload of a still. */
  make(camera: Picture, { rtp, scale, bits, bytes }: StillTask): Uint8Array | StillFault {
    const { wasm, handle } = this;
    const { width, height } = camera;
    const place = wasm.stills_camera(handle, width, height) >>> 0;
    if (place === 0) return "camera";
    pack(camera, new Uint8Array(wasm.memory.buffer, place, packedBytes(width, height)));
    const length = wasm.stills_make(handle, rtp | 0, scale, this.input.place(bits), bits.length, Math.max(0, bytes));
    if (length < 0) return FAULTS[length] ?? "format";
    return new Uint8Array(wasm.memory.buffer, wasm.stills_payload(handle) >>> 0, length).slice();
  }
}
