// Watches, in a subscriber's page, the publisher's stills that come on the data channel, and looks whether each is of the very
// frame whose timestamp it bears: it was coded over that frame's low picture, so what it adds inside the cells of the drawn frame
// number is little. Over another frame's it would turn cells over.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { CELL, CELLS } from "./scene.mjs";

/** What turning a cell over adds, at least: half of what lies between dark and light. */
const TURNED = 85;

/** To be run in the page before its scripts. Fills `window.stillMessages`. */
export function watchStills() {
  const [CODEC_HTJ2K, CAPTURED] = [2, 1];
  window.stillMessages = [];
  const Plain = RTCPeerConnection;
  window.RTCPeerConnection = class extends Plain {
    constructor(...args) {
      super(...args);
      this.addEventListener("datachannel", ({ channel }) => {
        channel.addEventListener("message", ({ data }) => {
          const view = new DataView(data);
          if (view.getUint8(1) !== CODEC_HTJ2K || view.getUint8(2) !== CAPTURED) return;
          window.stillMessages.push(btoa(String.fromCharCode(...new Uint8Array(data))));
        });
      });
    }
  };
}

/** A VP9 key frame of grey. */
function greyFrame(width, height) {
  const file = path.resolve("output", `grey-${width}x${height}.ivf`);
  mkdirSync(path.dirname(file), { recursive: true });
  const grey = Buffer.alloc(width * height + 2 * Math.ceil(width / 2) * Math.ceil(height / 2), 128);
  const args = ["-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", `${width}x${height}`, "-i", "-"];
  const run = spawnSync("ffmpeg", [...args, "-c:v", "libvpx-vp9", "-f", "ivf", "-y", file], { input: grey, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`ffmpeg made no grey frame: ${run.stderr}`);
  const ivf = readFileSync(file);
  return ivf.subarray(44, 44 + ivf.readUInt32LE(32));
}

/** What stills add to a picture, by our decoder over grey. */
export class StillReader {
  constructor(wasmFile) {
    this.module = new WebAssembly.Module(readFileSync(wasmFile));
    this.grey = new Map();
  }

  /** The luma that the messages of one still add, in grey levels; `scale`: HR over LR. */
  added(messages, scale) {
    const wasm = new WebAssembly.Instance(this.module, {}).exports;
    const head = messages[0];
    const [rtp, width, height] = [head.readUInt32BE(16), head.readUInt16BE(20), head.readUInt16BE(22)];
    const decoder = wasm.decoder_new(scale);
    const give = (call, bytes) => {
      const at = wasm.alloc(bytes.length);
      new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
      return call(at, bytes.length);
    };
    const size = `${width / scale}x${height / scale}`;
    if (!this.grey.has(size)) this.grey.set(size, greyFrame(width / scale, height / scale));
    if (give((at, length) => wasm.push_frame(decoder, rtp | 0, at, length), this.grey.get(size)) < 0) return null;
    const luma = () => {
      const [at, stride] = [wasm.hr_ptr(decoder, 0), wasm.stride(decoder, 0, 0)];
      const out = new Uint8Array(width * height);
      for (let row = 0; row < height; row++) out.set(new Uint8Array(wasm.memory.buffer, at + row * stride, width), row * width);
      return out;
    };
    const before = luma();
    let outcome = 0;
    for (const message of messages) outcome = give((at, length) => wasm.push_message(decoder, at, length), message);
    if (outcome !== 1) return null;
    wasm.refresh(decoder);
    const after = luma();
    return { width, height, luma: Int16Array.from(after, (v, i) => v - before[i]) };
  }
}

/** By how much a still turns the cell of the drawn number that it turns most, in grey levels. */
export function turns({ width, luma }, scene) {
  const side = (CELL * width) / scene.width;
  let most = 0;
  for (let cell = 0; cell < CELLS; cell++) {
    let [sum, count] = [0, 0];
    for (let row = Math.round(side * 0.3); row < side * 0.7; row++) {
      for (let col = Math.round((cell + 0.3) * side); col < (cell + 0.7) * side; col++) {
        sum += luma[row * width + col];
        count++;
      }
    }
    most = Math.max(most, Math.abs(sum / count));
  }
  return most;
}

/** Messages of stills of which some are still to come, by page. */
const begun = new WeakMap();

/**
 * Takes the stills that have come since the last call: `met`, those of the frame that they bear the timestamp of; `missed`, those of
 * another; `broken`, those that cannot be decoded; `tiled`, how many were of some tiles alone; `widths`, in the order in which they came.
 */
export async function takeStills(page, reader, scene, scale) {
  const all = await page.evaluate(() => window.stillMessages.splice(0));
  const byStill = begun.get(page) ?? new Map();
  begun.set(page, byStill);
  for (const message of all.map((text) => Buffer.from(text, "base64"))) {
    const key = `${message.readUInt32BE(4)} ${message.readUInt16BE(8)} ${message.readUInt32BE(16)}`;
    byStill.set(key, [...(byStill.get(key) ?? []), message]);
  }
  const out = { met: 0, missed: [], broken: 0, tiled: 0, bytes: [], widths: [] };
  for (const [key, messages] of byStill) {
    if (messages.length < messages[0].readUInt16BE(12)) continue;
    byStill.delete(key);
    const added = reader.added(messages, scale);
    if (added === null) {
      out.broken++;
      continue;
    }
    out.bytes.push(messages.reduce((sum, message) => sum + message.length, 0));
    out.widths.push(added.width);
    if (messages[0][3] & 1) out.tiled++;
    const turned = turns(added, scene);
    if (turned < TURNED) out.met++;
    else out.missed.push({ turned, rtp: messages[0].readUInt32BE(16) });
  }
  return out;
}
