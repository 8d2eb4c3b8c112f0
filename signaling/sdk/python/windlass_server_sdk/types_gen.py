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
    "RoomDoor",
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
    """What to do next, for people."""
    message: str
    """What happened, for people."""


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
    """Whether it may enter."""


@dataclass(frozen=True)
class Ban:
    """A ban of an identity from a room."""

    identity: str
    """The identity."""
    until: int
    """When it ends, in seconds since 1970."""


@dataclass(frozen=True)
class Bans:
    """All bans of a room."""

    bans: list[Ban]
    """By identity."""


@dataclass(frozen=True)
class Claims:
    """The claims of a token (RFC 7519 §4). Others are ignored, except `aud`: such a token is for another service."""

    exp: float
    """Expiry, in seconds since 1970."""
    room: str
    """The room; `*` for all."""
    sub: str
    """The identity, which has one participant in a room at a time."""
    grants: Optional[list[Grant]] = None
    """The grants; by default those of a participant."""
    jti: Optional[str] = None
    """The token's id, by which it can be revoked."""
    name: Optional[str] = None
    """The display name, instead of the client's."""
    nbf: Optional[float] = None
    """From when on it is valid, in seconds since 1970."""


@dataclass(frozen=True)
class Draining:
    """How a server ends."""

    seconds: int
    """The longest time in seconds that rooms have to end; 0: it ends at once."""


@dataclass(frozen=True)
class Enhancer:
    """Whether the enhancer runs."""

    enabled: bool
    """In requests: whether to run it. In answers: whether it runs."""


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
    """What happened."""
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
    """Its size."""
    duration: float
    """Its length in seconds."""
    file: str
    """Its name."""
    offset: float
    """When it begins, in seconds since the recording did."""
    participant: str
    """The participant's id."""
    tracks: list[str]
    """Its tracks: `video`, `audio`."""
    identity: Optional[str] = None
    """The identity in its access token."""


@dataclass(frozen=True)
class EventParticipant:
    """A participant."""

    id: str
    """The id, as in signalling."""
    name: str
    """The display name."""
    identity: Optional[str] = None
    """The identity in its access token."""


@dataclass(frozen=True)
class EventRecording:
    """A recording, in webhooks."""

    id: str
    """Its name."""
    bytes: Optional[int] = None
    """Sum of the sizes of its files."""
    duration: Optional[float] = None
    """Time from the start to the end of the last file, in seconds."""
    error: Optional[str] = None
    """What went wrong, for people."""
    files: Optional[list[EventFile]] = None
    """Its media; of more than 100 files the first ones: the manifest has all."""
    manifest: Optional[str] = None
    """Its manifest, in that folder."""
    participant: Optional[str] = None
    """The identity or the id of the participant that alone is recorded."""
    path: Optional[str] = None
    """Its folder on the server."""
    reason: Optional[str] = None
    """Why it ended: `stopped`, `room_empty` or `write_failed`."""


@dataclass(frozen=True)
class EventTrack:
    """A track."""

    id: str
    """The id, as in signalling."""
    kind: TrackKind
    """`video` or `audio`."""
    name: str
    """The publisher's name for it."""


EventType = Literal[
    "room_started",
    "room_finished",
    "participant_joined",
    "participant_left",
    "track_published",
    "track_unpublished",
    "recording_started",
    "recording_ended",
]
"""What happened."""


Grant = Literal[
    "publish",
    "subscribe",
    "enhance",
    "data",
    "moderate",
    "admin",
]
"""Something that an access token allows."""


@dataclass(frozen=True)
class Lobby:
    """The lobby of a room."""

    waiting: list[Waiting]
    """The participants in it, the first one first."""


@dataclass(frozen=True)
class Muted:
    """Whether a track is muted."""

    muted: bool
    """True: it is muted until an operator unmutes it. False: its publisher decides."""


@dataclass(frozen=True)
class Participant:
    """A participant of a room."""

    grants: list[Grant]
    """Its grants."""
    id: str
    """The id, as in signalling."""
    name: str
    """The display name."""
    receives: list[Receives]
    """The rungs that it receives of others' video."""
    since: int
    """When it joined, in seconds since 1970."""
    tracks: list[Track]
    """Its published tracks."""
    identity: Optional[str] = None
    """The identity in its access token."""


@dataclass(frozen=True)
class Period:
    """A duration."""

    seconds: Optional[int] = None
    """In seconds; by default until all tokens that were used have expired, and at least a day."""


@dataclass(frozen=True)
class Receives:
    """The rung that a participant receives of a track."""

    height: int
    """Height of its layer in pixels."""
    rung: str
    """`q`, `q+`, `h`, `h+` or `f`."""
    track: str
    """Id of the track."""
    width: int
    """Width of its layer in pixels."""


@dataclass(frozen=True)
class Record:
    """What to record of a room."""

    participant: Optional[str] = None
    """Id of the participant that alone is recorded, also when it comes back with its identity; by default all."""


@dataclass(frozen=True)
class RoomDetails:
    """A room, with its participants and tracks."""

    participants: list[Participant]
    """Its participants, the first one first."""
    room: str
    """Its name."""
    max_participants: Optional[int] = None
    """Maximum number of participants. The server's own bound holds too."""
    policy: Optional[str] = None
    """How anchors are chosen, such as `cost-effective`."""


@dataclass(frozen=True)
class RoomDoor:
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
    """Such as `latency-sensitive`; `null` restores the policy of all rooms, or for all rooms that of the
    configuration.
    """
    room: Optional[str] = None
    """The room; by default all rooms without a policy of their own."""


@dataclass(frozen=True)
class RoomRecording:
    """The recording of a room."""

    recording: str
    """Its name, which is that of its folder."""
    started: float
    """When it was ordered, in seconds since 1970."""
    participant: Optional[str] = None
    """The identity, or else the id, of the participant that alone is recorded."""


@dataclass(frozen=True)
class RoomSettings:
    """An operator's settings of a room. Absent settings have the values of the server's configuration."""

    max_participants: Optional[int] = None
    """Maximum number of participants. The server's own bound holds too."""
    policy: Optional[str] = None
    """How anchors are chosen, such as `cost-effective`."""


@dataclass(frozen=True)
class RoomSummary:
    """A room in short."""

    participants: int
    """Number of participants."""
    room: str
    """Its name."""
    tracks: int
    """Number of published tracks."""
    max_participants: Optional[int] = None
    """Maximum number of participants. The server's own bound holds too."""
    policy: Optional[str] = None
    """How anchors are chosen, such as `cost-effective`."""


@dataclass(frozen=True)
class Rooms:
    """All rooms."""

    rooms: list[RoomSummary]
    """By name. Loopback rooms are called `loopback/` and the participant's id."""


@dataclass(frozen=True)
class SetGrants:
    """What a participant may do."""

    grants: list[Grant]
    """Its grants from now on, of `publish`, `subscribe`, `enhance` and `data`; the token's other grants stay."""


@dataclass(frozen=True)
class Track:
    """A published track."""

    id: str
    """The id, as in signalling."""
    kind: TrackKind
    """`video` or `audio`."""
    muted: bool
    """Whether it is muted: not forwarded."""
    muted_by_operator: bool
    """Whether an operator muted it, so that its publisher cannot unmute it."""
    name: str
    """The publisher's name for it."""


TrackKind = Literal[
    "audio",
    "video",
]
"""Audio or video."""


@dataclass(frozen=True)
class Waiting:
    """A participant in a lobby."""

    id: str
    """The id with which it is answered."""
    name: str
    """The display name."""
    identity: Optional[str] = None
    """The identity in its access token."""
