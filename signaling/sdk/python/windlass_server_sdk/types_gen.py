"""Made from signaling/sdk/openapi.json by `cargo xtask protocol`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Optional

__all__ = [
    "AdminError",
    "AdminErrorCode",
    "Answered",
    "Ban",
    "Bans",
    "Claims",
    "Draining",
    "Enhancer",
    "Event",
    "EventFile",
    "EventParticipant",
    "EventRecording",
    "EventTrack",
    "EventType",
    "Grant",
    "Lobby",
    "Muted",
    "Participant",
    "Period",
    "Receives",
    "Record",
    "RoomDetails",
    "RoomEntry",
    "RoomPolicy",
    "RoomRecording",
    "RoomSettings",
    "RoomSummary",
    "Rooms",
    "SetGrants",
    "Track",
    "TrackKind",
    "Waiting",
]


@dataclass(frozen=True)
class AdminError:
    """An error of the admin API."""

    code: AdminErrorCode
    """The reason, for programs."""
    hint: str
    """Advice for people on what to do next."""
    message: str
    """Description of the error for people."""


AdminErrorCode = Literal[
    "unauthorized",
    "token_expired",
    "forbidden",
    "malformed",
    "unknown_room",
    "unknown_participant",
    "unknown_track",
    "no_identity",
    "no_recorder",
    "not_recorded",
    "not_writable",
    "too_many_rooms",
    "too_many_rules",
    "shutting_down",
    "internal",
]
"""Error codes, for programs. Stable."""


@dataclass(frozen=True)
class Answered:
    """An answer to a participant in a lobby."""

    admitted: bool
    """Whether the participant may enter."""


@dataclass(frozen=True)
class Ban:
    """A ban of an identity from a room."""

    identity: str
    """The identity."""
    until: int
    """Time at which the ban ends, in seconds since 1970."""


@dataclass(frozen=True)
class Bans:
    """All bans of a room."""

    bans: list[Ban]
    """The bans, sorted by identity."""


@dataclass(frozen=True)
class Claims:
    """The claims of a token (RFC 7519 §4). Other claims are ignored, except `aud`: a token with it is for another
    service.
    """

    exp: float
    """Time at which the token expires, in seconds since 1970."""
    room: str
    """Room of the token; `*` for all."""
    sub: str
    """Identity of the bearer, which has one participant in a room at a time."""
    grants: Optional[list[Grant]] = None
    """Grants of the bearer; by default those of a participant."""
    jti: Optional[str] = None
    """Id of the token, by which it can be revoked."""
    name: Optional[str] = None
    """Display name of the bearer, instead of the client's."""
    nbf: Optional[float] = None
    """Time from which on the token is valid, in seconds since 1970."""


@dataclass(frozen=True)
class Draining:
    """Draining of a server before it ends."""

    seconds: int
    """Maximum time in seconds that rooms have to end; 0: the server ends at once."""


@dataclass(frozen=True)
class Enhancer:
    """Whether the enhancer runs."""

    enabled: bool
    """In requests: whether to run the enhancer. In answers: whether it runs."""


@dataclass(frozen=True)
class Event:
    """The body of a webhook."""

    at: float
    """Time of the event, in seconds since 1970."""
    id: str
    """Id of the event, the same in all attempts; also in the header `webhook-id`."""
    room: str
    """The room."""
    type: EventType
    """Kind of the event."""
    participant: Optional[EventParticipant] = None
    """The participant."""
    recording: Optional[EventRecording] = None
    """The recording."""
    track: Optional[EventTrack] = None
    """The track."""


@dataclass(frozen=True)
class EventFile:
    """A file of a recording."""

    bytes: int
    """Size of the file in bytes."""
    duration: float
    """Length of the file in seconds."""
    file: str
    """Name of the file."""
    offset: float
    """Time at which the file begins, in seconds since the recording's start."""
    participant: str
    """Id of the recorded participant."""
    tracks: list[str]
    """Tracks in the file: `video`, `audio`."""
    enhanced: Optional[str] = None
    """The file with the enhanced picture, in the same folder."""
    identity: Optional[str] = None
    """Identity in the participant's access token."""


@dataclass(frozen=True)
class EventParticipant:
    """A participant."""

    id: str
    """Id of the participant, as in signalling."""
    name: str
    """Display name of the participant."""
    identity: Optional[str] = None
    """Identity in the participant's access token."""


@dataclass(frozen=True)
class EventRecording:
    """A recording, in webhooks."""

    id: str
    """Name of the recording."""
    bytes: Optional[int] = None
    """Sum of the files' sizes, in bytes."""
    duration: Optional[float] = None
    """Time from the start to the end of the last file, in seconds."""
    error: Optional[str] = None
    """Description of the error for people."""
    files: Optional[list[EventFile]] = None
    """Files with media. Of more than 100 files only the first ones are listed: the manifest has all."""
    manifest: Optional[str] = None
    """Manifest of the recording, in its folder."""
    participant: Optional[str] = None
    """Identity, or else id, of the only participant that is recorded; absent: all are."""
    path: Optional[str] = None
    """Folder of the recording on the server."""
    reason: Optional[str] = None
    """Why the recording ended: `stopped`, `room_empty` or `write_failed`."""


@dataclass(frozen=True)
class EventTrack:
    """A track."""

    id: str
    """Id of the track, as in signalling."""
    kind: TrackKind
    """Kind of the track: `video` or `audio`."""
    name: str
    """Name that the publisher gives the track."""


EventType = Literal[
    "room_started",
    "participant_joined",
    "track_published",
    "track_unpublished",
    "participant_left",
    "room_finished",
    "recording_started",
    "recording_ended",
    "recording_enhanced",
    "recording_stored",
]
"""Kind of an event."""


Grant = Literal[
    "publish",
    "subscribe",
    "enhance",
    "data",
    "moderate",
    "admin",
]
"""A grant: something that an access token allows."""


@dataclass(frozen=True)
class Lobby:
    """The lobby of a room."""

    waiting: list[Waiting]
    """The participants in the lobby, the first one first."""


@dataclass(frozen=True)
class Muted:
    """Whether a track is muted by an operator."""

    muted: bool
    """True: the track is muted until an operator unmutes it. False: its publisher decides."""


@dataclass(frozen=True)
class Participant:
    """A participant of a room."""

    grants: list[Grant]
    """Grants of the participant."""
    id: str
    """Id of the participant, as in signalling."""
    name: str
    """The display name."""
    receives: list[Receives]
    """Rungs that the participant receives of others' video."""
    since: int
    """Time at which the participant joined, in seconds since 1970."""
    tracks: list[Track]
    """Tracks that the participant publishes."""
    identity: Optional[str] = None
    """Identity in the participant's access token."""


@dataclass(frozen=True)
class Period:
    """A duration."""

    seconds: Optional[int] = None
    """Duration in seconds. By default until all tokens that were used have expired, and at least a day."""


@dataclass(frozen=True)
class Receives:
    """The rung that a participant receives of a track."""

    height: int
    """Height of the rung's layer in pixels."""
    rung: str
    """The rung: `q`, `q+`, `h`, `h+` or `f`."""
    track: str
    """Id of the track."""
    width: int
    """Width of the rung's layer in pixels."""


@dataclass(frozen=True)
class Record:
    """Settings of a new recording."""

    enhanced: Optional[bool] = None
    """Whether enhanced pictures are made too, in files of their own, when the recording has ended."""
    participant: Optional[str] = None
    """Id of the only participant to record, also after it comes back with its identity. By default all are recorded."""


@dataclass(frozen=True)
class RoomDetails:
    """A room, with its participants and tracks."""

    participants: list[Participant]
    """Participants of the room, the first one first."""
    room: str
    """Name of the room."""
    max_participants: Optional[int] = None
    """Maximum number of participants. The server's own bound holds too."""
    policy: Optional[str] = None
    """Policy by which anchors are chosen, such as `cost-effective`."""


@dataclass(frozen=True)
class RoomEntry:
    """Restrictions of entering a room."""

    lobby: Optional[bool] = None
    """New participants wait until a moderator or operator admits them."""
    locked: Optional[bool] = None
    """New participants are refused, except moderators and participants that return."""
    seconds: Optional[int] = None
    """Minimum time in seconds, even if the room is empty; by default until five minutes after the last participant
    left.
    """


@dataclass(frozen=True)
class RoomPolicy:
    """The policy by which anchors are chosen."""

    policy: Optional[str]
    """The policy, such as `latency-sensitive`. `null` for a room: the policy of all rooms. `null` for all rooms: the
    policy of the configuration.
    """
    room: Optional[str] = None
    """The room; by default all rooms without a policy of their own."""


@dataclass(frozen=True)
class RoomRecording:
    """The recording of a room."""

    enhanced: bool
    """Whether enhanced pictures are made too, when the recording has ended."""
    recording: str
    """Name of the recording and of its folder."""
    started: float
    """Time of the order to record, in seconds since 1970."""
    participant: Optional[str] = None
    """Identity, or else id, of the only participant that is recorded; absent: all are."""


@dataclass(frozen=True)
class RoomSettings:
    """An operator's settings of a room. Absent settings have the values of the server's configuration."""

    max_participants: Optional[int] = None
    """Maximum number of participants. The server's own bound holds too."""
    policy: Optional[str] = None
    """Policy by which anchors are chosen, such as `cost-effective`."""


@dataclass(frozen=True)
class RoomSummary:
    """A room in short."""

    participants: int
    """Number of participants."""
    room: str
    """Name of the room."""
    tracks: int
    """Number of published tracks."""
    max_participants: Optional[int] = None
    """Maximum number of participants. The server's own bound holds too."""
    policy: Optional[str] = None
    """Policy by which anchors are chosen, such as `cost-effective`."""


@dataclass(frozen=True)
class Rooms:
    """All rooms."""

    rooms: list[RoomSummary]
    """The rooms, by name. Loopback rooms are called `loopback/` and the participant's id."""


@dataclass(frozen=True)
class SetGrants:
    """What a participant may do."""

    grants: list[Grant]
    """The participant's grants from now on, of `publish`, `subscribe`, `enhance` and `data`. The token's other
    grants stay.
    """


@dataclass(frozen=True)
class Track:
    """A published track."""

    id: str
    """Id of the track, as in signalling."""
    kind: TrackKind
    """Kind of the track: `video` or `audio`."""
    muted: bool
    """Whether the track is muted: it is not forwarded."""
    muted_by_operator: bool
    """Whether an operator muted the track, so that its publisher cannot unmute it."""
    name: str
    """Name that the publisher gives the track."""


TrackKind = Literal[
    "audio",
    "video",
]
"""Kind of a track."""


@dataclass(frozen=True)
class Waiting:
    """A participant in a lobby."""

    id: str
    """Id by which the participant is admitted or refused."""
    name: str
    """The display name."""
    identity: Optional[str] = None
    """The identity in the participant's access token."""
