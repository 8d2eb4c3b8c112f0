/** The events of a room, of the call behind it, and of each of its sessions. */
import type { OUT, WindlassError } from "./errors.js";
import type { Message, ReceivedMessage } from "./message.js";
import type { Participant } from "./participant.js";
import type { ConnectionQuality, ParticipantInfo, WaitingInfo } from "./protocol.js";
import type { Publication } from "./publication.js";
import type { RemoteTrack, RemoteVideoTrack, RungInfo, TrackStats } from "./tracks.js";

/** Events that a call passes on from its current session. */
export interface CallEvents {
  /** Another participant is in the room now. */
  participantJoined: ParticipantInfo;
  /** Another participant has another name or other attributes. */
  participantChanged: ParticipantInfo;
  /** Another participant is no longer in the room. Its tracks were removed before. */
  participantLeft: ParticipantInfo;
  /**
   * A remote track is received now. Where {@link RemoteVideoTrack.replaces} is set, it succeeds that track, and
   * `trackRemoved` of that track follows.
   */
  trackAdded: RemoteTrack;
  /** A remote track ended. Compare tracks by identity: a successor may have the same `id`. */
  trackRemoved: RemoteTrack;
  /** The owner of a remote track muted or unmuted it. */
  trackMuted: { track: RemoteTrack; muted: boolean };
  /**
   * A moderator muted one of this participant's tracks, or allowed it again. While muted, `Room.mute` cannot unmute it.
   */
  publicationMuted: { publication: Publication; muted: boolean };
  /** The active speaker, until the next such event. */
  speaker: ParticipantInfo;
  /** The quality of somebody's connection has changed, or is known now. */
  quality: { participant: string; quality: ConnectionQuality };
  /** The server sends another rung of a video track. */
  rung: { track: RemoteVideoTrack } & RungInfo;
  /** Statistics of a video track, once a second. */
  stats: { track: RemoteVideoTrack; stats: TrackStats };
  /** A moderator changed this participant's grants. What is no longer allowed has ended. */
  grants: { grants: readonly string[] };
  /** A moderator locked or opened the room, or switched its lobby on or off. */
  locked: { locked: boolean; lobby: boolean };
  /** The room is recorded from now on, or is not any more. Tell it to everybody who sees the page. */
  recording: { on: boolean };
  /** The participants that wait in the lobby now. Sent to moderators only. */
  lobby: readonly WaitingInfo[];
  /** The server rejected a request, or a device that was asked for at the join cannot be used; the call continues. */
  refused: WindlassError;
}

/** The events of a call's connections. */
interface ConnectionEvents {
  /** The connection was lost; attempt number `attempt` follows after `delayMs` milliseconds. */
  reconnecting: { attempt: number; delayMs: number; cause: WindlassError };
  /** The connection is back. Remote tracks are announced again, publications are sent again. */
  reconnected: undefined;
  /** The room migrated to another server without an interruption. */
  moved: undefined;
  /** This participant waits in the lobby, at joining or reconnecting, until a moderator admits it. */
  waiting: undefined;
  /** This participant was removed and does not reconnect; `disconnected` follows. */
  removed: { reason: (typeof OUT)[number] };
  /** The call is over. `reason.code` is `left` after `Room.leave`. */
  disconnected: { reason: WindlassError };
}

/** What a call emits to its room. */
export interface HostEvents extends CallEvents, ConnectionEvents {
  /** A message of another participant. */
  message: ReceivedMessage;
}

/** The events of `Room`. */
export interface RoomEvents
  extends Omit<CallEvents, "participantJoined" | "participantChanged" | "participantLeft" | "speaker" | "quality">,
    ConnectionEvents {
  /** A participant is in the call: each that was there at the join, and each newcomer. */
  participant: Participant;
  /** A participant has another {@link Participant.name} or other {@link Participant.attributes}. */
  participantChanged: Participant;
  /** A participant has left the call. Its tracks were removed before. */
  participantLeft: Participant;
  /** A message that a participant sent by `Room.send`. */
  message: Message;
  /** The active speaker, until the next such event. */
  speaker: Participant;
  /** Who is heard now, several at once: `Room.speakers`. Told too when `Room.speaking` changes. */
  speakers: readonly Participant[];
  /**
   * The server has assessed a connection again: of another participant, whose {@link Participant.quality} it is, or of
   * this one (`participant` is null), whose is `Room.quality`.
   */
  quality: { participant: Participant | null; quality: ConnectionQuality };
}

/** The names of all events of `Room`. */
export const ROOM_EVENTS = [
  "participant",
  "participantChanged",
  "participantLeft",
  "message",
  "trackAdded",
  "trackRemoved",
  "trackMuted",
  "publicationMuted",
  "speaker",
  "speakers",
  "quality",
  "rung",
  "stats",
  "grants",
  "locked",
  "recording",
  "lobby",
  "refused",
  "reconnecting",
  "reconnected",
  "moved",
  "waiting",
  "removed",
  "disconnected",
] as const satisfies readonly (keyof RoomEvents)[];

/** The server to which a room migrates. */
export interface Move {
  /** URL of that server's WebSocket. */
  url: string;
  /** Proves there which participant of the former server this client is. */
  ticket?: string;
  /** URLs of further servers of the cluster. */
  others?: string[];
}

/** What a session emits to its call. */
export interface SessionEvents extends CallEvents {
  /** A participant is in the room, pending or present; it may have had another id before. */
  met: ParticipantInfo;
  /** A message of a participant. */
  message: ReceivedMessage;
  /** The media path is up. */
  up: undefined;
  /** The session failed. Emitted once. */
  lost: WindlassError;
  /** A ping has not been answered for a second. Emitted again while that lasts. */
  quiet: undefined;
  /** The server asks this client to migrate. */
  moved: Move;
}
