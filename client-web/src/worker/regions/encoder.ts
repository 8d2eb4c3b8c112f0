/**
 * One VP9 key frame of a mosaic in at most so many bytes, by WebCodecs.
 *
 * Each try has an encoder of its own, as the rate control remembers frames before; its quantizer mode is of no use: Chromium
 * takes quantizers 0 to 63 for the first 64 of 256 (`docs/detail-stream.md`).
 */
import type { Mosaic } from "./mosaic.js";
import { RateSearch } from "./rate.js";

/** Encodings of one mosaic at most. */
const TRIES = 4;

/** Remembers what the last mosaic took. */
export class MosaicEncoder {
  private last: { bitrate: number; bytes: number } | null = null;

  /** The frame; null where none fits, or the browser cannot encode it. */
  async encode(mosaic: Mosaic, bytes: number): Promise<Uint8Array | null> {
    if (bytes <= 0) return null;
    const rate = new RateSearch(bytes, this.last);
    let best: Uint8Array | null = null;
    for (let i = 0; i < TRIES; i++) {
      const bitrate = rate.next;
      const frame = await encodeOnce(mosaic, bitrate).catch(() => null);
      if (frame === null) break;
      this.last = { bitrate, bytes: frame.length };
      if (frame.length <= bytes && frame.length > (best?.length ?? 0)) best = frame;
      if (rate.done(frame.length)) break;
    }
    return best;
  }
}

function encodeOnce({ data, width, height }: Mosaic, bitrate: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const encoder = new VideoEncoder({
      output: (chunk) => {
        const bytes = new Uint8Array(chunk.byteLength);
        chunk.copyTo(bytes);
        resolve(bytes);
      },
      error: reject,
    });
    const rate = { bitrateMode: "constant", bitrate, framerate: 1 } as const;
    encoder.configure({ codec: "vp09.00.41.08", width, height, latencyMode: "realtime", ...rate });
    const frame = new VideoFrame(data, { format: "I420", codedWidth: width, codedHeight: height, timestamp: 0 });
    encoder.encode(frame, { keyFrame: true });
    frame.close();
    const end = () => {
      if (encoder.state !== "closed") encoder.close();
      reject(new Error("no frame came")); // after `output` without effect
    };
    encoder.flush().then(end, end);
  });
}
