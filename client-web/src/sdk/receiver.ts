/**
 * The receiving end of one video m-line: transceiver, its frames' way through the relay, and what rebuilds pictures of
 * their copies.
 *
 * It outlives the tracks that it carries: when a track goes, its m-line falls silent and serves the next one, so
 * that session descriptions do not grow with people who come and go. The frames' way is set right after
 * `addTransceiver`; set later, Chromium silently lets the media pass by it.
 */
import type { FromWorker, NativeReason, PictureState, ToWorker, WorkerStats } from "../worker/messages.js";
import { SCALES } from "../worker/wasm.js";
import type { Assets } from "./assets.js";
import { type OutputKind, pictureOutput } from "./output.js";
import { Rebuilder } from "./rebuilder.js";
import type { Passage, Relay } from "./relay.js";

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
  wholeAnchor(): void;
}

/** After an end, the rebuilding is begun anew so much later; after the last one not any more. */
const AGAIN_MS = [4000, 30_000];
/** An end so long ago counts no longer. */
const FORGIVEN_MS = 600_000;

/** See the module's head. */
export class VideoReceiver {
  readonly transceiver: RTCRtpTransceiver;
  /** Whether its frames pass through the relay; where not, nothing can be rebuilt. */
  readonly passes: boolean;
  listener: ReceiverListener | null = null;
  private readonly passage: Passage | null;
  private rebuilder: Rebuilder | null = null;
  private why: NativeReason = "starting";
  private ends = 0;
  private endedAt = 0;
  private again: ReturnType<typeof setTimeout> | undefined;
  private enhancedRung = false;
  private place: { width: number; height: number } | null = null;

  /**
   * `scale`: HR size over LR size where the page does not say how a picture is shown, until {@link rung} tells another; `maxPixels`: LR pictures beyond this, which the
   * server does not enhance, are not rebuilt.
   */
  constructor(
    pc: RTCPeerConnection,
    private readonly assets: Assets,
    relay: Relay,
    private readonly output: OutputKind,
    private scale: number,
    private readonly maxPixels: number,
  ) {
    this.transceiver = pc.addTransceiver("video", { direction: "recvonly" });
    const able =
      typeof RTCRtpScriptTransform !== "undefined" && typeof WebAssembly !== "undefined" && SCALES.includes(scale);
    this.passage = able ? relay.pass(this.transceiver.receiver) : null;
    this.passes = this.passage !== null;
    if (this.passes) this.begin();
    else this.why = able ? "worker" : "unsupported";
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

  /** The rebuilt pictures; null while nothing can make them. */
  get enhanced(): MediaStreamTrack | null {
    return this.rebuilder?.track ?? null;
  }

  /** Why nothing is rebuilt at first. */
  get reason(): NativeReason {
    return this.why;
  }

  /** Begins to carry a track, or (null) falls silent. */
  carry(listener: ReceiverListener | null): void {
    this.listener = listener;
    this.place = null;
    this.transceiver.direction = listener === null ? "inactive" : "recvonly";
    this.enhancedRung = false;
    this.ends = 0;
    if (this.rebuilder === null && this.passes && listener !== null) {
      this.why = "starting";
      this.begin();
    }
    this.post({ type: "restart", enabled: listener !== null });
  }

  /** Tells whether the server gives an enhanced rung, and of which scale. */
  rung(enhanced: boolean, scale: number): void {
    this.enhancedRung = enhanced;
    if (SCALES.includes(scale)) this.scale = scale;
    this.post({ type: "rung", enhanced, scale });
  }

  /** Tells how large it is shown, in pixels of the device. */
  shownIn(width: number, height: number): void {
    this.place = { width, height };
    this.post({ type: "shown", width, height });
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

  /** Ends the rebuilding. */
  close(): void {
    this.listener = null;
    this.passage?.close();
    this.drop();
  }

  private begin(): void {
    clearTimeout(this.again);
    const output = pictureOutput(this.output);
    if (output === null) {
      this.why = "unsupported";
      return;
    }
    const rebuilder = new Rebuilder(
      this.assets,
      output,
      this.scale,
      this.maxPixels,
      (message) => this.hear(message),
      (reason) => {
        if (this.rebuilder === rebuilder) this.end(reason);
      },
    );
    this.rebuilder = rebuilder;
    this.passage?.copyTo(rebuilder);
  }

  /** The native picture goes on alone: for a while, or, after a few ends, until another track is carried. */
  private end(reason: NativeReason): void {
    this.drop();
    this.why = reason;
    this.delayNative(null);
    const now = performance.now();
    if (now - this.endedAt > FORGIVEN_MS) this.ends = 0;
    this.endedAt = now;
    const ms = AGAIN_MS[this.ends++];
    if (ms !== undefined) {
      this.again = setTimeout(() => {
        this.begin();
        this.post({ type: "restart", enabled: this.listener !== null });
        this.post({ type: "rung", enhanced: this.enhancedRung, scale: this.scale });
        if (this.place !== null) this.post({ type: "shown", ...this.place });
      }, ms);
    }
    this.listener?.state("native", reason);
  }

  private drop(): void {
    clearTimeout(this.again);
    this.passage?.copyTo(null);
    this.rebuilder?.close();
    this.rebuilder = null;
  }

  private post(message: ToWorker, transfer: Transferable[] = []): void {
    this.rebuilder?.post(message, transfer);
  }

  private hear(message: Exclude<FromWorker, { type: "frame" }>): void {
    if (message.type === "stats") this.listener?.stats(message.stats);
    else if (message.type === "wholeAnchor") this.listener?.wholeAnchor();
    else if (message.type === "state")
      this.listener?.state(message.state, message.state === "native" ? message.reason : null);
  }
}
