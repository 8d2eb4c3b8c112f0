/**
 * The receiving end of one video m-line: the transceiver, the passage of its frames through the relay, and the
 * rebuilder of their copies.
 *
 * It outlives its tracks: when one ends, the m-line becomes inactive and carries the next, so that session descriptions
 * do not grow as participants come and go. The passage is set right after `addTransceiver`; Chromium ignores a later
 * one.
 */
import type { FromWorker, NativeReason, PictureState, ToWorker, WorkerStats } from "../worker/messages.js";
import { SCALES } from "../worker/wasm.js";
import type { Files } from "./assets.js";
import { type PictureSettings, pictureOutput } from "./output.js";
import { Rebuilder } from "./rebuilder.js";
import type { Passage, Relay } from "./relay.js";
import { videoPreferences } from "./video-codecs.js";

const DEPENDENCY_DESCRIPTOR = "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension";

/** Max delay of the native picture to synchronise it with the enhanced one, milliseconds. */
const MAX_NATIVE_DELAY_MS = 200;

/** What a receiver emits to its track. */
export interface ReceiverListener {
  state(state: PictureState, reason: NativeReason | null): void;
  stats(stats: WorkerStats): void;
  /** A key anchor is needed. */
  keyAnchor(): void;
}

/** Pauses before the rebuilder is restarted, milliseconds; none after the last. */
const RESTART_MS = [4000, 30_000];
/** Time after which a failure no longer counts, milliseconds. */
const FORGIVEN_MS = 600_000;

/** Receives one video m-line, and shows its native or rebuilt pictures. */
export class VideoReceiver {
  readonly transceiver: RTCRtpTransceiver;
  /** Whether frames pass through the relay. Without that, nothing can be rebuilt. */
  readonly passes: boolean;
  listener: ReceiverListener | null = null;
  private readonly passage: Passage | null;
  private rebuilder: Rebuilder | null = null;
  private nativeReason: NativeReason = "starting";
  private failures = 0;
  private failedAt = 0;
  private restartTimer: ReturnType<typeof setTimeout> | undefined;
  private enhancedRung = false;
  /** The pictures come in spatial layers. */
  private spatial = false;
  private view: { width: number; height: number } | null = null;

  /**
   * `scale`: HR over LR size where the page sets no view, until {@link setRung} sets another. `maxPixels`: larger LR
   * pictures are not rebuilt, as the server does not enhance them.
   */
  constructor(
    pc: RTCPeerConnection,
    private readonly files: Files,
    private readonly relay: Relay,
    private readonly settings: PictureSettings,
    private scale: number,
    private readonly maxPixels: number,
  ) {
    this.transceiver = pc.addTransceiver("video", { direction: "recvonly" });
    const able =
      typeof RTCRtpScriptTransform !== "undefined" && typeof WebAssembly !== "undefined" && SCALES.includes(scale);
    this.passage = able ? relay.pass(this.transceiver.receiver) : null;
    this.passes = this.passage !== null;
    settings.networks.onChange.add(this.limitNetworks);
    if (this.passes) this.start();
    else this.nativeReason = able ? "worker" : "unsupported";
    this.transceiver.setCodecPreferences(videoPreferences(RTCRtpReceiver.getCapabilities("video")?.codecs ?? []));
    const extensions = this.transceiver.getHeaderExtensionsToNegotiate?.();
    for (const extension of extensions ?? []) {
      // Carries the frame numbers by which the worker detects gaps.
      if (extension.uri === DEPENDENCY_DESCRIPTOR) extension.direction = "sendrecv";
    }
    if (extensions !== undefined) this.transceiver.setHeaderExtensionsToNegotiate?.(extensions);
  }

  /** The native decoder's track. */
  get plain(): MediaStreamTrack {
    return this.transceiver.receiver.track;
  }

  /** The track of rebuilt pictures; null while there is no rebuilder. */
  get enhanced(): MediaStreamTrack | null {
    return this.rebuilder?.track ?? null;
  }

  /** Why the picture is native. */
  get reason(): NativeReason {
    return this.nativeReason;
  }

  /** Carries a track, or (null) becomes inactive. */
  carry(listener: ReceiverListener | null): void {
    this.listener = listener;
    this.view = null;
    this.transceiver.direction = listener === null ? "inactive" : "recvonly";
    this.enhancedRung = false;
    this.spatial = false;
    this.failures = 0;
    if (this.rebuilder === null && this.passes && listener !== null) {
      this.nativeReason = "starting";
      this.start();
    }
    this.post({ type: "restart", enabled: listener !== null });
  }

  /** Sets whether the rung is an enhanced one, the scale of its anchors, and whether the track has spatial layers. */
  setRung(enhanced: boolean, scale: number, spatial: boolean): void {
    this.enhancedRung = enhanced;
    this.spatial = spatial;
    if (SCALES.includes(scale)) this.scale = scale;
    this.postRung();
  }

  /** Sets how large the picture is shown, device pixels. */
  setView(width: number, height: number): void {
    this.view = { width, height };
    this.post({ type: "shown", width, height });
  }

  /** Takes one anchor message; its buffer is transferred. */
  anchor(data: ArrayBuffer): void {
    this.post({ type: "anchor", data }, [data]);
  }

  /** Notes that the native player showed a frame at `at`, milliseconds since the epoch. */
  nativeShown(rtpTimestamp: number, at: number): void {
    this.post({ type: "nativeShown", rtpTimestamp, at });
  }

  /** Notes the colour space of the native player. */
  nativeColour(colour: VideoColorSpaceInit): void {
    this.post({ type: "colour", colour });
  }

  /** Delays the native picture by `moreMs` more, within a bound; null: not at all. */
  delayNative(moreMs: number | null): void {
    const { receiver } = this.transceiver;
    const target = Math.min(MAX_NATIVE_DELAY_MS, Math.max(0, (receiver.jitterBufferTarget ?? 0) + (moreMs ?? 0)));
    receiver.jitterBufferTarget = moreMs === null ? null : target;
  }

  /** The number of frames decoded by the native decoder so far. */
  async nativeFrames(): Promise<number> {
    const stats = await this.transceiver.receiver.getStats();
    let frames = 0;
    for (const entry of stats.values()) {
      if (entry.type === "inbound-rtp") frames = (entry as RTCInboundRtpStreamStats).framesDecoded ?? 0;
    }
    return frames;
  }

  private readonly limitNetworks = (): void => {
    this.post({ type: "maxNetwork", max: this.settings.networks.max });
  };

  /** Ends rebuilding. */
  close(): void {
    this.settings.networks.onChange.delete(this.limitNetworks);
    this.listener = null;
    this.passage?.close();
    this.drop();
  }

  private start(): void {
    clearTimeout(this.restartTimer);
    const { networkBackend } = this.settings;
    const output = pictureOutput(this.settings.output);
    if (output === null) {
      this.nativeReason = "unsupported";
      return;
    }
    const rebuilder = new Rebuilder(
      this.files,
      output,
      {
        sink: output.sink,
        maxPixels: this.maxPixels,
        scale: this.scale,
        maxNetwork: this.settings.networks.max,
        outside: { script: this.files.networks, forced: networkBackend === "auto" ? null : networkBackend },
      },
      this.relay.encryption,
      (message) => this.handle(message),
      (reason) => {
        if (this.rebuilder === rebuilder) this.fail(reason);
      },
    );
    this.rebuilder = rebuilder;
    this.passage?.copyTo(rebuilder);
  }

  /** Falls back to the native picture: for a while, or, after some failures, until the next track. */
  private fail(reason: NativeReason): void {
    this.drop();
    this.nativeReason = reason;
    this.delayNative(null);
    const now = performance.now();
    if (now - this.failedAt > FORGIVEN_MS) this.failures = 0;
    this.failedAt = now;
    const ms = RESTART_MS[this.failures++];
    if (ms !== undefined) {
      this.restartTimer = setTimeout(() => {
        this.start();
        this.post({ type: "restart", enabled: this.listener !== null });
        this.postRung();
        if (this.view !== null) this.post({ type: "shown", ...this.view });
      }, ms);
    }
    this.listener?.state("native", reason);
  }

  private drop(): void {
    clearTimeout(this.restartTimer);
    this.passage?.copyTo(null);
    this.rebuilder?.close();
    this.rebuilder = null;
  }

  private postRung(): void {
    this.post({ type: "rung", enhanced: this.enhancedRung, scale: this.scale, spatial: this.spatial });
  }

  private post(message: ToWorker, transfer: Transferable[] = []): void {
    this.rebuilder?.post(message, transfer);
  }

  private handle(message: Exclude<FromWorker, { type: "frame" }>): void {
    if (message.type === "stats") this.listener?.stats(message.stats);
    else if (message.type === "keyAnchor") this.listener?.keyAnchor();
    else if (message.type === "state")
      this.listener?.state(message.state, message.state === "native" ? message.reason : null);
  }
}
