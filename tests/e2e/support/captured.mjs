// Watches, in a subscriber's page, the captured anchors that come on the data channel and the native frames, and reads the
// frame number in both: an anchor must show the very frame whose timestamp it bears.
import { readNumber } from "./scene.mjs";

/** To be run in the page before its scripts. Fills `window.captured`. */
export function watchCaptured() {
  const HEADER = 24;
  const STREAM_HEADER = 8;
  const CODEC = 4;
  window.captured = { anchors: [], native: [], messages: 0, undecodable: 0, overtaken: 0 };
  const partial = new Map();
  const Plain = RTCPeerConnection;
  window.RTCPeerConnection = class extends Plain {
    constructor(...args) {
      super(...args);
      this.addEventListener("datachannel", ({ channel }) => {
        channel.addEventListener("message", ({ data }) => take(data.slice(0)));
      });
    }
  };
  const lumaOf = async (frame) => {
    const { width, height } = frame.visibleRect;
    const all = new Uint8Array(frame.allocationSize());
    const [luma] = await frame.copyTo(all);
    const rows = Math.min(height, 40); // the number is at the top
    const y = new Uint8Array(width * rows);
    for (let row = 0; row < rows; row++) y.set(all.subarray(luma.offset + row * luma.stride, luma.offset + row * luma.stride + width), row * width);
    return { width, height, y: btoa(String.fromCharCode(...y.subarray(0, 0x8000))) };
  };
  let decoder = null;
  let next = null;
  const heads = new Map();
  function take(data) {
    const view = new DataView(data);
    if (data.byteLength <= HEADER || view.getUint8(1) !== CODEC) return;
    window.captured.messages++;
    const [stream, epoch, rtp] = [view.getUint32(4), view.getUint16(8), view.getUint32(16)];
    const key = `${stream} ${epoch} ${rtp}`;
    const parts = partial.get(key) ?? [];
    partial.set(key, parts);
    parts[view.getUint16(10)] = new Uint8Array(data, HEADER);
    if (Object.keys(parts).length < view.getUint16(12)) return;
    partial.delete(key);
    const payload = new Uint8Array(parts.reduce((sum, p) => sum + p.length, 0));
    parts.reduce((at, p) => (payload.set(p, at), at + p.length), 0);
    const head = { rtp, epoch, hr: view.getUint16(20), bytes: payload.length, at: performance.now() };
    const sequence = new DataView(payload.buffer).getUint16(2);
    const isKey = (payload[0] & 15) === 0;
    if (isKey) {
      if (decoder !== null && decoder.state !== "closed") decoder.close();
      decoder = new VideoDecoder({
        output: async (frame) => {
          const head = heads.get(frame.timestamp);
          heads.delete(frame.timestamp);
          window.captured.anchors.push({ ...head, ...(await lumaOf(frame)) });
          frame.close();
        },
        error: () => {
          decoder = null;
        },
      });
      decoder.configure({ codec: "vp09.00.41.08", optimizeForLatency: true });
    } else if (decoder === null || sequence !== next) {
      window.captured.undecodable++;
      return;
    }
    next = (sequence + 1) & 0xffff;
    heads.set(rtp, head);
    decoder.decode(new EncodedVideoChunk({ type: isKey ? "key" : "delta", timestamp: rtp, data: payload.subarray(STREAM_HEADER) }));
  }
  /** Native frames of the first remote video, from now on. */
  window.watchNative = () => {
    const video = document.querySelector(".tile video.picture");
    const seen = async (_, { rtpTimestamp, mediaTime }) => {
      video.requestVideoFrameCallback(seen);
      if (rtpTimestamp === undefined) return;
      const frame = new VideoFrame(video);
      // On a busy machine the element may show a later frame by now.
      if (Math.abs(frame.timestamp / 1e6 - mediaTime) > 0.001) {
        window.captured.overtaken++;
        frame.close();
        return;
      }
      const at = performance.now();
      try {
        window.captured.native.push({ rtp: rtpTimestamp, at, ...(await lumaOf(frame)) });
      } finally {
        frame.close();
      }
    };
    video.requestVideoFrameCallback(seen);
  };
}

const numberOf = ({ y, width }, scene) => (y === undefined ? -1 : readNumber(Buffer.from(y, "base64"), width, scene.width));

/**
 * Numbers by timestamp, of the native frames that are as far in number from the one before or after as in time: on a busy
 * machine the element may show a later frame than the one that it told of.
 */
function trusted(frames, scene) {
  const ticks = 90_000 / scene.fps;
  const agree = (a, b) =>
    a !== undefined && b !== undefined && a.number >= 0 && b.number >= 0 &&
    (b.number - a.number + scene.frames) % scene.frames === Math.round(((b.rtp - a.rtp) | 0) / ticks) % scene.frames;
  const kept = frames.filter((f, i) => agree(frames[i - 1], f) || agree(f, frames[i + 1]));
  return new Map(kept.map((f) => [f.rtp, f.number]));
}

/** The native frames next to a timestamp, to tell from what was amiss. */
function around(frames, rtp) {
  const at = frames.findIndex((f) => f.rtp === rtp);
  return frames.slice(Math.max(0, at - 3), at + 4).map((f) => `${f.number} at ${(f.rtp - rtp) | 0} in ${f.at}`).join(", ");
}

/**
 * Takes what was seen since the last call: `met`, anchors whose native frame shows the same number; `missed`, those where
 * it shows another; `unseen`, those whose native frame was not seen or read.
 */
export async function takeCaptured(page, scene) {
  const seen = await page.evaluate(() => {
    const { anchors, native, messages, undecodable, overtaken } = window.captured;
    window.captured.anchors = [];
    window.captured.native = native.slice(-90); // for anchors that are still to come
    return { anchors, native, messages, undecodable, overtaken };
  });
  const numbered = seen.native.map((f) => ({ rtp: f.rtp, number: numberOf(f, scene), at: Math.round(f.at) }));
  const native = trusted(numbered, scene);
  const out = { met: 0, missed: [], unseen: 0, anchors: seen.anchors.length, bytes: [], widths: new Set(), native: seen.native.length };
  for (const anchor of seen.anchors) {
    const shown = native.get(anchor.rtp) ?? -1;
    out.bytes.push(anchor.bytes);
    out.widths.add(anchor.hr);
    const is = numberOf(anchor, scene);
    if (shown < 0 || is < 0) out.unseen++;
    else if (shown === is) out.met++;
    else out.missed.push({ anchor: is, native: shown, rtp: anchor.rtp, around: around(numbered, anchor.rtp) });
  }
  return { ...out, messages: seen.messages, undecodable: seen.undecodable, overtaken: seen.overtaken, widths: [...out.widths] };
}
