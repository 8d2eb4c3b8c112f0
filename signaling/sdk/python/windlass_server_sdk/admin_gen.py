"""Made from signaling/sdk/openapi.json by `cargo xtask protocol`."""

from __future__ import annotations

from typing import Optional

from . import types_gen as types
from .connection import Connection


class AdminClient(Connection):
    """A client of the admin API. Each method sends one request."""

    def drain(self) -> types.Draining:
        """End this server when its rooms have ended, or gone to other servers, as SIGTERM does. Needs a token for
        `*`.
        """
        return self._read(types.Draining, self._send("POST", ["drain"]))

    def switch_enhancer(self, *, enabled: bool) -> types.Enhancer:
        """Stop the enhancer, while calls go on with plain video, or start it again."""
        body = types.Enhancer(enabled=enabled)
        return self._read(types.Enhancer, self._send("POST", ["enhancer"], body))

    def set_policy(self, *, policy: Optional[str], room: Optional[str] = None) -> types.RoomPolicy:
        """Set the policy by which anchors are chosen, of a room, or of all rooms without their own."""
        body = types.RoomPolicy(policy=policy, room=room)
        return self._read(types.RoomPolicy, self._send("POST", ["policy"], body))

    def reinstate_token(self, token: str) -> None:
        """Lift a revocation."""
        self._send("DELETE", ["revoked", token])

    def revoke_token(self, token: str, *, seconds: Optional[int] = None) -> None:
        """Revoke an access token by its `jti`: its participants are removed, and the token is refused. On all
        servers of a cluster. Needs a token for `*`.
        """
        body = types.Period(seconds=seconds)
        self._send("PUT", ["revoked", token], body)

    def list_rooms(self) -> types.Rooms:
        """List the rooms. Needs a token for `*`."""
        return self._read(types.Rooms, self._send("GET", ["rooms"]))

    def close_room(self, room: str) -> None:
        """End a room: its participants are removed, and its settings are deleted."""
        self._send("DELETE", ["rooms", room])

    def get_room(self, room: str) -> types.RoomDetails:
        """Show a room."""
        return self._read(types.RoomDetails, self._send("GET", ["rooms", room]))

    def configure_room(
        self,
        room: str,
        *,
        max_participants: Optional[int] = None,
        policy: Optional[str] = None,
    ) -> types.RoomDetails:
        """Create a room, or replace its settings. No participant is removed. The room exists until it is deleted or
        the server stops.
        """
        body = types.RoomSettings(max_participants=max_participants, policy=policy)
        return self._read(types.RoomDetails, self._send("PUT", ["rooms", room], body))

    def list_bans(self, room: str) -> types.Bans:
        """List a room's bans; of the room `*`, those that hold in all."""
        return self._read(types.Bans, self._send("GET", ["rooms", room, "bans"]))

    def unban(self, room: str, identity: str) -> None:
        """Lift a ban."""
        self._send("DELETE", ["rooms", room, "bans", identity])

    def ban(self, room: str, identity: str, *, seconds: Optional[int] = None) -> None:
        """Ban an identity from a room, or with the room `*` from all: its participants are removed, and its tokens
        refused. On all servers of a cluster.
        """
        body = types.Period(seconds=seconds)
        self._send("PUT", ["rooms", room, "bans", identity], body)

    def set_entry(
        self,
        room: str,
        *,
        lobby: Optional[bool] = None,
        locked: Optional[bool] = None,
        seconds: Optional[int] = None,
    ) -> types.RoomEntry:
        """Lock or unlock a room, or set its lobby. On all servers of a cluster."""
        body = types.RoomEntry(lobby=lobby, locked=locked, seconds=seconds)
        return self._read(types.RoomEntry, self._send("PUT", ["rooms", room, "entry"], body))

    def remove_participant(self, room: str, participant: str) -> None:
        """Remove a participant. Its client does not rejoin by itself, but may with a valid token."""
        self._send("DELETE", ["rooms", room, "participants", participant])

    def reset_grants(self, room: str, participant: str) -> None:
        """Restore the grants of a participant's token."""
        self._send("DELETE", ["rooms", room, "participants", participant, "grants"])

    def set_grants(self, room: str, participant: str, *, grants: list[types.Grant]) -> None:
        """Set the grants of a participant. What it may no longer do ends at once. Holds for its identity until its
        tokens have expired.
        """
        body = types.SetGrants(grants=grants)
        self._send("PUT", ["rooms", room, "participants", participant, "grants"], body)

    def end_recording(self, room: str) -> None:
        """End the recording of a room."""
        self._send("DELETE", ["rooms", room, "recording"])

    def recording(self, room: str) -> types.RoomRecording:
        """Show the recording of a room."""
        return self._read(types.RoomRecording, self._send("GET", ["rooms", room, "recording"]))

    def record(
        self,
        room: str,
        *,
        enhanced: Optional[bool] = None,
        participant: Optional[str] = None,
    ) -> types.RoomRecording:
        """Record a room, or one of its participants: tracks as they come, on the servers where they are published.
        Everybody in the room is told.
        """
        body = types.Record(enhanced=enhanced, participant=participant)
        return self._read(types.RoomRecording, self._send("POST", ["rooms", room, "recording"], body))

    def mute_track(self, room: str, track: str, *, muted: bool) -> types.Track:
        """Mute or unmute a track."""
        body = types.Muted(muted=muted)
        return self._read(types.Track, self._send("PUT", ["rooms", room, "tracks", track, "muted"], body))

    def list_waiting(self, room: str) -> types.Lobby:
        """List the participants in a room's lobby."""
        return self._read(types.Lobby, self._send("GET", ["rooms", room, "waiting"]))

    def answer_waiting(self, room: str, waiting: str, *, admitted: bool) -> None:
        """Admit or refuse a participant in the lobby."""
        body = types.Answered(admitted=admitted)
        self._send("PUT", ["rooms", room, "waiting", waiting], body)
