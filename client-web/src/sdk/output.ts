/**
 * Makes a `MediaStreamTrack` of the worker's pictures: a track generator to which the worker writes. Where the browser
 * lacks that, the worker posts pictures to the window, which writes them to a generator or draws them on a canvas.
 */
import type { PictureSink } from "../worker/messages.js";
import type { NetworkLimit } from "./network-limit.js";

/** A track that is fed with pictures. */
export interface PictureOutput {
  readonly track: MediaStreamTrack;
  /** Goes to the worker, with `transfer`. */
  readonly sink: PictureSink;
  readonly transfer: Transferable[];
  /** Shows a picture that the worker posted, and closes it. */
  draw(frame: VideoFrame): void;
}

/**
 * How pictures leave the worker: in a transferred `stream`, or posted to a generator (`post`) or a `canvas`. `auto`
 * takes the first that works.
 */
export type OutputKind = "auto" | "stream" | "post" | "canvas";

export const OUTPUT_KINDS: readonly OutputKind[] = ["auto", "stream", "post", "canvas"];

/**
 * What runs networks: `auto`, the decoder, the GPU or workers, by the time that they take; `webgpu`, the GPU whatever
 * time it takes, also a CPU that plays one; `workers`, workers of the track whatever time they take.
 */
export type NetworkBackend = "auto" | "webgpu" | "workers";

export const NETWORK_BACKENDS: readonly NetworkBackend[] = ["auto", "webgpu", "workers"];

/** How a room's pictures are rebuilt, and leave the worker. */
export interface PictureSettings {
  readonly output: OutputKind;
  readonly networks: NetworkLimit;
  readonly networkBackend: NetworkBackend;
}

/** Makes an output; null where the browser supports none. */
export function pictureOutput(kind: OutputKind): PictureOutput | null {
  if (typeof VideoFrame === "undefined") return null;
  if (typeof MediaStreamTrackGenerator === "undefined" || kind === "canvas") return canvasOutput();
  const generator = new MediaStreamTrackGenerator({ kind: "video" });
  if (kind !== "post" && canTransferStreams()) {
    const sink: PictureSink = { kind: "stream", writable: generator.writable };
    return { track: generator, sink, transfer: [generator.writable], draw: (frame) => frame.close() };
  }
  const writer = generator.writable.getWriter();
  return {
    track: generator,
    sink: { kind: "post" },
    transfer: [],
    draw: (frame) => void writer.write(frame).catch(() => frame.close()),
  };
}

function canTransferStreams(): boolean {
  try {
    const { writable } = new TransformStream();
    structuredClone(writable, { transfer: [writable] });
    return true;
  } catch {
    return false;
  }
}

/** Maximum rate of a canvas's track, per second. Without one WebKit 2.50 gives the first two pictures alone. */
const MAX_RATE = 60;

function canvasOutput(): PictureOutput | null {
  const canvas: HTMLCanvasElement & { captureStream?: (rate: number) => MediaStream } =
    document.createElement("canvas");
  if (canvas.captureStream === undefined) return null;
  const context = canvas.getContext("2d", { alpha: false });
  const [track] = canvas.captureStream(MAX_RATE).getVideoTracks();
  if (context === null || track === undefined) return null;
  return {
    track,
    sink: { kind: "post" },
    transfer: [],
    draw: (frame) => {
      if (canvas.width !== frame.displayWidth || canvas.height !== frame.displayHeight) {
        canvas.width = frame.displayWidth;
        canvas.height = frame.displayHeight;
      }
      context.drawImage(frame, 0, 0);
      frame.close();
    },
  };
}
