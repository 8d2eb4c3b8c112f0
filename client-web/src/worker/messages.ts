import type { AnchorSource } from "./anchors.js";
import type { FailureReason, OutsideBackend } from "./network/backend.js";
import type { NetworkAbsence, NetworkTier } from "./network-choice.js";
import type { OtherCodec } from "./picture-decoder.js";
import type { SoughtFile } from "./places.js";
import type { RegionOutcome, RegionTask } from "./regions/cutter.js";
import type { BaseKey } from "./sframe.js";

/** The messages between the window and its workers. Times are milliseconds since the epoch, with fractions. */

/** Where rebuilt pictures go: to a transferred stream, or to the window by messages. */
export type PictureSink = { kind: "stream"; writable: WritableStream<VideoFrame> } | { kind: "post" };

/** The direction of the frames of a transform. */
export type TransformRole = "received" | "sent";

/** The options of a transform. */
export interface TransformOptions {
  role: TransformRole;
  id: number;
  /** Frames were lost before this transform: request a key frame. */
  keyFrame: boolean;
  /** Frames of this kind are encrypted end to end: no plain one is sent, or taken. Null: they are not. */
  encrypted: "audio" | "video" | null;
}

/** To any worker: asks for a {@link Pong}. */
export type Ping = { type: "ping" };
/** From any worker: the answer to a {@link Ping}. */
export type Pong = { type: "pong" };

/**
 * To the workers of a call with end-to-end encryption: encrypt by this base key from now on. It decrypts too; the one
 * before it does so for a while.
 */
export type GiveKey = { type: "key"; key: BaseKey };

/** To the relay. */
export type ToRelay =
  /** Send copies of the frames of transform `id` to this port. */
  { type: "handCopies"; id: number; port: MessagePort } | GiveKey;

/** What is known of a frame of another codec than VP9. */
export interface OtherFrame {
  codec: OtherCodec;
  key: boolean;
  /** Size of the picture; 0 where it is unknown. */
  width: number;
  height: number;
}

/** A copy of a received frame, from the relay. */
export interface FrameCopy {
  rtpTimestamp: number;
  frameId: number | undefined;
  data: ArrayBuffer;
  /** Null: it is of VP9, and says all itself. */
  other: OtherFrame | null;
  /** Frames before this one were not copied. */
  afterGap: boolean;
}

/** A sent frame, from the relay. */
export interface SentFrame {
  ssrc: number | undefined;
  rtpTimestamp: number | undefined;
  width: number;
  height: number;
  /** A copy of the frame, for the followed layer only. */
  data: ArrayBuffer | null;
  /** Null: it is of VP9. */
  other: OtherFrame | null;
  /** Frames before this one were not copied. */
  afterGap: boolean;
}

/**
 * To the relay, by the port of the copies: a copy was taken; a key frame is needed; or the SSRC of the sent layer whose
 * frames are copied with their data (null: none).
 */
export type ToRelayByPort = "taken" | "keyFrame" | { follow: number | null };

/** From the window, to the worker of a track or of a published camera: the port of the copies of its frames. */
export type TakeCopies = { type: "takeCopies"; port: MessagePort };

/** What may run networks outside of the decoder. */
export interface Outside {
  /** The script of networks on WebGPU. */
  script: SoughtFile;
  /** This one alone, whatever time it needs, also on a CPU that plays a GPU; for tests. Null: what fits in time. */
  forced: OutsideBackend | null;
}

/** From the worker of a track to one that runs its network on some rows of pictures. */
export type ToRows =
  /** The network. It answers once it can run. */
  | { type: "rows"; module: WebAssembly.Module; tier: NetworkTier; scale: number }
  /** Luma of low rows and, behind it, of the high ones, without gaps. */
  | { type: "part"; bytes: ArrayBuffer; width: number; height: number };

/** The answers of such a worker, in order. */
export type FromRows =
  /** Low rows above and below a row on which the network depends. */
  | { type: "rows"; reach: number }
  /** The same bytes, with the high rows that the network has made. */
  | { type: "part"; bytes: ArrayBuffer };

/** From the window to the worker of a track. */
export type ToWorker =
  | {
      type: "init";
      sink: PictureSink;
      maxPixels: number;
      scale: number;
      maxNetwork: NetworkTier;
      outside: Outside;
      /** Anchors are the publisher's stills, encrypted end to end; no others are taken. */
      encrypted: boolean;
    }
  | GiveKey
  /** The compiled decoder, once it is loaded. */
  | { type: "module"; module: WebAssembly.Module }
  /** To a worker without a track, which only warms the decoder up. */
  | { type: "warmUp"; module: WebAssembly.Module }
  /** To a worker without a track, which only measures the decoder. */
  | { type: "speed"; module: WebAssembly.Module }
  /** A data channel message with an anchor of this track. */
  | { type: "anchor"; data: ArrayBuffer }
  /** The native player showed the frame of `rtpTimestamp` at `at`. */
  | { type: "nativeShown"; rtpTimestamp: number; at: number }
  /** The colour space of the native player, which may be signalled outside the bit stream. */
  | { type: "colour"; colour: VideoColorSpaceInit }
  /** Whether the rung is an enhanced one, the scale of its anchors, and whether the track has spatial layers. */
  | { type: "rung"; enhanced: boolean; scale: number; spatial: boolean }
  /** The largest network that may run on every frame, from now on. */
  | { type: "maxNetwork"; max: NetworkTier }
  /** How large the picture is shown, device pixels. */
  | { type: "shown"; width: number; height: number }
  /** The receiver carries another track, or none. */
  | { type: "restart"; enabled: boolean };

/**
 * The better picture of a track.
 * - `native`: that of the browser's decoder, at LR size.
 * - `rebuilt`: that of the SDK's decoder, at HR size, without anchors.
 * - `enhanced`: the same, with anchors.
 */
export type PictureState = "native" | "rebuilt" | "enhanced";

/** Why the picture is native. Missing anchors are no reason: pictures are rebuilt without. */
export type NativeReason =
  /** No picture has been rebuilt yet. */
  | "starting"
  /** The LR picture has the number of pixels with which it is shown. */
  | "fills"
  /** This machine is too slow. */
  | "too-slow"
  /** The SDK's decoder failed. */
  | "fault"
  /** Frames are missing. */
  | "gap"
  /** The LR picture is larger than the server enhances. */
  | "too-large"
  /** The browser cannot decode the codec for the SDK, or the picture comes in spatial layers. */
  | "codec"
  /** The browser lacks an API. */
  | "unsupported"
  /** `worker.js` cannot be started, or has ended. */
  | "worker"
  /** `windlass.wasm` cannot be loaded. */
  | "wasm"
  /** The track's worker hangs. */
  | "stalled";

/** Statistics of a track, once a second. */
export interface WorkerStats {
  /** Rebuilt pictures per second. */
  outputFps: number;
  /** Rebuilt pictures with anchors, per second. */
  enhancedFps: number;
  /** Encoded frames received per second. */
  receivedFps: number;
  /** Their bitrate, kbit/s. */
  videoKbps: number;
  /** Anchors used per second. */
  anchorsPerSecond: number;
  /** Bitrate of all anchor messages, kbit/s. */
  anchorKbps: number;
  /** The source of the last anchor used; null before the first. */
  detailFrom: AnchorSource | null;
  /** Anchors used since the start. */
  anchorsUsed: number;
  /** Used anchors that arrived after their frame was decoded. */
  anchorsLate: number;
  /** Anchors that could not be used: malformed, of another size, or too old. */
  anchorsLost: number;
  /** Anchors whose frame had all their detail already. */
  anchorsDuplicate: number;
  /** Anchors that arrived after one of a newer epoch. */
  anchorsFormerEpoch: number;
  /** Median time from the arrival of a frame to its anchor being applied; null without anchors. */
  anchorP50Ms: number | null;
  /** The 95th percentile of that time. */
  anchorP95Ms: number | null;
  /** Mean time to decode and rebuild a frame, over the last seconds; null without samples. */
  decodeMs: number | null;
  /** Always null: part of {@link decodeMs}. */
  reconstructMs: number | null;
  /** Mean time to apply an anchor; null without samples. */
  anchorApplyMs: number | null;
  /** Loss of quality per frame after an anchor, as mean squared error of luma; null while unknown. */
  decay: number | null;
  /** Mean number of frames over which {@link decay} was measured; null while unknown. */
  decayFrames: number | null;
  /** The delay of the playout clock above the quickest picture. */
  playoutDelayMs: number;
  /** Time from the native picture being shown to the rebuilt one being ready; null while unknown. */
  lagMs: number | null;
  /** Frames that could not be decoded since the start: lost, late or skipped. */
  framesLost: number;
  /** Pictures dropped before they were shown. */
  picturesDropped: number;
  /** Pauses of enhancement because this machine is too slow. */
  pauses: number;
  /** The network that runs on every frame. */
  network: NetworkTier;
  /** Why none runs; null while one does. */
  networkAbsence: NetworkAbsence | null;
  /** Where it runs: in the decoder, on the GPU, or in workers of its own; null while none does. */
  networkBackend: "wasm" | "webgpu" | "workers" | null;
  /** Why it does not run on the GPU; null while it does, and before it was tried. */
  networkFailure: FailureReason | null;
  /** Mean time of a picture outside of the decoder, over the last seconds; null while none is made there. */
  networkMs: number | null;
  /** Pictures that were shown without the network because the GPU or the workers had no time for them. */
  networkSkipped: number;
  /** Failures of the decoder. */
  faults: number;
  /** Size of the LR picture, pixels; null while unknown. */
  lr: { width: number; height: number } | null;
  /** Size of the rebuilt picture, pixels; null before the first. */
  hr: { width: number; height: number } | null;
}

export type { AnchorSource, FailureReason };

/** To the window, from the worker of a track. */
export type FromWorker =
  | { type: "frame"; frame: VideoFrame }
  | { type: "state"; state: "enhanced" | "rebuilt" }
  | { type: "state"; state: "native"; reason: NativeReason }
  | { type: "stats"; stats: WorkerStats }
  /** The decoder lacks the anchors that the track's anchors refer to: a key anchor is needed. */
  | { type: "keyAnchor" }
  /** The decoder is warmed up. */
  | { type: "warm" }
  /** Pixels of rebuilt pictures per second; 0: the decoder does not work. */
  | { type: "speed"; pixelsPerSecond: number };

/** To the worker of a published camera. */
export type ToPublisher =
  | GiveKey
  /** The compiled decoder, once it is loaded. */
  | { type: "module"; module: WebAssembly.Module }
  /** The following frames are of another camera. */
  | { type: "camera" }
  /** A frame of the camera, read at `at`. */
  | { type: "frame"; frame: VideoFrame; at: number }
  /** A request for a still of the next frame. */
  | { type: "regions"; task: RegionTask };

/** From the worker of a published camera. */
export type FromPublisher =
  /** A camera frame was taken. */
  | { type: "taken" }
  /** The layer of this width needs a key frame, for which a request waits. */
  | { type: "keyFrame"; width: number }
  /** The outcome of a request, and its messages for the data channel. */
  | { type: "region"; id: number; outcome: RegionOutcome; messages: ArrayBuffer[] };
