/**
 * The pipeline of one track: encoded frames and anchor messages in, rebuilt pictures out at their time.
 *
 * Pictures are rebuilt on every rung, at the size at which they are shown, with or without anchors. Where the LR
 * picture fills its place, nothing is decoded. The native decoder gets its frames before their copies come here, so a
 * failure (trap, invalid frame, gap, slow machine) only makes the page show the native picture.
 *
 * `clock` gives the time, milliseconds since the epoch. The worker drives `pump` and `show`.
 */
import { AnchorCounts } from "./anchor-counts.js";
import { ArrivalLog, parseAnchorHeader } from "./anchors.js";
import { KeyAnchors } from "./key-anchors.js";
import { LoadGuard } from "./load.js";
import type { FromWorker, NativeReason, OtherFrame, PictureState, WorkerStats } from "./messages.js";
import type { Plane } from "./network/backend.js";
import type { OutsideNetworks } from "./network/outside-networks.js";
import type { NetworkTier } from "./network-choice.js";
import {
  type DecodedPicture,
  MAX_PENDING,
  type OtherCodec,
  PictureDecoder,
  type PictureHost,
} from "./picture-decoder.js";
import { PlayoutClock, PlayoutQueue, RtpTimeline } from "./playout.js";
import { type EncodedFrame, ReorderBuffer } from "./reorder.js";
import { type Size, scaleFor } from "./scale.js";
import { TrackNetworks } from "./track-networks.js";
import { parseVp9Header, type Vp9Header } from "./vp9.js";
import {
  type AnchorOutcome,
  type Decay,
  DecodeFailure,
  type Effort,
  type FrameOutcome,
  HybridDecoder,
  type PictureView,
  SCALES,
} from "./wasm.js";
import { RateWindow, SampleWindow } from "./windows.js";

/** What the pipeline needs of its worker. */
export interface TrackHost {
  /** Milliseconds since the epoch. */
  clock(): number;
  /** Shows a picture, and closes it. */
  show(picture: VideoFrame): void;
  /** Posts a message to the window. */
  post(message: FromWorker): void;
  /** Requests a key frame of the sender. */
  requestKeyFrame(): void;
  /** Runs {@link TrackPipeline.show} soon: a picture has come. */
  wake(): void;
}

/** The part of {@link HybridDecoder} that is used. */
export interface TrackDecoder {
  rescale(scale: number): void;
  setEffort(effort: Effort): void;
  setNetwork(network: NetworkTier): void;
  pushFrame(rtpTimestamp: number, data: Uint8Array): FrameOutcome;
  pushPicture(rtpTimestamp: number, picture: DecodedPicture): FrameOutcome;
  pushMessage(data: Uint8Array): AnchorOutcome;
  refresh(): boolean;
  decay(): Decay;
  hr(): PictureView | null;
  low(): Plane | null;
  kept(): Uint8Array | null;
  reset(): void;
}

/** The part of {@link PictureDecoder} that is used. */
export type Pictures = Pick<PictureDecoder, "decode" | "reset" | "pending">;

/** An encoded frame, from the relay. */
export interface IncomingFrame {
  rtpTimestamp: number;
  frameId: number | undefined;
  data: Uint8Array;
  /** Null: it is of VP9. */
  other: OtherFrame | null;
}

/** Min time between two requests for key frames, milliseconds. */
const KEY_REQUEST_MS = 1000;
/**
 * Detail of an anchor appears with the next frame. After this time without one, the last picture is rebuilt,
 * milliseconds.
 */
const REFRESH_MS = 50;
/** Time without a decodable frame after which the native picture is shown, milliseconds. */
const STARVED_MS = 300;

/** A picture in the playout queue. */
interface QueuedPicture {
  picture: VideoFrame;
  /** It has detail of anchors. */
  detail: boolean;
}

/** Turns the encoded frames and anchors of one track into rebuilt pictures, each shown at its time. */
export class TrackPipeline {
  private module: WebAssembly.Module | null = null;
  private decoder: TrackDecoder | null = null;
  private enabled = true;
  /** HR over LR size of the anchors; null: the server sends a plain rung. */
  private anchorScale: number | null = null;
  /** Size at which the picture is shown, device pixels; null: the page has not set it. */
  private place: Size | null = null;
  /** HR over LR size of the pictures to rebuild; null: none, as the LR picture fills its place. */
  private scale: number | null;
  private tooLarge = false;
  private colour: VideoColorSpaceInit = {};
  /** Colour space of the native player; takes precedence over that of the bit stream. */
  private nativeColourSpace: VideoColorSpaceInit | null = null;

  /** The decoder of frames that are not of VP9. */
  private readonly pictures: Pictures;
  /** The codec of these frames, and one that this browser does not decode. */
  private decoding: OtherCodec | null = null;
  private undecodable: OtherCodec | null = null;
  /** The pictures come in spatial layers. */
  private spatial = false;
  /** The last key frame did not say its size. */
  private sizeless = false;
  private readonly reorder = new ReorderBuffer();
  private readonly guard = new LoadGuard();
  private readonly networks: TrackNetworks;
  private readonly anchors = new AnchorCounts();
  private readonly keyAnchors = new KeyAnchors(() => this.host.post({ type: "keyAnchor" }));
  private readonly arrivals = new ArrivalLog();
  private readonly timeline = new RtpTimeline();
  private readonly playout = new PlayoutClock();
  private readonly queue = new PlayoutQueue<QueuedPicture>(this.playout, (w) => w.picture.close());

  /** When the picture is rebuilt if no frame comes; null: never. */
  private refreshAt: number | null = null;
  private current: { rtpTimestamp: number; mediaMs: number } | null = null;
  private lastKeyRequest = Number.NEGATIVE_INFINITY;
  private starvedSince: number | null = null;
  private state: Exclude<PictureState, "native"> | NativeReason = "starting";

  private readonly rates = {
    received: new RateWindow(),
    videoBits: new RateWindow(),
    output: new RateWindow(),
    enhanced: new RateWindow(),
  };
  private readonly decodeTimes = new SampleWindow(90, 5000);
  /** Work since the last frame that is not decoding: anchors, and pictures that come from networks outside of it. */
  private sideWorkMs = 0;
  private faults = 0;
  private lr: Size | null = null;
  private hr: Size | null = null;

  constructor(
    private readonly host: TrackHost,
    private readonly maxPixels: number,
    /** HR over LR size where the page has set no size. */
    private readonly defaultScale: number,
    maxNetwork: NetworkTier,
    /** Networks outside of the decoder. */
    private readonly outside: OutsideNetworks,
    private readonly make: (module: WebAssembly.Module, scale: number) => TrackDecoder = (module, scale) =>
      new HybridDecoder(module, scale),
    makePictures: (host: PictureHost) => Pictures = (host) => new PictureDecoder(host, maxPixels),
  ) {
    this.pictures = makePictures({
      decoded: (rtpTimestamp, picture) => this.decoded(rtpTimestamp, picture),
      tooLarge: (size) => this.sized(size),
      failed: (unsupported) => this.undecoded(unsupported),
    });
    this.scale = defaultScale;
    this.networks = new TrackNetworks(maxNetwork, outside);
  }

  /** Takes the compiled decoder. */
  start(module: WebAssembly.Module): void {
    this.module = module;
  }

  /** Begins another track, or (false) none. */
  restart(enabled: boolean): void {
    this.enabled = enabled;
    this.anchorScale = null;
    this.place = null;
    this.tooLarge = false;
    this.undecodable = null;
    this.spatial = false;
    this.faults = 0;
    this.anchors.reset();
    this.resetDecoder();
    // Its filters have learned from the former track's stills.
    this.decoder = null;
    this.outside.stop();
    this.playout.reset();
    this.nativeColourSpace = null;
    this.lr = null;
    this.hr = null;
    this.updateScale();
    this.setState("starting");
  }

  /**
   * Sets whether the server sends an enhanced rung; `scale`: HR over LR size of its anchors; `spatial`: the pictures
   * come in spatial layers, which the browser's own decoder alone puts together.
   */
  setRung(enhanced: boolean, scale: number, spatial = false): void {
    if (spatial !== this.spatial) {
      this.spatial = spatial;
      this.rest(spatial ? "codec" : this.scale === null ? "fills" : "starting");
      // Nothing was decoded before.
      if (!spatial && this.scale !== null && !this.tooLarge) this.requestKeyFrame(this.host.clock());
    }
    if (!enhanced) this.anchorScale = null;
    else if (SCALES.includes(scale)) this.anchorScale = scale;
    this.updateScale();
  }

  /** Sets the largest network that may run on every frame. */
  limitNetworks(max: NetworkTier): void {
    this.networks.limit(max);
    this.reportNetwork();
  }

  /** Sets the size at which the picture is shown, device pixels. */
  setPlace(place: Size): void {
    // A hidden picture keeps its size until it is shown again.
    if (place.width === 0 || place.height === 0) return;
    this.place = place;
    this.updateScale();
  }

  /** Takes a copy of an encoded frame, in order of arrival. */
  frame(incoming: IncomingFrame): void {
    const now = this.host.clock();
    this.rates.received.add(now);
    this.rates.videoBits.add(now, incoming.data.length * 8);
    this.arrivals.note(incoming.rtpTimestamp, now);
    const { other } = incoming;
    const header = other === null ? parseVp9Header(incoming.data) : headerOf(other);
    if (!this.enabled) return;
    if (this.spatial || (other !== null && other.codec === this.undecodable)) {
      this.setState("codec");
      return;
    }
    if (header === null) {
      // One that cannot be read among others is a loss; where none can be read, the codec is another.
      if (this.state === "starting") this.setState("codec");
      return;
    }
    if (header.size !== undefined) {
      this.tooLarge = header.size.width * header.size.height > this.maxPixels;
      this.lr = header.size;
      this.updateScale();
    }
    if (header.key) this.sizeless = header.size === undefined;
    if (other?.key && header.size === undefined && (this.tooLarge || this.scale === null)) {
      // Its size is seen in its picture alone.
      this.decoding = other.codec;
      this.pictures.decode(other.codec, { ...incoming, key: true });
      return;
    }
    if (this.tooLarge) {
      if (this.state !== "too-large") this.rest("too-large");
      return;
    }
    if (this.scale === null || this.guard.paused(now)) return;
    this.reorder.push({ ...incoming, codec: other?.codec ?? null, key: header.key, arrival: now });
  }

  /** Notes that frames before the next one are missing. */
  framesMissing(): void {
    this.resetDecoder();
    if (this.showsRebuilt()) this.setState("gap");
    this.requestKeyFrame(this.host.clock());
  }

  /** Takes an anchor message. */
  message(data: ArrayBuffer): void {
    const now = this.host.clock();
    const header = parseAnchorHeader(data);
    this.anchors.received(now, data.byteLength);
    if (header === null) this.anchors.unusable();
    if (header === null || this.decoder === null || !this.working(now)) return;
    const outcome = this.guarded((decoder) => decoder.pushMessage(new Uint8Array(data)));
    const done = this.host.clock();
    this.sideWorkMs += done - now;
    if (outcome === undefined) return;
    this.anchors.taken(outcome, header.source);
    if (outcome === "early") this.keyAnchors.wait(header.rtpTimestamp, !header.tiled);
    if (outcome !== "applied" && outcome !== "applied-late") return;
    if (this.current !== null) this.refreshAt = done + REFRESH_MS;
    this.anchorApplied(header.rtpTimestamp, !header.tiled, done);
    this.anchors.tookMs(done, done - now);
  }

  /** Notes an anchor that nobody here can read. */
  anchorUnreadable(): void {
    this.anchors.unusable();
  }

  /** Notes that the native player showed a frame at `at`. */
  nativeShown(rtpTimestamp: number, at: number): void {
    this.playout.nativeShown(this.timeline.toMs(rtpTimestamp), at);
  }

  /** Sets the colour space of the native player. */
  nativeColour(colour: VideoColorSpaceInit): void {
    this.nativeColourSpace = colour;
  }

  /** Decodes one frame, if one can be; returns whether another may follow at once. */
  pump(): boolean {
    const now = this.host.clock();
    if (!this.working(now)) return false;
    // The next frame waits for the browser's decoder; a picture wakes this.
    if (this.pictures.pending >= MAX_PENDING) return false;
    const frame = this.reorder.pop(now);
    if (frame === null) {
      if (this.refreshAt !== null && now >= this.refreshAt) this.refreshPicture();
      this.checkStarvation(now);
      return false;
    }
    this.starvedSince = null;
    this.decode(frame);
    return true;
  }

  /** Shows the picture that is due, if one is. */
  show(): void {
    const now = this.host.clock();
    const due = this.queue.take(now);
    if (due === null) return;
    this.rates.output.add(now);
    if (due.detail) this.rates.enhanced.add(now);
    this.setState(due.detail ? "enhanced" : "rebuilt");
    this.host.show(due.picture);
  }

  /** Time until {@link show} or {@link pump} must run again; null: not before the next frame. */
  waitMs(): number | null {
    const now = this.host.clock();
    const gap = this.working(now) ? this.reorder.deadline() : null;
    const refresh = this.working(now) ? this.refreshAt : null;
    const until = (at: number | null): number | null => (at === null ? null : Math.max(0, at - now));
    const waits = [this.queue.waitMs(now), until(gap), until(refresh)].filter((w) => w !== null);
    return waits.length === 0 ? null : Math.min(...waits);
  }

  /** Statistics of the last second. */
  stats(): WorkerStats {
    const now = this.host.clock();
    const { lost, late, skipped } = this.reorder.counters;
    return {
      outputFps: this.rates.output.perSecond(now),
      enhancedFps: this.rates.enhanced.perSecond(now),
      receivedFps: this.rates.received.perSecond(now),
      videoKbps: this.rates.videoBits.perSecond(now) / 1000,
      decodeMs: this.decodeTimes.mean(now),
      reconstructMs: null,
      playoutDelayMs: this.playout.delayMs,
      lagMs: this.playout.lagMs,
      framesLost: lost + late + skipped,
      picturesDropped: this.queue.dropped,
      pauses: this.guard.pauses,
      ...this.anchors.stats(now),
      ...this.networks.stats(now, this.showsRebuilt(), () => this.hindrance(now)),
      faults: this.faults,
      lr: this.lr,
      hr: this.hr,
    };
  }

  /** Why no pictures are rebuilt, for the statistics of networks; null: they are. */
  private hindrance(now: number): "size" | "slow" | null {
    if (this.scale === null) return "size";
    return this.guard.paused(now) ? "slow" : null;
  }

  /** Has a network that begins or ends reported at once: the server begins with anchors for one that ends. */
  private reportNetwork(): void {
    if (this.networks.changed(this.showsRebuilt())) this.host.post({ type: "stats", stats: this.stats() });
  }

  private working(now: number): boolean {
    return this.module !== null && this.enabled && this.scale !== null && !this.guard.paused(now);
  }

  /** Sets the scale by the size at which the picture is shown, the anchors, and the speed of this machine. */
  private updateScale(): void {
    const { lr, place, anchorScale } = this;
    const needed = lr === null || place === null ? (anchorScale ?? this.defaultScale) : scaleFor(lr, place, SCALES);
    const scale = needed === null ? null : Math.min(needed, anchorScale ?? needed, this.guard.maxScale);
    if (scale === this.scale) return;
    const before = this.scale;
    this.scale = scale;
    if (scale === null) {
      this.rest("fills");
      return;
    }
    // The detail of former anchors is gone.
    this.keyAnchors.expire();
    this.refreshAt = null;
    this.guarded((decoder) => decoder.rescale(scale));
    if (before === null) {
      // Nothing was decoded before.
      this.setState("starting");
      this.requestKeyFrame(this.host.clock());
    }
  }

  private decode(frame: EncodedFrame): void {
    if (frame.key) {
      // A decoder that is new, or replaces a failed one, begins at a key frame.
      const header = frame.codec === null ? parseVp9Header(frame.data) : null;
      if (header?.colour !== undefined) this.colour = colourSpace(header.colour);
      if (this.decoder === null && this.module !== null) this.decoder = this.create(this.module);
    }
    const { rtpTimestamp, codec, data } = frame;
    if (codec !== null) {
      this.decoding = codec;
      this.pictures.decode(codec, frame);
      return;
    }
    if (this.decoding !== null) {
      this.decoding = null;
      this.pictures.reset();
    }
    this.rebuild(rtpTimestamp, (decoder) => decoder.pushFrame(rtpTimestamp, data));
  }

  /** Takes the size of a picture that the browser has decoded. */
  private sized(size: Size): void {
    const { lr, tooLarge } = this;
    if (size.width === lr?.width && size.height === lr.height) return;
    this.lr = size;
    this.tooLarge = size.width * size.height > this.maxPixels;
    if (this.tooLarge) {
      this.rest("too-large");
      return;
    }
    this.updateScale();
    // Its frames were not kept.
    if (tooLarge) this.requestKeyFrame(this.host.clock());
  }

  /** Takes the picture of a frame that the browser has decoded. */
  private decoded(rtpTimestamp: number, picture: DecodedPicture): void {
    const { tooLarge } = this;
    if (this.sizeless) this.sized({ width: picture.width, height: picture.height });
    if (tooLarge || this.tooLarge || !this.working(this.host.clock())) return;
    if (picture.colour !== null) this.colour = picture.colour;
    this.rebuild(rtpTimestamp, (decoder) => decoder.pushPicture(rtpTimestamp, picture));
    this.host.wake();
  }

  /** The browser could not decode a frame. */
  private undecoded(unsupported: boolean): void {
    if (unsupported) {
      this.undecodable = this.decoding;
      this.rest("codec");
      return;
    }
    this.faults++;
    this.resetDecoder();
    this.setState("fault");
    this.requestKeyFrame(this.host.clock());
  }

  /** Rebuilds the picture of a frame, which `push` gives to the decoder. */
  private rebuild(rtpTimestamp: number, push: (decoder: TrackDecoder) => FrameOutcome): void {
    this.refreshAt = null;
    const { effort } = this.guard;
    const size = `${this.lr?.width}x${this.lr?.height}`;
    this.networks.begin(size, this.scale ?? this.defaultScale);
    const before = this.host.clock();
    const { own } = this.networks;
    const outcome = this.guarded((decoder) => {
      decoder.setEffort(effort);
      decoder.setNetwork(own);
      return push(decoder);
    });
    if (outcome === undefined) return;
    const now = this.host.clock();
    this.decodeTimes.add(now, now - before);
    const early = this.keyAnchors.take(rtpTimestamp);
    if (early !== undefined) this.anchorApplied(rtpTimestamp, early, now);
    const mediaMs = this.timeline.toMs(rtpTimestamp);
    const interval = this.current === null ? 0 : Math.min(1000, Math.max(0, mediaMs - this.current.mediaMs));
    this.current = { rtpTimestamp, mediaMs };
    if (outcome.shown) this.makePicture(outcome.detail);
    const busyMs = this.host.clock() - before + this.sideWorkMs;
    this.sideWorkMs = 0;
    this.weigh(now, busyMs, interval, own);
    this.reportNetwork();
    this.updateScale();
  }

  /** Adapts to the time that a frame took, on which the decoder ran `own`. A network goes before anything else does. */
  private weigh(now: number, busyMs: number, interval: number, own: NetworkTier): void {
    const queued = this.reorder.length + this.pictures.pending;
    const { networks, guard } = this;
    if (networks.none && guard.frame(now, busyMs, interval, queued, this.scale ?? this.defaultScale)) {
      this.reorder.clear(); // these frames would be seconds old after the pause
      this.rest("too-slow");
    }
    if (guard.effort === "full") networks.frame(now, busyMs, interval, queued, own);
    else networks.rest();
  }

  /**
   * Queues the decoder's current picture, after a network outside of the decoder. `refreshed`: it stands for the last
   * one, or comes after it.
   */
  private makePicture(detail: boolean, refreshed = false): void {
    const made = this.current;
    // Calls may move the decoder's memory: first what is copied.
    const kept = this.outside.wantsPictures ? this.guarded((decoder) => decoder.kept()) : null;
    const low = kept == null ? null : this.guarded((decoder) => decoder.low());
    const view = this.guarded((decoder) => decoder.hr());
    if (view == null || made === null) return;
    this.hr = { width: view.width, height: view.height };
    const colorSpace = this.nativeColourSpace ?? this.colour;
    const queue = (bytes: Uint8Array): void => {
      const picture = new VideoFrame(bytes, {
        format: "I420",
        codedWidth: view.width,
        codedHeight: view.height,
        timestamp: Math.round(made.mediaMs * 1000) + (refreshed ? 1 : 0),
        layout: view.layout,
        colorSpace,
      });
      if (refreshed && this.queue.replace(made.mediaMs, { picture, detail })) return;
      if (!refreshed) this.playout.ready(made.mediaMs, this.host.clock());
      this.queue.push(made.mediaMs, { picture, detail });
    };
    const later = (bytes: Uint8Array): void => {
      const before = this.host.clock();
      queue(bytes);
      this.sideWorkMs += this.host.clock() - before;
      this.host.wake();
    };
    if (kept != null && low != null && this.outside.run({ low, high: view, kept }, later)) return;
    this.outside.pass();
    queue(view.bytes);
  }

  /**
   * Rebuilds the current picture with the detail of anchors that came since, and shows it instead of the former or
   * after it.
   */
  private refreshPicture(): void {
    this.refreshAt = null;
    const before = this.host.clock();
    const refreshed = this.guarded((decoder) => {
      decoder.setNetwork(this.networks.own);
      return decoder.refresh();
    });
    if (refreshed === true) this.makePicture(true, true);
    this.sideWorkMs += this.host.clock() - before;
  }

  /** Notes that an anchor was applied. Anchors of tiles need a key anchor before them. */
  private anchorApplied(rtpTimestamp: number, whole: boolean, now: number): void {
    this.keyAnchors.applied(now, whole);
    const decay = this.guarded((decoder) => decoder.decay());
    if (decay !== undefined) this.anchors.decayed(now, decay);
    this.anchors.applied(now, this.arrivals.since(rtpTimestamp, now) ?? 0);
  }

  /** Calls the decoder. An error costs the state of the decoder, and a trap the decoder itself. */
  private guarded<T>(call: (decoder: TrackDecoder) => T): T | undefined {
    if (this.decoder === null) return undefined;
    try {
      return call(this.decoder);
    } catch (error) {
      this.faults++;
      if (!(error instanceof DecodeFailure)) this.decoder = null; // a trap: its memory is in an unknown state
      this.resetDecoder();
      this.setState("fault");
      this.requestKeyFrame(this.host.clock());
      return undefined;
    }
  }

  private create(module: WebAssembly.Module): TrackDecoder | null {
    try {
      return this.make(module, this.scale ?? this.defaultScale);
    } catch {
      this.faults++;
      this.guard.pause(this.host.clock());
      this.rest("fault");
      return null;
    }
  }

  /** Where frames come but none can be decoded: after a while shows the native picture, and requests a key frame. */
  private checkStarvation(now: number): void {
    // No key frame helps where frames are not taken.
    if (this.state === "codec" || this.state === "too-large") return;
    if (!this.reorder.waitingForKey || this.rates.received.perSecond(now) === 0) return;
    this.starvedSince ??= now;
    if (now - this.starvedSince < STARVED_MS) return;
    if (this.showsRebuilt()) this.setState("gap");
    this.requestKeyFrame(now);
  }

  private requestKeyFrame(now: number): void {
    if (now - this.lastKeyRequest < KEY_REQUEST_MS) return;
    this.lastKeyRequest = now;
    this.host.requestKeyFrame();
  }

  /** Drops the decoder's state. Decoding continues at the next key frame. */
  private resetDecoder(): void {
    this.reorder.requireKey();
    this.queue.clear();
    this.outside.forget();
    this.keyAnchors.reset();
    this.current = null;
    this.refreshAt = null;
    this.starvedSince = null;
    this.pictures.reset();
    try {
      this.decoder?.reset();
    } catch {
      this.decoder = null;
    }
  }

  /** Nothing is rebuilt for now. */
  private rest(reason: NativeReason): void {
    this.resetDecoder();
    this.outside.stop();
    this.setState(reason);
  }

  /** Whether rebuilt pictures are shown. */
  private showsRebuilt(): boolean {
    return this.state === "enhanced" || this.state === "rebuilt";
  }

  private setState(state: Exclude<PictureState, "native"> | NativeReason): void {
    if (state === this.state) return;
    this.state = state;
    const rebuilt = state === "enhanced" || state === "rebuilt";
    this.host.post(rebuilt ? { type: "state", state } : { type: "state", state: "native", reason: state });
  }
}

const headerOf = ({ key, width, height }: OtherFrame): Vp9Header =>
  key && width > 0 && height > 0 ? { key, size: { width, height } } : { key };

function colourSpace({ matrix, fullRange }: NonNullable<Vp9Header["colour"]>): VideoColorSpaceInit {
  return { matrix, primaries: matrix, transfer: matrix, fullRange };
}
