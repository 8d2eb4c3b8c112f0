import type { AnchorSource } from "./anchors.js";
import type { RegionOutcome, RegionTask } from "./regions/cutter.js";

/** What the window and a track's worker say to each other. Times are milliseconds since the epoch, fractional. */

/** Where the rebuilt pictures go: a stream handed over, or back to the window one by one. */
export type PictureSink = { kind: "stream"; writable: WritableStream<VideoFrame> } | { kind: "post" };

/** Which way the frames of a transform go. */
export type TransformRole = "received" | "sent";

/** What a transform tells the relay of itself; `keyFrame`: frames were lost before it was there. */
export interface TransformOptions {
  role: TransformRole;
  id: number;
  keyFrame: boolean;
}

/** To any worker: whether it is there. */
export type Ping = { type: "ping" };
/** From any worker: it is there. */
export type Pong = { type: "pong" };

/** To the relay: copies of the frames of transform `id` go to this port. */
export type ToRelay = { type: "handCopies"; id: number; port: MessagePort };

/** A copy of a received frame, from the relay; `afterGap`: some before it were left out. */
export interface FrameCopy {
  rtpTimestamp: number;
  frameId: number | undefined;
  data: ArrayBuffer;
  afterGap: boolean;
}

/** A frame that was sent, from the relay; `data`: of the layer that is followed alone; `afterGap`: some before it were left out. */
export interface SentFrame {
  ssrc: number | undefined;
  rtpTimestamp: number | undefined;
  width: number;
  height: number;
  data: ArrayBuffer | null;
  afterGap: boolean;
}

/**
 * To the relay, by the port of the copies: one was taken, the sender should give a key frame, or frames of one of the layers
 * sent (null: of none) are to come with their data.
 */
export type ToRelayByPort = "taken" | "keyFrame" | { follow: number | null };

/** From the window, to the worker of a track or of a published camera: copies of its frames come by this port. */
export type TakeCopies = { type: "takeCopies"; port: MessagePort };

/** From the window. */
export type ToWorker =
  | { type: "init"; sink: PictureSink; maxPixels: number; scale: number }
  /** The compiled decoder; comes when it is there. */
  | { type: "module"; module: WebAssembly.Module }
  /** To a worker that has no track and is only to warm the decoder up. */
  | { type: "warmUp"; module: WebAssembly.Module }
  /** One raw data channel message for this track. */
  | { type: "anchor"; data: ArrayBuffer }
  /** The native player showed the frame of `rtpTimestamp` at `at`. */
  | { type: "nativeShown"; rtpTimestamp: number; at: number }
  /** The native player's pictures have these colours; they may be told beside the bit stream. */
  | { type: "colour"; colour: VideoColorSpaceInit }
  /** Whether the server now gives a rung with enhancement, and the scale that its anchors are made for. */
  | { type: "rung"; enhanced: boolean; scale: number }
  /** How large the picture is shown, in pixels of the device. */
  | { type: "shown"; width: number; height: number }
  /** The receiver carries another track from now on, or none. */
  | { type: "restart"; enabled: boolean };

/**
 * What a track shows: the native decoder's picture; the one that our decoder rebuilds at HR size; or that one once
 * anchors have a part in it.
 */
export type PictureState = "native" | "rebuilt" | "enhanced";

/** Why a track is shown by the native decoder. Anchors that stay away are no reason: pictures are rebuilt without. */
export type NativeReason =
  | "starting"
  /** It has as many pixels as it is shown with. */
  | "fills"
  | "too-slow"
  | "fault"
  | "gap"
  | "too-large"
  /** The browser lacks an interface. */
  | "unsupported"
  /** The SDK's worker cannot be started, or has ended. */
  | "worker"
  /** The WASM decoder cannot be loaded. */
  | "wasm"
  /** The track's worker has stopped answering. */
  | "stalled";

/** A track's figures, once a second. */
export interface WorkerStats {
  /** Rebuilt pictures written per second, and of these the ones in which anchors have a part. */
  outputFps: number;
  enhancedFps: number;
  /** Encoded frames received per second, and their kbit/s. */
  receivedFps: number;
  videoKbps: number;
  /** Complete anchors used per second, and kbit/s of all anchor messages. */
  anchorsPerSecond: number;
  anchorKbps: number;
  /** What the last anchor that was used was made of; null before there was one. */
  detailFrom: AnchorSource | null;
  /** Anchors since the start: used; of these, after their frame was decoded; came but could not be used. */
  anchorsUsed: number;
  anchorsLate: number;
  anchorsLost: number;
  /** Came, but gave nothing that their frame had not; came after an anchor of a newer epoch. */
  anchorsDuplicate: number;
  anchorsFormerEpoch: number;
  /** From a frame's arrival here to its anchor being usable; null without anchors. */
  anchorP50Ms: number | null;
  anchorP95Ms: number | null;
  /** Mean time per frame or anchor over the last seconds; null without samples. */
  decodeMs: number | null;
  reconstructMs: number | null;
  anchorApplyMs: number | null;
  /** By how much the picture gets worse with each frame after an anchor, in mean square grey levels of luma; null while not known. */
  decay: number | null;
  /** In how many frames after it that was seen, in the mean. */
  decayFrames: number | null;
  /** The playout clock's delay above the quickest picture. */
  playoutDelayMs: number;
  /** How much later than the native picture is shown the rebuilt one is ready; null while that is not known. */
  lagMs: number | null;
  /** Frames that could not be decoded (lost, late, skipped), and pictures dropped before showing. */
  framesLost: number;
  picturesDropped: number;
  /** Times that enhancement was paused because this machine is too slow, and module restarts after a trap. */
  pauses: number;
  faults: number;
  lr: { width: number; height: number } | null;
  hr: { width: number; height: number } | null;
}

export type { AnchorSource };

/** To the window. */
export type FromWorker =
  | { type: "frame"; frame: VideoFrame }
  | { type: "state"; state: "enhanced" | "rebuilt" }
  | { type: "state"; state: "native"; reason: NativeReason }
  | { type: "stats"; stats: WorkerStats }
  /** The track's anchors are added to some that are not here: one that rests on no other is needed. */
  | { type: "wholeAnchor" }
  /** The decoder has been warmed up. */
  | { type: "warm" };

/** To the worker of a published camera. */
export type ToPublisher =
  /** The compiled decoder; comes when it is there. */
  | { type: "module"; module: WebAssembly.Module }
  /** The frames that follow are of another camera. */
  | { type: "camera" }
  /** A frame of the camera, read at `at`. */
  | { type: "frame"; frame: VideoFrame; at: number }
  /** Tiles that are wanted of the next frame. */
  | { type: "regions"; task: RegionTask };

/** From the worker of a published camera. */
export type FromPublisher =
  /** It has one of the camera's frames less to look at. */
  | { type: "taken" }
  /** The layer of this width needs a key frame, as requests wait for one. */
  | { type: "keyFrame"; width: number }
  /** What became of a request, and its messages for the data channel. */
  | { type: "region"; id: number; outcome: RegionOutcome; messages: ArrayBuffer[] };
