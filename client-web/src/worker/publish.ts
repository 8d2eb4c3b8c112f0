/**
 * The worker of one published camera whose owner agreed to full-size stills: hears from the relay with which timestamps
 * the low layers' frames are sent, and cuts the regions that the server asks for.
 */
import type { FromPublisher, SentFrame, ToPublisher, ToRelayByPort } from "./messages.js";
import { RegionCutter } from "./regions/cutter.js";

declare const self: DedicatedWorkerGlobalScope;

const now = (): number => performance.timeOrigin + performance.now();

const tell = (message: FromPublisher, transfer: Transferable[] = []): void => self.postMessage(message, transfer);

const cutter = new RegionCutter(now, (id, outcome, messages) => {
  tell({ type: "region", id, outcome, messages }, messages);
});

/** Takes a message of the window. */
export function hearPublisher(message: ToPublisher): void {
  switch (message.type) {
    case "camera":
      cutter.reset();
      break;
    case "frame":
      tell({ type: "taken" });
      cutter.camera(message.frame, message.at);
      break;
    case "regions":
      cutter.request(message.task);
      break;
  }
}

/** Notes the timestamps of the frames that the low layers are sent with. */
export function followSent(port: MessagePort): void {
  port.onmessage = ({ data: { ssrc, rtpTimestamp, width, height } }: MessageEvent<SentFrame>) => {
    port.postMessage("taken" satisfies ToRelayByPort);
    if (ssrc !== undefined && rtpTimestamp !== undefined) cutter.sent(ssrc, rtpTimestamp, width, height);
  };
}
