// IVF: the plain container of VP9 frames, here with RTP time (90 kHz) as its clock.
import { closeSync, openSync, writeSync } from "node:fs";

const HEADER = 32;
const CLOCK = 90_000;

/** One stream's file; `add` takes frames in coding order, the first of them a key frame. */
export class IvfWriter {
  frames = 0;
  keyFrames = 0;
  /** Frames by temporal layer. */
  layers = [];
  /** Sizes as key frames declare them, each time that they change. */
  sizes = [];
  #fd;
  #first;
  #time = 0;

  constructor(file) {
    this.#fd = openSync(file, "w");
    writeSync(this.#fd, Buffer.alloc(HEADER));
  }

  /** `rtp` is the frame's RTP timestamp, which may wrap around; frames before a key frame are not kept. */
  add({ rtp, key, temporal, data }) {
    if (this.frames === 0 && !key) return;
    if (this.#first === undefined) this.#first = rtp;
    else this.#time += (rtp - ((this.#first + this.#time) >>> 0)) | 0;
    const head = Buffer.alloc(12);
    head.writeUInt32LE(data.length, 0);
    head.writeBigUInt64LE(BigInt(this.#time), 4);
    writeSync(this.#fd, head);
    writeSync(this.#fd, data);
    this.frames++;
    while (this.layers.length <= temporal) this.layers.push(0);
    this.layers[temporal]++;
    if (!key) return;
    this.keyFrames++;
    const size = keyFrameSize(data);
    const last = this.sizes.at(-1);
    if (size && (size.width !== last?.width || size.height !== last?.height)) this.sizes.push(size);
  }

  /** From the first frame to the last. */
  get seconds() {
    return this.#time / CLOCK;
  }

  close() {
    const head = Buffer.alloc(HEADER);
    head.write("DKIF", 0, "ascii");
    head.writeUInt16LE(HEADER, 6);
    head.write("VP90", 8, "ascii");
    head.writeUInt16LE(this.sizes[0]?.width ?? 0, 12);
    head.writeUInt16LE(this.sizes[0]?.height ?? 0, 14);
    head.writeUInt32LE(CLOCK, 16);
    head.writeUInt32LE(1, 20);
    head.writeUInt32LE(this.frames, 24);
    writeSync(this.#fd, head, 0, HEADER, 0);
    closeSync(this.#fd);
  }
}

/** Width and height in the header of a profile 0 key frame (VP9 specification §6.2); undefined for another frame. */
export function keyFrameSize(data) {
  if (data.length < 9 || data[0] >> 4 !== 0b1000 || data.readUIntBE(1, 3) !== 0x498342) return undefined;
  // After the sync code: colour space (3 bits), colour range (1), width - 1 (16), height - 1 (16).
  const bits = data.readUIntBE(4, 5);
  const at = (shift) => Math.floor(bits / 2 ** shift) & 0xffff;
  return { width: at(20) + 1, height: at(4) + 1 };
}
