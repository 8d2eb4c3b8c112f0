// Made from signaling/sdk/openapi.json by `cargo xtask protocol`.

/** An error of the admin API. */
export interface AdminError {
  /** The reason, for programs. */
  code: AdminErrorCode;
  /** Advice for people on what to do next. */
  hint: string;
  /** Description of the error for people. */
  message: string;
}

/** Error codes, for programs. Stable. */
export type AdminErrorCode =
  | "unauthorized"
  | "token_expired"
  | "forbidden"
  | "malformed"
  | "unknown_room"
  | "unknown_participant"
  | "unknown_track"
  | "no_identity"
  | "no_recorder"
  | "not_recorded"
  | "not_writable"
  | "too_many_rooms"
  | "too_many_rules"
  | "shutting_down"
  | "internal";

/** An answer to a participant in a lobby. */
export interface Answered {
  /** Whether the participant may enter. */
  admitted: boolean;
}

/** A ban of an identity from a room. */
export interface Ban {
  /** The identity. */
  identity: string;
  /** Time at which the ban ends, in seconds since 1970. */
  until: number;
}

/** All bans of a room. */
export interface Bans {
  /** The bans, sorted by identity. */
  bans: Ban[];
}

/** The claims of a token (RFC 7519 §4). Other claims are ignored, except `aud`: a token with it is for another service. */
export interface Claims {
  /** Time at which the token expires, in seconds since 1970. */
  exp: number;
  /** Room of the token; `*` for all. */
  room: string;
  /** Identity of the bearer, which has one participant in a room at a time. */
  sub: string;
  /** Grants of the bearer; by default those of a participant. */
  grants?: Grant[];
  /** Id of the token, by which it can be revoked. */
  jti?: string;
  /** Display name of the bearer, instead of the client's. */
  name?: string;
  /** Time from which on the token is valid, in seconds since 1970. */
  nbf?: number;
}

/** Draining of a server before it ends. */
export interface Draining {
  /** Maximum time in seconds that rooms have to end; 0: the server ends at once. */
  seconds: number;
}

/** Whether the enhancer runs. */
export interface Enhancer {
  /** In requests: whether to run the enhancer. In answers: whether it runs. */
  enabled: boolean;
}

/** The body of a webhook. */
export interface Event {
  /** Time of the event, in seconds since 1970. */
  at: number;
  /** Id of the event, the same in all attempts; also in the header `webhook-id`. */
  id: string;
  /** The room. */
  room: string;
  /** Kind of the event. */
  type: EventType;
  /** The participant. */
  participant?: EventParticipant;
  /** The recording. */
  recording?: EventRecording;
  /** The track. */
  track?: EventTrack;
}

/** A file of a recording. */
export interface EventFile {
  /** Size of the file in bytes. */
  bytes: number;
  /** Length of the file in seconds. */
  duration: number;
  /** Name of the file. */
  file: string;
  /** Time at which the file begins, in seconds since the recording's start. */
  offset: number;
  /** Id of the recorded participant. */
  participant: string;
  /** Tracks in the file: `video`, `audio`. */
  tracks: string[];
  /** The file with the enhanced picture, in the same folder. */
  enhanced?: string;
  /** Identity in the participant's access token. */
  identity?: string;
}

/** A participant. */
export interface EventParticipant {
  /** Id of the participant, as in signalling. */
  id: string;
  /** Display name of the participant. */
  name: string;
  /** Identity in the participant's access token. */
  identity?: string;
}

/** A recording, in webhooks. */
export interface EventRecording {
  /** Name of the recording. */
  id: string;
  /** Sum of the files' sizes, in bytes. */
  bytes?: number;
  /** Time from the start to the end of the last file, in seconds. */
  duration?: number;
  /** Description of the error for people. */
  error?: string;
  /** Files with media. Of more than 100 files only the first ones are listed: the manifest has all. */
  files?: EventFile[];
  /** Manifest of the recording, in its folder. */
  manifest?: string;
  /** Identity, or else id, of the only participant that is recorded; absent: all are. */
  participant?: string;
  /** Folder of the recording on the server. */
  path?: string;
  /** Why the recording ended: `stopped`, `room_empty` or `write_failed`. */
  reason?: string;
}

/** A track. */
export interface EventTrack {
  /** Id of the track, as in signalling. */
  id: string;
  /** Kind of the track: `video` or `audio`. */
  kind: TrackKind;
  /** Name that the publisher gives the track. */
  name: string;
}

/** Kind of an event. */
export type EventType =
  | "room_started"
  | "participant_joined"
  | "track_published"
  | "track_unpublished"
  | "participant_left"
  | "room_finished"
  | "recording_started"
  | "recording_ended"
  | "recording_enhanced"
  | "recording_stored";

/** A grant: something that an access token allows. */
export type Grant =
  | "publish"
  | "subscribe"
  | "enhance"
  | "data"
  | "moderate"
  | "admin";

/** The lobby of a room. */
export interface Lobby {
  /** The participants in the lobby, the first one first. */
  waiting: Waiting[];
}

/** Whether a track is muted by an operator. */
export interface Muted {
  /** True: the track is muted until an operator unmutes it. False: its publisher decides. */
  muted: boolean;
}

/** A participant of a room. */
export interface Participant {
  /** Grants of the participant. */
  grants: Grant[];
  /** Id of the participant, as in signalling. */
  id: string;
  /** The display name. */
  name: string;
  /** Rungs that the participant receives of others' video. */
  receives: Receives[];
  /** Time at which the participant joined, in seconds since 1970. */
  since: number;
  /** Tracks that the participant publishes. */
  tracks: Track[];
  /** Identity in the participant's access token. */
  identity?: string;
}

/** A duration. */
export interface Period {
  /** Duration in seconds. By default until all tokens that were used have expired, and at least a day. */
  seconds?: number;
}

/** The rung that a participant receives of a track. */
export interface Receives {
  /** Height of the rung's layer in pixels. */
  height: number;
  /** The rung: `q`, `q+`, `h`, `h+` or `f`. */
  rung: string;
  /** Id of the track. */
  track: string;
  /** Width of the rung's layer in pixels. */
  width: number;
}

/** Settings of a new recording. */
export interface Record {
  /** Whether enhanced pictures are made too, in files of their own, when the recording has ended. */
  enhanced?: boolean;
  /** Id of the only participant to record, also after it comes back with its identity. By default all are recorded. */
  participant?: string;
}

/** A room, with its participants and tracks. */
export interface RoomDetails {
  /** Participants of the room, the first one first. */
  participants: Participant[];
  /** Name of the room. */
  room: string;
  /** Maximum number of participants. The server's own bound holds too. */
  max_participants?: number;
  /** Policy by which anchors are chosen, such as `cost-effective`. */
  policy?: string;
}

/** Restrictions of entering a room. */
export interface RoomEntry {
  /** New participants wait until a moderator or operator admits them. */
  lobby?: boolean;
  /** New participants are refused, except moderators and participants that return. */
  locked?: boolean;
  /** Minimum time in seconds, even if the room is empty; by default until five minutes after the last participant left. */
  seconds?: number;
}

/** The policy by which anchors are chosen. */
export interface RoomPolicy {
  /** The policy, such as `latency-sensitive`. `null` for a room: the policy of all rooms. `null` for all rooms: the policy of the configuration. */
  policy: string | null;
  /** The room; by default all rooms without a policy of their own. */
  room?: string;
}

/** The recording of a room. */
export interface RoomRecording {
  /** Whether enhanced pictures are made too, when the recording has ended. */
  enhanced: boolean;
  /** Name of the recording and of its folder. */
  recording: string;
  /** Time of the order to record, in seconds since 1970. */
  started: number;
  /** Identity, or else id, of the only participant that is recorded; absent: all are. */
  participant?: string;
}

/** An operator's settings of a room. Absent settings have the values of the server's configuration. */
export interface RoomSettings {
  /** Maximum number of participants. The server's own bound holds too. */
  max_participants?: number;
  /** Policy by which anchors are chosen, such as `cost-effective`. */
  policy?: string;
}

/** A room in short. */
export interface RoomSummary {
  /** Number of participants. */
  participants: number;
  /** Name of the room. */
  room: string;
  /** Number of published tracks. */
  tracks: number;
  /** Maximum number of participants. The server's own bound holds too. */
  max_participants?: number;
  /** Policy by which anchors are chosen, such as `cost-effective`. */
  policy?: string;
}

/** All rooms. */
export interface Rooms {
  /** The rooms, by name. Loopback rooms are called `loopback/` and the participant's id. */
  rooms: RoomSummary[];
}

/** What a participant may do. */
export interface SetGrants {
  /** The participant's grants from now on, of `publish`, `subscribe`, `enhance` and `data`. The token's other grants stay. */
  grants: Grant[];
}

/** A published track. */
export interface Track {
  /** Id of the track, as in signalling. */
  id: string;
  /** Kind of the track: `video` or `audio`. */
  kind: TrackKind;
  /** Whether the track is muted: it is not forwarded. */
  muted: boolean;
  /** Whether an operator muted the track, so that its publisher cannot unmute it. */
  muted_by_operator: boolean;
  /** Name that the publisher gives the track. */
  name: string;
}

/** Kind of a track. */
export type TrackKind =
  | "audio"
  | "video";

/** A participant in a lobby. */
export interface Waiting {
  /** Id by which the participant is admitted or refused. */
  id: string;
  /** The display name. */
  name: string;
  /** The identity in the participant's access token. */
  identity?: string;
}
