/**
 * The worker of one published camera whose owner agreed to full-size stills: passes the low layers' encoded frames
 * on at once, noting their timestamps, and cuts the regions that the server asks for.
 */
import type { FromPublisher, ToPublisher } from "./messages.js";
import { RegionCutter } from "./regions/cutter.js";

declare const self: DedicatedWorkerGlobalScope;

const now = (): number => performance.timeOrigin + performance.now();

const cutter = new RegionCutter(now, (id, outcome, messages) => {
  const told: FromPublisher = { type: "region", id, outcome, messages };
  self.postMessage(told, messages);
});

/** Takes a message of the window. */
export function hearPublisher(message: ToPublisher): void {
  switch (message.type) {
    case "camera":
      cutter.reset();
      break;
    case "frame":
      cutter.camera(message.frame, message.at);
      break;
    case "regions":
      cutter.request(message.task);
      break;
  }
}

/** Passes the frames of a sender on. What goes wrong here must not stop them. */
export async function relaySent({ readable, writable }: RTCRtpScriptTransformer): Promise<void> {
  const frames = readable.getReader() as ReadableStreamDefaultReader<RTCEncodedVideoFrame>;
  const writer = writable.getWriter();
  for (;;) {
    const { value: frame, done } = await frames.read();
    if (done) return;
    const { rtpTimestamp, synchronizationSource, width, height } = frame.getMetadata();
    writer.write(frame).catch(() => undefined);
    if (rtpTimestamp === undefined || synchronizationSource === undefined) continue;
    try {
      cutter.sent(synchronizationSource, rtpTimestamp, width ?? 0, height ?? 0);
    } catch (error) {
      reportError(error);
    }
  }
}
