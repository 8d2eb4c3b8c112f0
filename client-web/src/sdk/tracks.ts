/** Remote tracks. */
import type { NativeReason, PictureState, WorkerStats } from "../worker/messages.js";
import { Emitter } from "./emitter.js";
import { finite, oneOf } from "./option-checks.js";
import { type Refusal, type Report, RUNGS, type Rung, type TrackInfo, type Way, type WayReason } from "./protocol.js";
import type { VideoReceiver } from "./receiver.js";
import { followShowing, type Shown } from "./showing.js";

/** A remote audio track. */
export interface RemoteAudioTrack {
  /** Tells it from a video track. */
  readonly kind: "audio";
  /** The server's id of the track. Unique in the room on one server. */
  readonly id: string;
  /** The id of its owner. */
  readonly participant: string;
  /** The name that its owner gave it, such as `microphone`. */
  readonly name: string;
  /** Whether its owner muted it. */
  readonly muted: boolean;
  /** The track to play. */
  readonly track: MediaStreamTrack;
  /** How loud it is at this moment: 0 for silence, 1 for full scale; linear in decibels. */
  readonly level: number;
  /**
   * During the event `trackAdded`: the track that this one succeeds, after a migration; null: none. Null at any other
   * time.
   */
  replaces: RemoteTrack | null;
}

/** The rung that the server sends of a track. */
export interface RungInfo {
  /** A layer (`q`, `h`, `f`), or a layer with anchors (`q+`, `h+`). */
  rung: Rung;
  /** Counts the switches of layer and resolution. */
  epoch: number;
  /** Width of the layer, pixels; 0 while unknown. */
  width: number;
  /** Height of the layer, pixels; 0 while unknown. */
  height: number;
  /** HR over LR size of the anchors, where the rung has some. */
  scale: number;
}

/** How the picture of a track is made, by the server's choice. */
export interface WayInfo {
  /** The layer as it is, or filters, with anchors (`flow`), a network, or `both`. */
  way: Way;
  /** Why: without anchors why there are none, with anchors why they are needed. */
  reason: WayReason;
}

/** Statistics of a video track over the last second. */
export interface TrackStats extends WorkerStats {
  /** The rung; null before the server has named it. */
  rung: Rung | null;
  /** How the picture is made, and why; null before the server has said so. */
  way: WayInfo | null;
  /** The picture shown. */
  state: PictureState;
  /** Frames per second of {@link RemoteVideoTrack.best}. */
  shownFps: number;
  /** Anchors that the server dropped because they were late or beyond the bandwidth. */
  anchorsDropped: number;
  /** Why the server makes no anchors of the track; null where it does, or where none are needed. */
  refused: Refusal | null;
}

/** Max difference between native and enhanced picture that is not corrected, milliseconds: less than a frame. */
const MAX_LAG_MS = 12;

/** Interval at which the colour space of the native picture is read, frames. */
const COLOUR_EVERY = 100;

/** Counts of anchors since the start. */
type AnchorCounts = Pick<
  WorkerStats,
  "anchorsUsed" | "anchorsLate" | "anchorsLost" | "anchorsDuplicate" | "anchorsFormerEpoch"
>;
const NO_ANCHORS: AnchorCounts = {
  anchorsUsed: 0,
  anchorsLate: 0,
  anchorsLost: 0,
  anchorsDuplicate: 0,
  anchorsFormerEpoch: 0,
};

/** The events of {@link RemoteVideoTrack}. */
export interface RemoteVideoTrackEvents {
  /** {@link RemoteVideoTrack.best} may be another track now. */
  state: { state: PictureState; reason: NativeReason | null };
  /** The server sends another rung. */
  rung: RungInfo;
  /** Once a second. */
  stats: TrackStats;
  /** The owner muted or unmuted the track. */
  muted: boolean;
  /** The server paused the track, as the bandwidth is too low, or resumed it. */
  paused: boolean;
}

/** How a remote video track is shown. */
export interface TrackView {
  /** Width on the screen, device pixels; 0: not visible, so the server does not send it. */
  width: number;
  /** Height on the screen, device pixels; 0: not visible, so the server does not send it. */
  height: number;
  /** Whether the track has priority over the others. Default: false. */
  pinned?: boolean;
}

/** What a video track asks of its session. @internal */
export interface TrackRequests {
  keyAnchor(): void;
  view(width: number, height: number, pinned: boolean): void;
  maxRung(rung: Rung): void;
  /** Sends the report of now, instead of the next one. */
  report(): void;
}

/** Max size in {@link TrackView}, device pixels: what the server takes. */
const MAX_VIEW_PIXELS = 65_535;

/**
 * A remote video track, enhanced where the server and this machine can: as the native picture, the rebuilt one, and the
 * better of the two.
 */
export class RemoteVideoTrack extends Emitter<RemoteVideoTrackEvents> {
  /** Tells it from an audio track. */
  readonly kind = "video";
  /** The server's id of the track. Unique in the room on one server. */
  readonly id: string;
  /** The id of its owner. */
  readonly participant: string;
  /** The name that its owner gave it, such as `camera`. */
  readonly name: string;
  /** Whether its frames are encrypted end to end. */
  readonly encrypted: boolean;
  /** The stream id of its anchor messages. */
  readonly stream: number | undefined;
  /** The native decoder's picture, for as long as the track lasts. */
  readonly plain: MediaStreamTrack;
  /**
   * During the event `trackAdded`: the track that this one succeeds, after a migration; null: none. Null at any other
   * time.
   */
  replaces: RemoteTrack | null = null;
  /** Set by the session that receives it. @internal */
  requests: TrackRequests | null = null;
  private currentState: PictureState = "native";
  private currentReason: NativeReason | null;
  private currentRung: RungInfo | null = null;
  private currentStats: TrackStats | null = null;
  private isMuted: boolean;
  private isPaused = false;
  private dropped = 0;
  private refused: Refusal | null = null;
  private currentWay: WayInfo | null = null;
  private delaysPlain = false;
  private nativeFrames: { at: number; count: number } | null = null;
  private nativeFps = 0;
  private reported: AnchorCounts | null = null;
  /** How large the elements are that it follows. */
  private readonly places = new Map<object, Shown>();

  /** @internal */
  constructor(
    info: TrackInfo,
    private readonly receiver: VideoReceiver,
  ) {
    super(["state", "rung", "stats", "muted", "paused"]);
    this.id = info.id;
    this.participant = info.participant;
    this.name = info.name;
    this.encrypted = info.encrypted === true;
    this.stream = info.stream;
    this.isMuted = info.muted;
    this.plain = receiver.plain;
    receiver.carry({
      state: (state, reason) => this.setState(state, reason),
      stats: (stats) => void this.addStats(stats),
      keyAnchor: () => this.requests?.keyAnchor(),
    });
    this.currentReason = receiver.reason;
  }

  /**
   * The rebuilt picture, without frames while {@link state} is `native`; null while it cannot be made. After a failure
   * it may be another track: read it again at each event `state`.
   */
  get enhanced(): MediaStreamTrack | null {
    return this.receiver.enhanced;
  }

  /**
   * The better picture: `native`; `rebuilt` by the SDK's decoder at the size at which it is shown, without anchors; or
   * `enhanced`, the same with anchors.
   */
  get state(): PictureState {
    return this.currentState;
  }

  /** Why the state is `native`; null when it is not. */
  get reason(): NativeReason | null {
    return this.currentReason;
  }

  /** The better track. Read it again at each event `state`. */
  get best(): MediaStreamTrack {
    return this.currentState !== "native" && this.enhanced !== null ? this.enhanced : this.plain;
  }

  /** The rung that the server sends; null before it has named one. */
  get rung(): RungInfo | null {
    return this.currentRung;
  }

  /** How its picture is made, and why; null before the server has said so. */
  get way(): WayInfo | null {
    return this.currentWay;
  }

  /** The latest statistics; null in the first second. */
  get stats(): TrackStats | null {
    return this.currentStats;
  }

  /** Whether its owner muted it. */
  get muted(): boolean {
    return this.isMuted;
  }

  /** Whether the server paused the track, as the bandwidth is too low. */
  get paused(): boolean {
    return this.isPaused;
  }

  /** @internal */
  setPaused(paused: boolean): void {
    if (this.isPaused === paused) return;
    this.isPaused = paused;
    this.emit("paused", paused);
  }

  /** Sets how it is shown. The server chooses its layer, and its share of the bandwidth, by that. */
  setView({ width, height, pinned = false }: TrackView): void {
    const pixels = (size: number) => Math.min(MAX_VIEW_PIXELS, Math.max(0, Math.round(finite("size", size))));
    this.requests?.view(pixels(width), pixels(height), pinned);
  }

  /**
   * Calls {@link setView} with the size of `element`, now and whenever that changes: 0 while it is scrolled out of
   * sight or the page is hidden. Small pictures then take a small layer, hidden ones nothing. Of several elements the
   * largest counts. The returned function ends that; the last view stays.
   */
  follow(element: Element): () => void {
    const place = {};
    const end = followShowing(element, (shown) => {
      this.places.set(place, shown);
      this.showLargest();
    });
    return () => {
      end();
      if (this.places.delete(place) && this.places.size > 0) this.showLargest();
    };
  }

  private showLargest(): void {
    this.setView([...this.places.values()].reduce((a, b) => (a.width * a.height >= b.width * b.height ? a : b)));
  }

  /** Caps its rung. Holds over reconnects while the track keeps its id. */
  setMaxRung(rung: Rung): void {
    this.requests?.maxRung(oneOf("rung", rung, RUNGS));
  }

  /**
   * Shows {@link best} in `video`, an element of the page, and follows its size. The returned function ends that. For
   * pages that bring their own element; `<windlass-video>` shows the change from one picture to the other without a
   * flicker, and both side by side.
   */
  attach(video: HTMLVideoElement): () => void {
    const show = () => {
      const [shown] = video.srcObject instanceof MediaStream ? video.srcObject.getVideoTracks() : [];
      if (shown !== this.best) video.srcObject = new MediaStream([this.best]);
    };
    video.muted = true;
    video.autoplay = true;
    video.playsInline = true;
    show();
    const ends = [this.on("state", show), this.follow(video)];
    return () => {
      for (const end of ends) end();
      video.srcObject = null;
    };
  }

  /**
   * Synchronises the enhanced picture with `video`, an element that plays {@link plain}: it is never ahead of it, and
   * has the same colours. So the two agree side by side, and with the sound. The returned function ends that. Without
   * `requestVideoFrameCallback` in the browser it does nothing.
   */
  keepStepWith(video: HTMLVideoElement): () => void {
    if (!("requestVideoFrameCallback" in video)) return () => undefined;
    let handle = 0;
    let frames = 0;
    const onFrame: VideoFrameRequestCallback = (_, frame) => {
      if (frame.rtpTimestamp !== undefined) {
        this.receiver.nativeShown(frame.rtpTimestamp, performance.timeOrigin + frame.expectedDisplayTime);
      }
      if (frames++ % COLOUR_EVERY === 0) this.readColour(video);
      handle = video.requestVideoFrameCallback(onFrame);
    };
    handle = video.requestVideoFrameCallback(onFrame);
    return () => video.cancelVideoFrameCallback(handle);
  }

  private readColour(video: HTMLVideoElement): void {
    if (typeof VideoFrame === "undefined") return;
    try {
      const picture = new VideoFrame(video, { timestamp: 0 });
      this.receiver.nativeColour(picture.colorSpace.toJSON());
      picture.close();
    } catch {
      // No picture at this moment: the next one will do.
    }
  }

  /**
   * Delays the native picture until the enhanced one is ready, by 200 ms at most, to show the two side by side; false
   * ends that. Needs {@link keepStepWith}.
   */
  holdPlain(hold: boolean): void {
    this.delaysPlain = hold;
    if (!hold) this.receiver.delayNative(null);
  }

  /** Whether a frame has been decoded. @internal */
  async begun(): Promise<boolean> {
    return (await this.receiver.nativeFrames().catch(() => 0)) > 0;
  }

  /** @internal */
  anchor(data: ArrayBuffer): void {
    this.receiver.anchor(data);
  }

  /** @internal */
  setMuted(muted: boolean): void {
    this.isMuted = muted;
    this.emit("muted", muted);
  }

  /** Tells the decoder how large it is shown, device pixels. @internal */
  setSize(width: number, height: number): void {
    this.receiver.setView(width, height);
  }

  /** @internal */
  setRung(rung: RungInfo, spatialLayers: number): void {
    this.currentRung = rung;
    this.receiver.setRung(rung.rung.endsWith("+"), rung.scale, spatialLayers > 1);
    this.emit("rung", rung);
  }

  /** @internal */
  setWay(way: WayInfo): void {
    this.currentWay = way;
  }

  /** @internal */
  setServerStats(dropped: number, refused: Refusal | null): void {
    this.dropped = dropped;
    this.refused = refused;
  }

  /**
   * The report to the server, with counts since the last call. `halfTripMs`: one-way delay from the server. @internal
   */
  report(halfTripMs: number): Report | null {
    const stats = this.currentStats;
    if (stats === null) return null;
    const before = this.reported ?? NO_ANCHORS;
    this.reported = stats;
    const fromServer = (ms: number | null) => (ms === null ? 0 : ms + halfTripMs);
    return {
      track: this.id,
      shown_fps: stats.shownFps,
      enhanced_fps: stats.enhancedFps,
      anchors_used: stats.anchorsUsed - before.anchorsUsed,
      anchors_late: stats.anchorsLate - before.anchorsLate,
      anchors_lost: stats.anchorsLost - before.anchorsLost,
      anchors_duplicate: stats.anchorsDuplicate - before.anchorsDuplicate,
      anchors_former_epoch: stats.anchorsFormerEpoch - before.anchorsFormerEpoch,
      latency_p50_ms: fromServer(stats.anchorP50Ms),
      latency_p95_ms: fromServer(stats.anchorP95Ms),
      decode_ms: stats.decodeMs ?? 0,
      reconstruct_ms: stats.reconstructMs ?? 0,
      network: stats.network,
      ...(stats.networkAbsence === null ? {} : { no_network: stats.networkAbsence }),
      ...(stats.decay === null || stats.decayFrames === null
        ? {}
        : { anchor_decay: { per_frame: stats.decay, frames: stats.decayFrames } }),
    };
  }

  private setState(state: PictureState, reason: NativeReason | null): void {
    this.currentState = state;
    this.currentReason = reason;
    if (this.enhanced === null) {
      // The counts of the next rebuilder start at zero.
      this.currentStats = null;
      this.reported = null;
    }
    this.emit("state", { state, reason });
  }

  private async addStats(stats: WorkerStats): Promise<void> {
    const count = await this.receiver.nativeFrames().catch(() => 0);
    if (this.enhanced === null) return;
    const at = performance.now();
    const last = this.nativeFrames;
    if (last !== null && at > last.at) this.nativeFps = Math.max(0, ((count - last.count) * 1000) / (at - last.at));
    this.nativeFrames = { at, count };
    const ran = (this.currentStats?.network ?? "none") !== "none";
    this.currentStats = {
      ...stats,
      way: this.currentWay,
      rung: this.currentRung?.rung ?? null,
      state: this.currentState,
      shownFps: this.currentState === "native" ? this.nativeFps : stats.outputFps,
      enhancedFps: this.currentState === "native" ? 0 : stats.enhancedFps,
      anchorsDropped: this.dropped,
      refused: this.refused,
    };
    const { lagMs } = stats;
    if (this.delaysPlain && lagMs !== null && Math.abs(lagMs) > MAX_LAG_MS) this.receiver.delayNative(lagMs / 2);
    this.emit("stats", this.currentStats);
    if (ran !== (stats.network !== "none")) this.requests?.report();
  }
}

/** A track of another participant, or in a loopback room of this one. */
export type RemoteTrack = RemoteAudioTrack | RemoteVideoTrack;
