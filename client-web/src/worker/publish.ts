/**
 * The worker of one published camera whose owner agreed to full-size stills: hears from the relay with which timestamps
 * the low layers' frames are sent, follows the one that stills are to be made for, and makes those that the server asks for.
 */
import type { FromPublisher, SentFrame, ToPublisher, ToRelayByPort } from "./messages.js";
import { RegionCutter } from "./regions/cutter.js";
import { StillMaker } from "./regions/still-maker.js";

declare const self: DedicatedWorkerGlobalScope;

const now = (): number => performance.timeOrigin + performance.now();

const tell = (message: FromPublisher, transfer: Transferable[] = []): void => self.postMessage(message, transfer);

/** Where what was sent is told. */
let sent: MessagePort | null = null;

const cutter = new RegionCutter({
  now,
  answer: (id, outcome, messages) => tell({ type: "region", id, outcome, messages }, messages),
  follow: (ssrc) => sent?.postMessage({ follow: ssrc } satisfies ToRelayByPort),
  wantKeyFrame: (width) => tell({ type: "keyFrame", width }),
});

/** Takes a message of the window. */
export function hearPublisher(message: ToPublisher): void {
  switch (message.type) {
    case "module":
      cutter.start(() => new StillMaker(message.module));
      break;
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
  sent?.close();
  sent = port;
  port.onmessage = ({ data: frame }: MessageEvent<SentFrame>) => {
    port.postMessage("taken" satisfies ToRelayByPort);
    const { ssrc, rtpTimestamp: rtp } = frame;
    if (ssrc !== undefined && rtp !== undefined) cutter.sent({ ...frame, ssrc, rtp });
  };
  cutter.relayed();
}
