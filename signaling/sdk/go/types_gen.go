// Made from signaling/sdk/openapi.json by `cargo xtask protocol`. DO NOT EDIT.

package windlass

// AdminError: An error of the admin API.
type AdminError struct {
	// The reason, for programs.
	Code AdminErrorCode `json:"code"`
	// Advice for people on what to do next.
	Hint string `json:"hint"`
	// Description of the error for people.
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
	// Whether the participant may enter.
	Admitted bool `json:"admitted"`
}

// Ban: A ban of an identity from a room.
type Ban struct {
	// The identity.
	Identity string `json:"identity"`
	// Time at which the ban ends, in seconds since 1970.
	Until int64 `json:"until"`
}

// Bans: All bans of a room.
type Bans struct {
	// The bans, sorted by identity.
	Bans []Ban `json:"bans"`
}

// Claims: The claims of a token (RFC 7519 §4). Other claims are ignored, except `aud`: a token
// with it is for another service.
type Claims struct {
	// Time at which the token expires, in seconds since 1970.
	Exp float64 `json:"exp"`
	// Room of the token; `*` for all.
	Room string `json:"room"`
	// Identity of the bearer, which has one participant in a room at a time.
	Sub string `json:"sub"`
	// Grants of the bearer; by default those of a participant.
	Grants *[]Grant `json:"grants,omitempty"`
	// Id of the token, by which it can be revoked.
	Jti string `json:"jti,omitempty"`
	// Display name of the bearer, instead of the client's.
	Name string `json:"name,omitempty"`
	// Time from which on the token is valid, in seconds since 1970.
	Nbf *float64 `json:"nbf,omitempty"`
}

// Draining: Draining of a server before it ends.
type Draining struct {
	// Maximum time in seconds that rooms have to end; 0: the server ends at once.
	Seconds int64 `json:"seconds"`
}

// Enhancer: Whether the enhancer runs.
type Enhancer struct {
	// In requests: whether to run the enhancer. In answers: whether it runs.
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
	// Kind of the event.
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
	// Size of the file in bytes.
	Bytes int64 `json:"bytes"`
	// Length of the file in seconds.
	Duration float64 `json:"duration"`
	// Name of the file.
	File string `json:"file"`
	// Time at which the file begins, in seconds since the recording's start.
	Offset float64 `json:"offset"`
	// Id of the recorded participant.
	Participant string `json:"participant"`
	// Tracks in the file: `video`, `audio`.
	Tracks []string `json:"tracks"`
	// The file with the enhanced picture, in the same folder.
	Enhanced string `json:"enhanced,omitempty"`
	// Identity in the participant's access token.
	Identity string `json:"identity,omitempty"`
}

// EventParticipant: A participant.
type EventParticipant struct {
	// Id of the participant, as in signalling.
	ID string `json:"id"`
	// Display name of the participant.
	Name string `json:"name"`
	// Identity in the participant's access token.
	Identity string `json:"identity,omitempty"`
}

// EventRecording: A recording, in webhooks.
type EventRecording struct {
	// Name of the recording.
	ID string `json:"id"`
	// Sum of the files' sizes, in bytes.
	Bytes *int64 `json:"bytes,omitempty"`
	// Time from the start to the end of the last file, in seconds.
	Duration *float64 `json:"duration,omitempty"`
	// Description of the error for people.
	Error string `json:"error,omitempty"`
	// Files with media. Of more than 100 files only the first ones are listed: the manifest has all.
	Files *[]EventFile `json:"files,omitempty"`
	// Manifest of the recording, in its folder.
	Manifest string `json:"manifest,omitempty"`
	// Identity, or else id, of the only participant that is recorded; absent: all are.
	Participant string `json:"participant,omitempty"`
	// Folder of the recording on the server.
	Path string `json:"path,omitempty"`
	// Why the recording ended: `stopped`, `room_empty` or `write_failed`.
	Reason string `json:"reason,omitempty"`
}

// EventTrack: A track.
type EventTrack struct {
	// Id of the track, as in signalling.
	ID string `json:"id"`
	// Kind of the track: `video` or `audio`.
	Kind TrackKind `json:"kind"`
	// Name that the publisher gives the track.
	Name string `json:"name"`
}

// EventType: Kind of an event.
type EventType string

// The words of EventType.
const (
	EventTypeRoomStarted       EventType = "room_started"
	EventTypeParticipantJoined EventType = "participant_joined"
	EventTypeTrackPublished    EventType = "track_published"
	EventTypeTrackUnpublished  EventType = "track_unpublished"
	EventTypeParticipantLeft   EventType = "participant_left"
	EventTypeRoomFinished      EventType = "room_finished"
	EventTypeRecordingStarted  EventType = "recording_started"
	EventTypeRecordingEnded    EventType = "recording_ended"
	EventTypeRecordingEnhanced EventType = "recording_enhanced"
	EventTypeRecordingStored   EventType = "recording_stored"
)

// Grant: A grant: something that an access token allows.
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
	// The participants in the lobby, the first one first.
	Waiting []Waiting `json:"waiting"`
}

// Muted: Whether a track is muted by an operator.
type Muted struct {
	// True: the track is muted until an operator unmutes it. False: its publisher decides.
	Muted bool `json:"muted"`
}

// Participant: A participant of a room.
type Participant struct {
	// Grants of the participant.
	Grants []Grant `json:"grants"`
	// Id of the participant, as in signalling.
	ID string `json:"id"`
	// The display name.
	Name string `json:"name"`
	// Rungs that the participant receives of others' video.
	Receives []Receives `json:"receives"`
	// Time at which the participant joined, in seconds since 1970.
	Since int64 `json:"since"`
	// Tracks that the participant publishes.
	Tracks []Track `json:"tracks"`
	// Identity in the participant's access token.
	Identity string `json:"identity,omitempty"`
}

// Period: A duration.
type Period struct {
	// Duration in seconds. By default until all tokens that were used have expired, and at least a
	// day.
	Seconds *int64 `json:"seconds,omitempty"`
}

// Receives: The rung that a participant receives of a track.
type Receives struct {
	// Height of the rung's layer in pixels.
	Height int64 `json:"height"`
	// The rung: `q`, `q+`, `h`, `h+` or `f`.
	Rung string `json:"rung"`
	// Id of the track.
	Track string `json:"track"`
	// Width of the rung's layer in pixels.
	Width int64 `json:"width"`
}

// Record: Settings of a new recording.
type Record struct {
	// Whether enhanced pictures are made too, in files of their own, when the recording has ended.
	Enhanced bool `json:"enhanced,omitempty"`
	// Id of the only participant to record, also after it comes back with its identity. By default all
	// are recorded.
	Participant string `json:"participant,omitempty"`
}

// RoomDetails: A room, with its participants and tracks.
type RoomDetails struct {
	// Participants of the room, the first one first.
	Participants []Participant `json:"participants"`
	// Name of the room.
	Room string `json:"room"`
	// Maximum number of participants. The server's own bound holds too.
	MaxParticipants *int64 `json:"max_participants,omitempty"`
	// Policy by which anchors are chosen, such as `cost-effective`.
	Policy string `json:"policy,omitempty"`
}

// RoomEntry: Restrictions of entering a room.
type RoomEntry struct {
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
	// The policy, such as `latency-sensitive`. `null` for a room: the policy of all rooms. `null` for
	// all rooms: the policy of the configuration.
	Policy *string `json:"policy"`
	// The room; by default all rooms without a policy of their own.
	Room string `json:"room,omitempty"`
}

// RoomRecording: The recording of a room.
type RoomRecording struct {
	// Whether enhanced pictures are made too, when the recording has ended.
	Enhanced bool `json:"enhanced"`
	// Name of the recording and of its folder.
	Recording string `json:"recording"`
	// Time of the order to record, in seconds since 1970.
	Started float64 `json:"started"`
	// Identity, or else id, of the only participant that is recorded; absent: all are.
	Participant string `json:"participant,omitempty"`
}

// RoomSettings: An operator's settings of a room. Absent settings have the values of the server's
// configuration.
type RoomSettings struct {
	// Maximum number of participants. The server's own bound holds too.
	MaxParticipants *int64 `json:"max_participants,omitempty"`
	// Policy by which anchors are chosen, such as `cost-effective`.
	Policy string `json:"policy,omitempty"`
}

// RoomSummary: A room in short.
type RoomSummary struct {
	// Number of participants.
	Participants int64 `json:"participants"`
	// Name of the room.
	Room string `json:"room"`
	// Number of published tracks.
	Tracks int64 `json:"tracks"`
	// Maximum number of participants. The server's own bound holds too.
	MaxParticipants *int64 `json:"max_participants,omitempty"`
	// Policy by which anchors are chosen, such as `cost-effective`.
	Policy string `json:"policy,omitempty"`
}

// Rooms: All rooms.
type Rooms struct {
	// The rooms, by name. Loopback rooms are called `loopback/` and the participant's id.
	Rooms []RoomSummary `json:"rooms"`
}

// SetGrants: What a participant may do.
type SetGrants struct {
	// The participant's grants from now on, of `publish`, `subscribe`, `enhance` and `data`. The
	// token's other grants stay.
	Grants []Grant `json:"grants"`
}

// Track: A published track.
type Track struct {
	// Id of the track, as in signalling.
	ID string `json:"id"`
	// Kind of the track: `video` or `audio`.
	Kind TrackKind `json:"kind"`
	// Whether the track is muted: it is not forwarded.
	Muted bool `json:"muted"`
	// Whether an operator muted the track, so that its publisher cannot unmute it.
	MutedByOperator bool `json:"muted_by_operator"`
	// Name that the publisher gives the track.
	Name string `json:"name"`
}

// TrackKind: Kind of a track.
type TrackKind string

// The words of TrackKind.
const (
	TrackKindAudio TrackKind = "audio"
	TrackKindVideo TrackKind = "video"
)

// Waiting: A participant in a lobby.
type Waiting struct {
	// Id by which the participant is admitted or refused.
	ID string `json:"id"`
	// The display name.
	Name string `json:"name"`
	// The identity in the participant's access token.
	Identity string `json:"identity,omitempty"`
}
