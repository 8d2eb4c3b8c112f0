// Made from signaling/sdk/openapi.json by `cargo xtask protocol`.

/** An error of the admin API. */
export interface AdminError {
  /** The reason, for programs. */
  code: AdminErrorCode;
  /** What to do next, for people. */
  hint: string;
  /** What happened, for people. */
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
  /** Whether it may enter. */
  admitted: boolean;
}

/** A ban of an identity from a room. */
export interface Ban {
  /** The identity. */
  identity: string;
  /** When it ends, in seconds since 1970. */
  until: number;
}

/** All bans of a room. */
export interface Bans {
  /** By identity. */
  bans: Ban[];
}

/** The claims of a token (RFC 7519 §4). Others are ignored, except `aud`: such a token is for another service. */
export interface Claims {
  /** Expiry, in seconds since 1970. */
  exp: number;
  /** The room; `*` for all. */
  room: string;
  /** The identity, which has one participant in a room at a time. */
  sub: string;
  /** The grants; by default those of a participant. */
  grants?: Grant[];
  /** The token's id, by which it can be revoked. */
  jti?: string;
  /** The display name, instead of the client's. */
  name?: string;
  /** From when on it is valid, in seconds since 1970. */
  nbf?: number;
}

/** How a server ends. */
export interface Draining {
  /** The longest time in seconds that rooms have to end; 0: it ends at once. */
  seconds: number;
}

/** Whether the enhancer runs. */
export interface Enhancer {
  /** In requests: whether to run it. In answers: whether it runs. */
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
  /** What happened. */
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
  /** Its size. */
  bytes: number;
  /** Its length in seconds. */
  duration: number;
  /** Its name. */
  file: string;
  /** When it begins, in seconds since the recording did. */
  offset: number;
  /** The participant's id. */
  participant: string;
  /** Its tracks: `video`, `audio`. */
  tracks: string[];
  /** The identity in its access token. */
  identity?: string;
}

/** A participant. */
export interface EventParticipant {
  /** The id, as in signalling. */
  id: string;
  /** The display name. */
  name: string;
  /** The identity in its access token. */
  identity?: string;
}

/** A recording, in webhooks. */
export interface EventRecording {
  /** Its name. */
  id: string;
  /** Sum of the sizes of its files. */
  bytes?: number;
  /** Time from the start to the end of the last file, in seconds. */
  duration?: number;
  /** What went wrong, for people. */
  error?: string;
  /** Its media; of more than 100 files the first ones: the manifest has all. */
  files?: EventFile[];
  /** Its manifest, in that folder. */
  manifest?: string;
  /** The identity or the id of the participant that alone is recorded. */
  participant?: string;
  /** Its folder on the server. */
  path?: string;
  /** Why it ended: `stopped`, `room_empty` or `write_failed`. */
  reason?: string;
}

/** A track. */
export interface EventTrack {
  /** The id, as in signalling. */
  id: string;
  /** `video` or `audio`. */
  kind: TrackKind;
  /** The publisher's name for it. */
  name: string;
}

/** What happened. */
export type EventType =
  | "room_started"
  | "room_finished"
  | "participant_joined"
  | "participant_left"
  | "track_published"
  | "track_unpublished"
  | "recording_started"
  | "recording_ended";

/** Something that an access token allows. */
export type Grant =
  | "publish"
  | "subscribe"
  | "enhance"
  | "data"
  | "moderate"
  | "admin";

/** The lobby of a room. */
export interface Lobby {
  /** The participants in it, the first one first. */
  waiting: Waiting[];
}

/** Whether a track is muted. */
export interface Muted {
  /** True: it is muted until an operator unmutes it. False: its publisher decides. */
  muted: boolean;
}

/** A participant of a room. */
export interface Participant {
  /** Its grants. */
  grants: Grant[];
  /** The id, as in signalling. */
  id: string;
  /** The display name. */
  name: string;
  /** The rungs that it receives of others' video. */
  receives: Receives[];
  /** When it joined, in seconds since 1970. */
  since: number;
  /** Its published tracks. */
  tracks: Track[];
  /** The identity in its access token. */
  identity?: string;
}

/** A duration. */
export interface Period {
  /** In seconds; by default until all tokens that were used have expired, and at least a day. */
  seconds?: number;
}

/** The rung that a participant receives of a track. */
export interface Receives {
  /** Height of its layer in pixels. */
  height: number;
  /** `q`, `q+`, `h`, `h+` or `f`. */
  rung: string;
  /** Id of the track. */
  track: string;
  /** Width of its layer in pixels. */
  width: number;
}

/** What to record of a room. */
export interface Record {
  /** Id of the participant that alone is recorded, also when it comes back with its identity; by default all. */
  participant?: string;
}

/** A room, with its participants and tracks. */
export interface RoomDetails {
  /** Its participants, the first one first. */
  participants: Participant[];
  /** Its name. */
  room: string;
  /** Maximum number of participants. The server's own bound holds too. */
  max_participants?: number;
  /** How anchors are chosen, such as `cost-effective`. */
  policy?: string;
}

/** Restrictions of entering a room. */
export interface RoomDoor {
  /** New participants wait until a moderator or operator admits them. */
  lobby?: boolean;
  /** New participants are refused, except moderators and participants that return. */
  locked?: boolean;
  /** Minimum time in seconds, even if the room is empty; by default until five minutes after the last participant left. */
  seconds?: number;
}

/** The policy by which anchors are chosen. */
export interface RoomPolicy {
  /** Such as `latency-sensitive`; `null` restores the policy of all rooms, or for all rooms that of the configuration. */
  policy: string | null;
  /** The room; by default all rooms without a policy of their own. */
  room?: string;
}

/** The recording of a room. */
export interface RoomRecording {
  /** Its name, which is that of its folder. */
  recording: string;
  /** When it was ordered, in seconds since 1970. */
  started: number;
  /** The identity, or else the id, of the participant that alone is recorded. */
  participant?: string;
}

/** An operator's settings of a room. Absent settings have the values of the server's configuration. */
export interface RoomSettings {
  /** Maximum number of participants. The server's own bound holds too. */
  max_participants?: number;
  /** How anchors are chosen, such as `cost-effective`. */
  policy?: string;
}

/** A room in short. */
export interface RoomSummary {
  /** Number of participants. */
  participants: number;
  /** Its name. */
  room: string;
  /** Number of published tracks. */
  tracks: number;
  /** Maximum number of participants. The server's own bound holds too. */
  max_participants?: number;
  /** How anchors are chosen, such as `cost-effective`. */
  policy?: string;
}

/** All rooms. */
export interface Rooms {
  /** By name. Loopback rooms are called `loopback/` and the participant's id. */
  rooms: RoomSummary[];
}

/** What a participant may do. */
export interface SetGrants {
  /** Its grants from now on, of `publish`, `subscribe`, `enhance` and `data`; the token's other grants stay. */
  grants: Grant[];
}

/** A published track. */
export interface Track {
  /** The id, as in signalling. */
  id: string;
  /** `video` or `audio`. */
  kind: TrackKind;
  /** Whether it is muted: not forwarded. */
  muted: boolean;
  /** Whether an operator muted it, so that its publisher cannot unmute it. */
  muted_by_operator: boolean;
  /** The publisher's name for it. */
  name: string;
}

/** Audio or video. */
export type TrackKind =
  | "audio"
  | "video";

/** A participant in a lobby. */
export interface Waiting {
  /** The id with which it is answered. */
  id: string;
  /** The display name. */
  name: string;
  /** The identity in its access token. */
  identity?: string;
}
