/** The tracks of others as the page sees them. */
import type { NativeReason, PictureState, WorkerStats } from "../worker/messages.js";
import { Emitter } from "./emitter.js";
import type { Refusal, Report, Rung, TrackInfo } from "./protocol.js";
import type { VideoReceiver } from "./receiver.js";

/** Someone's microphone. */
export interface RemoteAudioTrack {
  readonly kind: "audio";
  readonly id: string;
  readonly participant: string;
  readonly name: string;
  readonly muted: boolean;
  readonly track: MediaStreamTrack;
  /** While `trackAdded` is told: the track in whose place this one comes, as the room has moved to another server; null: none. */
  replaces: RemoteTrack | null;
}

/** What a subscriber is given of a track. */
export interface RungInfo {
  rung: Rung;
  epoch: number;
  /** Size of the layer in pixels; zero while unknown. */
  width: number;
  height: number;
  /** Size of the pictures that anchors are made for over that, where the rung is enhanced. */
  scale: number;
}

/** A video track's figures over the last second. */
export interface TrackStats extends WorkerStats {
  rung: Rung | null;
  state: PictureState;
  /** Frames per second in the better picture. */
  shownFps: number;
  /** Anchors that the server dropped for being late or for want of room. */
  anchorsDropped: number;
  /** Why the server makes no anchors of the track; null where it does, or needs not. */
  refused: Refusal | null;
}

/** Differences below this are left: a frame lasts longer. */
const HOLD_SLACK_MS = 12;

/** The native picture's colours are looked at once in so many frames. */
const COLOUR_EVERY = 100;

/** What became of anchors, counted since the start. */
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

export interface EnhancedTrackEvents {
  state: { state: PictureState; reason: NativeReason | null };
  rung: RungInfo;
  stats: TrackStats;
  muted: boolean;
  /** Nothing more comes, for want of bandwidth, or it goes on. */
  paused: boolean;
}

/** Someone's video: the native picture, the enhanced one, and which is the better at the moment. */
export class EnhancedTrack extends Emitter<EnhancedTrackEvents> {
  readonly kind = "video";
  readonly id: string;
  readonly participant: string;
  readonly name: string;
  /** The stream id in its anchor messages. */
  readonly stream: number | undefined;
  /** The native decoder's picture. Always there. */
  readonly plain: MediaStreamTrack;
  /** While `trackAdded` is told: the track in whose place this one comes, as the room has moved to another server; null: none. */
  replaces: RemoteTrack | null = null;
  /** Called when an anchor that rests on no other must be asked for. @internal */
  onWholeAnchor: (() => void) | null = null;
  private currentState: PictureState = "native";
  private currentReason: NativeReason | null;
  private currentRung: RungInfo | null = null;
  private currentStats: TrackStats | null = null;
  private isMuted: boolean;
  private isPaused = false;
  private dropped = 0;
  private refused: Refusal | null = null;
  private holding = false;
  private nativeFrames: { at: number; count: number } | null = null;
  private nativeFps = 0;
  private reported: AnchorCounts | null = null;

  /** @internal */
  constructor(
    info: TrackInfo,
    private readonly receiver: VideoReceiver,
  ) {
    super();
    this.id = info.id;
    this.participant = info.participant;
    this.name = info.name;
    this.stream = info.stream;
    this.isMuted = info.muted;
    this.plain = receiver.plain;
    receiver.carry({
      state: (state, reason) => this.setState(state, reason),
      stats: (stats) => void this.addStats(stats),
      wholeAnchor: () => this.onWholeAnchor?.(),
    });
    this.currentReason = receiver.reason;
  }

  /**
   * The rebuilt picture, silent while there is none; null while nothing can make it. Where that failed and was begun anew it is
   * another one: look at it with each event `state`.
   */
  get enhanced(): MediaStreamTrack | null {
    return this.receiver.enhanced;
  }

  /**
   * Which picture is shown best: `native`; `rebuilt`, by our decoder as large as it is shown, without anchors; `enhanced`, the same once anchors have a part in it.
   */
  get state(): PictureState {
    return this.currentState;
  }

  /** Why the state is `native`; null when it is not. */
  get reason(): NativeReason | null {
    return this.currentReason;
  }

  /** The better picture. Changes with the event `state`. */
  get best(): MediaStreamTrack {
    return this.currentState !== "native" && this.enhanced !== null ? this.enhanced : this.plain;
  }

  /** What the server gives of this track; null before it says so. */
  get rung(): RungInfo | null {
    return this.currentRung;
  }

  /** The latest figures; null in the first second. */
  get stats(): TrackStats | null {
    return this.currentStats;
  }

  /** Whether its owner muted it. */
  get muted(): boolean {
    return this.isMuted;
  }

  /** Whether the server sends nothing of it, because the connection does not carry it. */
  get paused(): boolean {
    return this.isPaused;
  }

  /** @internal */
  setPaused(paused: boolean): void {
    if (this.isPaused === paused) return;
    this.isPaused = paused;
    this.emit("paused", paused);
  }

  /**
   * Lets the enhanced picture keep step with `video`, an element that plays {@link plain}: it is never shown ahead
   * of it and in the same colours, so that the two agree side by side and with the sound. The returned function ends that.
   */
  keepStepWith(video: HTMLVideoElement): () => void {
    if (!("requestVideoFrameCallback" in video)) return () => undefined;
    let handle = 0;
    let frames = 0;
    const seen: VideoFrameRequestCallback = (_, frame) => {
      if (frame.rtpTimestamp !== undefined) {
        this.receiver.nativeShown(frame.rtpTimestamp, performance.timeOrigin + frame.expectedDisplayTime);
      }
      if (frames++ % COLOUR_EVERY === 0) this.tellColour(video);
      handle = video.requestVideoFrameCallback(seen);
    };
    handle = video.requestVideoFrameCallback(seen);
    return () => video.cancelVideoFrameCallback(handle);
  }

  private tellColour(video: HTMLVideoElement): void {
    if (typeof VideoFrame === "undefined") return;
    try {
      const picture = new VideoFrame(video, { timestamp: 0 });
      this.receiver.nativeColour(picture.colorSpace.toJSON());
      picture.close();
    } catch {
      // no picture at this moment; the next one will do
    }
  }

  /**
   * Holds the native picture back until the enhanced one is ready, at most 200 ms, so that the two can be seen side
   * by side; or (false) no longer. Needs {@link keepStepWith}.
   */
  holdPlain(hold: boolean): void {
    this.holding = hold;
    if (!hold) this.receiver.delayNative(null);
  }

  /** Whether a picture of it has come. @internal */
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

  /** @internal */
  shownIn(width: number, height: number): void {
    this.receiver.shownIn(width, height);
  }

  /** @internal */
  setRung(rung: RungInfo): void {
    this.currentRung = rung;
    this.receiver.rung(rung.rung.endsWith("+"), rung.scale);
    this.emit("rung", rung);
  }

  /** @internal */
  setServerStats(dropped: number, refused: Refusal | null): void {
    this.dropped = dropped;
    this.refused = refused;
  }

  /** What to tell the server; counts since the last call. `halfTripMs`: one way from the server to here. @internal */
  report(halfTripMs: number): Report | null {
    const stats = this.currentStats;
    if (stats === null) return null;
    const since = this.reported ?? NO_ANCHORS;
    this.reported = stats;
    const fromServer = (ms: number | null) => (ms === null ? 0 : ms + halfTripMs);
    return {
      track: this.id,
      shown_fps: stats.shownFps,
      enhanced_fps: stats.enhancedFps,
      anchors_used: stats.anchorsUsed - since.anchorsUsed,
      anchors_late: stats.anchorsLate - since.anchorsLate,
      anchors_lost: stats.anchorsLost - since.anchorsLost,
      anchors_duplicate: stats.anchorsDuplicate - since.anchorsDuplicate,
      anchors_former_epoch: stats.anchorsFormerEpoch - since.anchorsFormerEpoch,
      latency_p50_ms: fromServer(stats.anchorP50Ms),
      latency_p95_ms: fromServer(stats.anchorP95Ms),
      decode_ms: stats.decodeMs ?? 0,
      reconstruct_ms: stats.reconstructMs ?? 0,
      ...(stats.decay === null || stats.decayFrames === null
        ? {}
        : { decay: stats.decay, decay_frames: stats.decayFrames }),
    };
  }

  private setState(state: PictureState, reason: NativeReason | null): void {
    this.currentState = state;
    this.currentReason = reason;
    if (this.enhanced === null) {
      // Whatever comes to rebuild it next counts anew.
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
    this.currentStats = {
      ...stats,
      rung: this.currentRung?.rung ?? null,
      state: this.currentState,
      shownFps: this.currentState === "native" ? this.nativeFps : stats.outputFps,
      enhancedFps: this.currentState === "native" ? 0 : stats.enhancedFps,
      anchorsDropped: this.dropped,
      refused: this.refused,
    };
    const { lagMs } = stats;
    if (this.holding && lagMs !== null && Math.abs(lagMs) > HOLD_SLACK_MS) this.receiver.delayNative(lagMs / 2);
    this.emit("stats", this.currentStats);
  }
}

export type RemoteTrack = RemoteAudioTrack | EnhancedTrack;
