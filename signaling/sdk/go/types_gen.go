// Made from signaling/sdk/openapi.json by `cargo xtask protocol`. DO NOT EDIT.

package windlass

// AdminError: An error of the admin API.
type AdminError struct {
	// The reason, for programs.
	Code AdminErrorCode `json:"code"`
	// What to do next, for people.
	Hint string `json:"hint"`
	// What happened, for people.
	Message string `json:"message"`
}

// AdminErrorCode: Error codes, for programs. Stable.
type AdminErrorCode string

// The words of AdminErrorCode.
const (
	AdminErrorCodeUnauthorized       AdminErrorCode = "unauthorized"
	AdminErrorCodeTokenExpired       AdminErrorCode = "token_expired"
	AdminErrorCodeForbidden          AdminErrorCode = "forbidden"
	AdminErrorCodeMalformed          AdminErrorCode = "malformed"
	AdminErrorCodeUnknownRoom        AdminErrorCode = "unknown_room"
	AdminErrorCodeUnknownParticipant AdminErrorCode = "unknown_participant"
	AdminErrorCodeUnknownTrack       AdminErrorCode = "unknown_track"
	AdminErrorCodeNoIdentity         AdminErrorCode = "no_identity"
	AdminErrorCodeNoRecorder         AdminErrorCode = "no_recorder"
	AdminErrorCodeNotRecorded        AdminErrorCode = "not_recorded"
	AdminErrorCodeNotWritable        AdminErrorCode = "not_writable"
	AdminErrorCodeTooManyRooms       AdminErrorCode = "too_many_rooms"
	AdminErrorCodeTooManyRules       AdminErrorCode = "too_many_rules"
	AdminErrorCodeShuttingDown       AdminErrorCode = "shutting_down"
	AdminErrorCodeInternal           AdminErrorCode = "internal"
)

// Answered: An answer to a participant in a lobby.
type Answered struct {
	// Whether it may enter.
	Admitted bool `json:"admitted"`
}

// Ban: A ban of an identity from a room.
type Ban struct {
	// The identity.
	Identity string `json:"identity"`
	// When it ends, in seconds since 1970.
	Until int64 `json:"until"`
}

// Bans: All bans of a room.
type Bans struct {
	// By identity.
	Bans []Ban `json:"bans"`
}

// Claims: The claims of a token (RFC 7519 §4). Others are ignored, except `aud`: such a token is
// for another service.
type Claims struct {
	// Expiry, in seconds since 1970.
	Exp float64 `json:"exp"`
	// The room; `*` for all.
	Room string `json:"room"`
	// The identity, which has one participant in a room at a time.
	Sub string `json:"sub"`
	// The grants; by default those of a participant.
	Grants *[]Grant `json:"grants,omitempty"`
	// The token's id, by which it can be revoked.
	Jti string `json:"jti,omitempty"`
	// The display name, instead of the client's.
	Name string `json:"name,omitempty"`
	// From when on it is valid, in seconds since 1970.
	Nbf *float64 `json:"nbf,omitempty"`
}

// Draining: How a server ends.
type Draining struct {
	// The longest time in seconds that rooms have to end; 0: it ends at once.
	Seconds int64 `json:"seconds"`
}

// Enhancer: Whether the enhancer runs.
type Enhancer struct {
	// In requests: whether to run it. In answers: whether it runs.
	Enabled bool `json:"enabled"`
}

// Event: The body of a webhook.
type Event struct {
	// Time of the event, in seconds since 1970.
	At float64 `json:"at"`
	// Id of the event, the same in all attempts; also in the header `webhook-id`.
	ID string `json:"id"`
	// The room.
	Room string `json:"room"`
	// What happened.
	Type EventType `json:"type"`
	// The participant.
	Participant *EventParticipant `json:"participant,omitempty"`
	// The recording.
	Recording *EventRecording `json:"recording,omitempty"`
	// The track.
	Track *EventTrack `json:"track,omitempty"`
}

// EventFile: A file of a recording.
type EventFile struct {
	// Its size.
	Bytes int64 `json:"bytes"`
	// Its length in seconds.
	Duration float64 `json:"duration"`
	// Its name.
	File string `json:"file"`
	// When it begins, in seconds since the recording did.
	Offset float64 `json:"offset"`
	// The participant's id.
	Participant string `json:"participant"`
	// Its tracks: `video`, `audio`.
	Tracks []string `json:"tracks"`
	// The identity in its access token.
	Identity string `json:"identity,omitempty"`
}

// EventParticipant: A participant.
type EventParticipant struct {
	// The id, as in signalling.
	ID string `json:"id"`
	// The display name.
	Name string `json:"name"`
	// The identity in its access token.
	Identity string `json:"identity,omitempty"`
}

// EventRecording: A recording, in webhooks.
type EventRecording struct {
	// Its name.
	ID string `json:"id"`
	// Sum of the sizes of its files.
	Bytes *int64 `json:"bytes,omitempty"`
	// Time from the start to the end of the last file, in seconds.
	Duration *float64 `json:"duration,omitempty"`
	// What went wrong, for people.
	Error string `json:"error,omitempty"`
	// Its media; of more than 100 files the first ones: the manifest has all.
	Files *[]EventFile `json:"files,omitempty"`
	// Its manifest, in that folder.
	Manifest string `json:"manifest,omitempty"`
	// The identity or the id of the participant that alone is recorded.
	Participant string `json:"participant,omitempty"`
	// Its folder on the server.
	Path string `json:"path,omitempty"`
	// Why it ended: `stopped`, `room_empty` or `write_failed`.
	Reason string `json:"reason,omitempty"`
}

// EventTrack: A track.
type EventTrack struct {
	// The id, as in signalling.
	ID string `json:"id"`
	// `video` or `audio`.
	Kind TrackKind `json:"kind"`
	// The publisher's name for it.
	Name string `json:"name"`
}

// EventType: What happened.
type EventType string

// The words of EventType.
const (
	EventTypeRoomStarted       EventType = "room_started"
	EventTypeRoomFinished      EventType = "room_finished"
	EventTypeParticipantJoined EventType = "participant_joined"
	EventTypeParticipantLeft   EventType = "participant_left"
	EventTypeTrackPublished    EventType = "track_published"
	EventTypeTrackUnpublished  EventType = "track_unpublished"
	EventTypeRecordingStarted  EventType = "recording_started"
	EventTypeRecordingEnded    EventType = "recording_ended"
)

// Grant: Something that an access token allows.
type Grant string

// The words of Grant.
const (
	GrantPublish   Grant = "publish"
	GrantSubscribe Grant = "subscribe"
	GrantEnhance   Grant = "enhance"
	GrantData      Grant = "data"
	GrantModerate  Grant = "moderate"
	GrantAdmin     Grant = "admin"
)

// Lobby: The lobby of a room.
type Lobby struct {
	// The participants in it, the first one first.
	Waiting []Waiting `json:"waiting"`
}

// Muted: Whether a track is muted.
type Muted struct {
	// True: it is muted until an operator unmutes it. False: its publisher decides.
	Muted bool `json:"muted"`
}

// Participant: A participant of a room.
type Participant struct {
	// Its grants.
	Grants []Grant `json:"grants"`
	// The id, as in signalling.
	ID string `json:"id"`
	// The display name.
	Name string `json:"name"`
	// The rungs that it receives of others' video.
	Receives []Receives `json:"receives"`
	// When it joined, in seconds since 1970.
	Since int64 `json:"since"`
	// Its published tracks.
	Tracks []Track `json:"tracks"`
	// The identity in its access token.
	Identity string `json:"identity,omitempty"`
}

// Period: A duration.
type Period struct {
	// In seconds; by default until all tokens that were used have expired, and at least a day.
	Seconds *int64 `json:"seconds,omitempty"`
}

// Receives: The rung that a participant receives of a track.
type Receives struct {
	// Height of its layer in pixels.
	Height int64 `json:"height"`
	// `q`, `q+`, `h`, `h+` or `f`.
	Rung string `json:"rung"`
	// Id of the track.
	Track string `json:"track"`
	// Width of its layer in pixels.
	Width int64 `json:"width"`
}

// Record: What to record of a room.
type Record struct {
	// Id of the participant that alone is recorded, also when it comes back with its identity; by
	// default all.
	Participant string `json:"participant,omitempty"`
}

// RoomDetails: A room, with its participants and tracks.
type RoomDetails struct {
	// Its participants, the first one first.
	Participants []Participant `json:"participants"`
	// Its name.
	Room string `json:"room"`
	// Maximum number of participants. The server's own bound holds too.
	MaxParticipants *int64 `json:"max_participants,omitempty"`
	// How anchors are chosen, such as `cost-effective`.
	Policy string `json:"policy,omitempty"`
}

// RoomDoor: Restrictions of entering a room.
type RoomDoor struct {
	// New participants wait until a moderator or operator admits them.
	Lobby bool `json:"lobby,omitempty"`
	// New participants are refused, except moderators and participants that return.
	Locked bool `json:"locked,omitempty"`
	// Minimum time in seconds, even if the room is empty; by default until five minutes after the last
	// participant left.
	Seconds *int64 `json:"seconds,omitempty"`
}

// RoomPolicy: The policy by which anchors are chosen.
type RoomPolicy struct {
	// Such as `latency-sensitive`; `null` restores the policy of all rooms, or for all rooms that of
	// the configuration.
	Policy *string `json:"policy"`
	// The room; by default all rooms without a policy of their own.
	Room string `json:"room,omitempty"`
}

// RoomRecording: The recording of a room.
type RoomRecording struct {
	// Its name, which is that of its folder.
	Recording string `json:"recording"`
	// When it was ordered, in seconds since 1970.
	Started float64 `json:"started"`
	// The identity, or else the id, of the participant that alone is recorded.
	Participant string `json:"participant,omitempty"`
}

// RoomSettings: An operator's settings of a room. Absent settings have the values of the server's
// configuration.
type RoomSettings struct {
	// Maximum number of participants. The server's own bound holds too.
	MaxParticipants *int64 `json:"max_participants,omitempty"`
	// How anchors are chosen, such as `cost-effective`.
	Policy string `json:"policy,omitempty"`
}

// RoomSummary: A room in short.
type RoomSummary struct {
	// Number of participants.
	Participants int64 `json:"participants"`
	// Its name.
	Room string `json:"room"`
	// Number of published tracks.
	Tracks int64 `json:"tracks"`
	// Maximum number of participants. The server's own bound holds too.
	MaxParticipants *int64 `json:"max_participants,omitempty"`
	// How anchors are chosen, such as `cost-effective`.
	Policy string `json:"policy,omitempty"`
}

// Rooms: All rooms.
type Rooms struct {
	// By name. Loopback rooms are called `loopback/` and the participant's id.
	Rooms []RoomSummary `json:"rooms"`
}

// SetGrants: What a participant may do.
type SetGrants struct {
	// Its grants from now on, of `publish`, `subscribe`, `enhance` and `data`; the token's other
	// grants stay.
	Grants []Grant `json:"grants"`
}

// Track: A published track.
type Track struct {
	// The id, as in signalling.
	ID string `json:"id"`
	// `video` or `audio`.
	Kind TrackKind `json:"kind"`
	// Whether it is muted: not forwarded.
	Muted bool `json:"muted"`
	// Whether an operator muted it, so that its publisher cannot unmute it.
	MutedByOperator bool `json:"muted_by_operator"`
	// The publisher's name for it.
	Name string `json:"name"`
}

// TrackKind: Audio or video.
type TrackKind string

// The words of TrackKind.
const (
	TrackKindAudio TrackKind = "audio"
	TrackKindVideo TrackKind = "video"
)

// Waiting: A participant in a lobby.
type Waiting struct {
	// The id with which it is answered.
	ID string `json:"id"`
	// The display name.
	Name string `json:"name"`
	// The identity in its access token.
	Identity string `json:"identity,omitempty"`
}
