/**
 * The receiving end of one video m-line: transceiver, encoded transform, worker and picture output.
 *
 * It outlives the tracks that it carries: when a track goes, its m-line falls silent and serves the next one, so
 * that session descriptions do not grow with people who come and go. The transform is set right after
 * `addTransceiver`; set later, Chromium silently lets the media pass by it.
 */
import type {
  AnchorSource,
  FromWorker,
  NativeReason,
  PictureState,
  ToWorker,
  WorkerStats,
} from "../worker/messages.js";
import { SCALES } from "../worker/wasm.js";
import { type Assets, compileDecoder, workerAddress } from "./assets.js";
import { type OutputKind, pictureOutput } from "./output.js";

const DEPENDENCY_DESCRIPTOR = "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension";

/** The native picture is never held back by more than this to keep step with the enhanced one. */
const MAX_WAIT_MS = 200;

/** VP9 profile 0, which is also the one of an unnamed profile (RFC 9628 §6), with retransmission; empty where the browser lacks it. */
export function vp9Preferences(codecs: readonly RTCRtpCodec[]): RTCRtpCodec[] {
  const isVp9 = (c: RTCRtpCodec) =>
    c.mimeType.toLowerCase() === "video/vp9" && (/profile-id=(\d+)/.exec(c.sdpFmtpLine ?? "")?.[1] ?? "0") === "0";
  const vp9 = codecs.filter(isVp9);
  return vp9.length === 0 ? [] : [...vp9, ...codecs.filter((c) => c.mimeType.toLowerCase() === "video/rtx")];
}

/** What a receiver tells the track that it carries. */
export interface ReceiverListener {
  state(state: PictureState, reason: NativeReason | null): void;
  stats(stats: WorkerStats): void;
  /** An anchor that rests on no other is needed. */
  wholeAnchor(source: AnchorSource): void;
}

/** See the module's head. */
export class VideoReceiver {
  readonly transceiver: RTCRtpTransceiver;
  /** The rebuilt pictures; null where the browser cannot make them. */
  readonly enhanced: MediaStreamTrack | null;
  listener: ReceiverListener | null = null;
  private readonly worker: Worker | null;
  /** The decoder could not be loaded. */
  private undecodable = false;

  /**
   * `scale`: HR size over LR size of enhanced rungs, until {@link rung} tells another; `maxPixels`: LR pictures beyond this, which the
   * server does not enhance, are not rebuilt.
   */
  constructor(pc: RTCPeerConnection, assets: Assets, output: OutputKind, scale: number, maxPixels: number) {
    this.transceiver = pc.addTransceiver("video", { direction: "recvonly" });
    const { receiver } = this.transceiver;
    const able = typeof RTCRtpScriptTransform !== "undefined" && SCALES.includes(scale);
    const picture = able ? pictureOutput(output) : null;
    this.enhanced = picture?.track ?? null;
    this.worker = picture === null ? null : new Worker(workerAddress(assets.worker), { type: "module" });
    if (this.worker !== null && picture !== null) {
      receiver.transform = new RTCRtpScriptTransform(this.worker);
      this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
        if (data.type === "frame") picture.draw(data.frame);
        else this.hear(data);
      };
      this.post({ type: "init", sink: picture.sink, maxPixels, scale }, picture.transfer);
      compileDecoder(assets.wasm).then(
        (module) => this.post({ type: "module", module }),
        () => {
          this.undecodable = true;
          this.listener?.state("native", "unsupported");
        },
      );
    }
    this.transceiver.setCodecPreferences(vp9Preferences(RTCRtpReceiver.getCapabilities("video")?.codecs ?? []));
    const extensions = this.transceiver.getHeaderExtensionsToNegotiate?.();
    for (const extension of extensions ?? []) {
      // Carries the frame numbers by which the worker notices gaps.
      if (extension.uri === DEPENDENCY_DESCRIPTOR) extension.direction = "sendrecv";
    }
    if (extensions !== undefined) this.transceiver.setHeaderExtensionsToNegotiate?.(extensions);
  }

  /** The native decoder's picture. */
  get plain(): MediaStreamTrack {
    return this.transceiver.receiver.track;
  }

  /** Begins to carry a track, or (null) falls silent. */
  carry(listener: ReceiverListener | null): void {
    this.listener = listener;
    this.transceiver.direction = listener === null ? "inactive" : "recvonly";
    this.post({ type: "restart", enabled: listener !== null });
    if (this.undecodable) listener?.state("native", "unsupported");
  }

  /** Tells whether the server gives an enhanced rung, and of which scale. */
  rung(enhanced: boolean, scale: number): void {
    this.post({ type: "rung", enhanced, scale });
  }

  /** Takes one anchor message; its buffer is handed on. */
  anchor(data: ArrayBuffer): void {
    this.post({ type: "anchor", data }, [data]);
  }

  /** Tells the playout clock what the native player shows. */
  nativeShown(rtpTimestamp: number, at: number): void {
    this.post({ type: "nativeShown", rtpTimestamp, at });
  }

  /** Tells which colours the native player's pictures have. */
  nativeColour(colour: VideoColorSpaceInit): void {
    this.post({ type: "colour", colour });
  }

  /** Lets the native picture wait `moreMs` longer than it does, within a bound; null: no longer than it must. */
  delayNative(moreMs: number | null): void {
    const { receiver } = this.transceiver;
    const target = Math.min(MAX_WAIT_MS, Math.max(0, (receiver.jitterBufferTarget ?? 0) + (moreMs ?? 0)));
    receiver.jitterBufferTarget = moreMs === null ? null : target;
  }

  /** Frames that the native decoder has decoded so far. */
  async nativeFrames(): Promise<number> {
    const stats = await this.transceiver.receiver.getStats();
    let frames = 0;
    for (const entry of stats.values()) {
      if (entry.type === "inbound-rtp") frames = (entry as RTCInboundRtpStreamStats).framesDecoded ?? 0;
    }
    return frames;
  }

  /** Ends the worker. */
  close(): void {
    this.listener = null;
    this.worker?.terminate();
    this.enhanced?.stop();
  }

  private post(message: ToWorker, transfer: Transferable[] = []): void {
    this.worker?.postMessage(message, transfer);
  }

  private hear(message: FromWorker): void {
    if (message.type === "stats") this.listener?.stats(message.stats);
    else if (message.type === "wholeAnchor") this.listener?.wholeAnchor(message.source);
    else if (message.type === "state")
      this.listener?.state(message.state, message.state === "native" ? message.reason : null);
  }
}
