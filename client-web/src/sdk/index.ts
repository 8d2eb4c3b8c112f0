/**
 * `windlass-client`: join a call of a Windlass server and see its participants, the weak ones enhanced.
 *
 * ```ts
 * import { join } from "windlass-client";
 *
 * const call = await join("https://calls.example/", { room: "standup", name: "Ada", camera: true, microphone: true });
 * call.on("participant", (who) => document.body.append(who.element));
 * ```
 *
 * @module windlass-client
 */
export type { AnchorSource, FailureReason, NativeReason, PictureState, WorkerStats } from "../worker/messages.js";
export type { NetworkAbsence, NetworkTier } from "../worker/network-choice.js";
export type { TokenSource } from "./access-token.js";
export type { Assets } from "./assets.js";
export { CHECK_TITLES, type CheckName, type CheckOptions, type CheckResult, check } from "./check.js";
export {
  type Device,
  type DeviceKind,
  DeviceList,
  type DeviceListEvents,
  type Devices,
  type MediaDeviceSource,
  type SoundElement,
} from "./devices/device-list.js";
export { deviceError, type InputKind, insecurePage, type Surroundings } from "./devices/errors.js";
export { analyserMeter, LevelWatch, type Meter } from "./devices/level.js";
export type { InputDevice, LocalInput, LocalInputEvents, StartOptions } from "./devices/local-input.js";
export { type Facing, type MediaSource, openBoth, openDevice, type Source } from "./devices/open.js";
export type { GestureTarget, Playable, SoundGate, SoundGateEvents } from "./devices/playback.js";
export { Preview } from "./devices/preview.js";
export type { EndCause } from "./devices/replacement.js";
export { type View, WindlassVideo, type WindlassVideoEvents } from "./element/windlass-video.js";
export type { EncryptionKey } from "./encryption.js";
export { type ClientErrorCode, type ServerErrorCode, WindlassError } from "./errors.js";
export type { RoomEvents } from "./events.js";
export { type JoinOptions, join } from "./join.js";
export type { Message, MessageContent, MessageData, Receiver, SendOptions } from "./message.js";
export { type CallGrant, Moderation } from "./moderation.js";
export type { NetworkBackend, OutputKind } from "./output.js";
export { Participant, type ParticipantEvents } from "./participant.js";
export type { Attributes } from "./profile.js";
export {
  type ConnectionQuality,
  type Grant,
  type ParticipantInfo,
  PROTOCOL_VERSION,
  type Refusal,
  RUNGS,
  type Rung,
  type ServerRefusal,
  type ServerWayReason,
  type WaitingInfo,
  type Way,
  type WayReason,
} from "./protocol.js";
export type { Content, DetailChoice, Layers, Publication, VideoCodec } from "./publication.js";
export type { RegionCounts } from "./regions.js";
export { type PublishOptions, Room } from "./room.js";
export { type ScreenOptions, ScreenShare, type ScreenShareEvents } from "./screen.js";
export type { StillsState } from "./stills.js";
export {
  type RemoteAudioTrack,
  type RemoteTrack,
  RemoteVideoTrack,
  type RemoteVideoTrackEvents,
  type RungInfo,
  type TrackStats,
  type TrackView,
  type WayInfo,
} from "./tracks.js";
