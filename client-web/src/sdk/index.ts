/**
 * `windlass-client`: join a call of a Windlass server and get its tracks, the weak ones enhanced.
 *
 * ```ts
 * const room = await Room.join({ url: "wss://calls.example/ws", room: "standup", name: "Ada" });
 * room.on("trackAdded", (track) => {
 *   if (track.kind === "audio") return;
 *   const show = () => { video.srcObject = new MediaStream([track.best]); };
 *   track.on("state", show);
 *   show();
 * });
 * await room.publish(await navigator.mediaDevices.getUserMedia({ audio: true, video: true }));
 * ```
 */
export type { AnchorSource, FailureReason, NativeReason, PictureState, WorkerStats } from "../worker/messages.js";
export type { NetworkTier } from "../worker/network-choice.js";
export type { Assets } from "./assets.js";
export {
  type Device,
  type DeviceKind,
  DeviceList,
  type DeviceListEvents,
  type Devices,
  playOn,
  type SoundElement,
} from "./devices/device-list.js";
export { deviceError, type InputKind, insecurePage, type Surroundings } from "./devices/errors.js";
export type { Meter } from "./devices/level.js";
export {
  type InputDevice,
  type InputHost,
  LocalInput,
  type LocalInputEvents,
  type StartOptions,
} from "./devices/local-input.js";
export type { Facing, Source } from "./devices/open.js";
export {
  type GestureTarget,
  type Playable,
  type Playback,
  playSound,
  SoundGate,
  type SoundGateEvents,
} from "./devices/playback.js";
export type { EndCause } from "./devices/replacement.js";
export { type ClientErrorCode, type ServerErrorCode, WindlassError } from "./errors.js";
export type { RoomEvents } from "./events.js";
export { type CallGrant, Moderation } from "./moderation.js";
export type { NetworkBackend, OutputKind } from "./output.js";
export {
  type Grant,
  type ParticipantInfo,
  PROTOCOL_VERSION,
  type Refusal,
  RUNGS,
  type Rung,
  type WaitingInfo,
} from "./protocol.js";
export type { DetailChoice, Layers, Publication } from "./publication.js";
export type { RegionCounts } from "./regions.js";
export { type JoinOptions, type PublishOptions, Room, type TrackView } from "./room.js";
export type { StillsState } from "./stills.js";
export {
  EnhancedTrack,
  type EnhancedTrackEvents,
  type RemoteAudioTrack,
  type RemoteTrack,
  type RungInfo,
  type TrackStats,
} from "./tracks.js";
