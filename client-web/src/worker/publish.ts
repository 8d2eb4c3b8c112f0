/**
 * The worker of one published camera with stills. The relay sends it the RTP timestamps of all sent frames, and the
 * data of the layer that stills refine. It makes the stills that the server asks for.
 */
import type { BaseKeys } from "./base-keys.js";
import type { FromPublisher, SentFrame, ToPublisher, ToRelayByPort } from "./messages.js";
import { RegionCutter } from "./regions/cutter.js";
import { StillMaker } from "./regions/still-maker.js";

declare const self: DedicatedWorkerGlobalScope;

const now = (): number => performance.timeOrigin + performance.now();

const post = (message: FromPublisher, transfer: Transferable[] = []): void => self.postMessage(message, transfer);

/** The port from the relay. */
let sent: MessagePort | null = null;

let keys: BaseKeys | null = null;

const cutter = new RegionCutter({
  now,
  encrypt: async (payload, metadata) => (await keys?.encrypt(payload, metadata)) ?? null,
  answer: (id, outcome, messages) => post({ type: "region", id, outcome, messages }, messages),
  follow: (ssrc) => sent?.postMessage({ follow: ssrc } satisfies ToRelayByPort),
  requestKeyFrame: (width) => post({ type: "keyFrame", width }),
});

/** Handles a message of the window. */
export function handlePublisher(message: ToPublisher): void {
  switch (message.type) {
    case "module":
      cutter.start(() => new StillMaker(message.module));
      break;
    case "camera":
      cutter.reset();
      break;
    case "frame":
      post({ type: "taken" });
      cutter.camera(message.frame, message.at);
      break;
    case "regions":
      cutter.request(message.task);
      break;
  }
}

/** Encrypts stills by these keys, where they are to be encrypted. */
export function encryptStills(by: BaseKeys): void {
  keys = by;
}

/** Takes the copies of sent frames from a port. */
export function takeSent(port: MessagePort): void {
  sent?.close();
  sent = port;
  port.onmessage = ({ data: frame }: MessageEvent<SentFrame>) => {
    port.postMessage("taken" satisfies ToRelayByPort);
    const { ssrc, rtpTimestamp: rtp } = frame;
    if (ssrc !== undefined && rtp !== undefined) cutter.sent({ ...frame, ssrc, rtp });
  };
  cutter.portChanged();
}
