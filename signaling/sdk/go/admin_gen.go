// Made from signaling/sdk/openapi.json by `cargo xtask protocol`. DO NOT EDIT.

package windlass

import "context"

// Drain: End this server when its rooms have ended, or gone to other servers, as SIGTERM does.
// Needs a token for `*`.
func (c *AdminClient) Drain(ctx context.Context) (*Draining, error) {
	return ask[Draining](ctx, c, "POST", []string{"drain"}, nil)
}

// SwitchEnhancer: Stop the enhancer, while calls go on with plain video, or start it again.
func (c *AdminClient) SwitchEnhancer(ctx context.Context, body Enhancer) (*Enhancer, error) {
	return ask[Enhancer](ctx, c, "POST", []string{"enhancer"}, body)
}

// SetPolicy: Set the policy by which anchors are chosen, of a room, or of all rooms without their
// own.
func (c *AdminClient) SetPolicy(ctx context.Context, body RoomPolicy) (*RoomPolicy, error) {
	return ask[RoomPolicy](ctx, c, "POST", []string{"policy"}, body)
}

// ReinstateToken: Lift a revocation.
func (c *AdminClient) ReinstateToken(ctx context.Context, token string) error {
	return send(ctx, c, "DELETE", []string{"revoked", token}, nil)
}

// RevokeToken: Revoke an access token by its `jti`: its participants are removed, and the token is
// refused. On all servers of a cluster. Needs a token for `*`.
func (c *AdminClient) RevokeToken(ctx context.Context, token string, body Period) error {
	return send(ctx, c, "PUT", []string{"revoked", token}, body)
}

// ListRooms: List the rooms. Needs a token for `*`.
func (c *AdminClient) ListRooms(ctx context.Context) (*Rooms, error) {
	return ask[Rooms](ctx, c, "GET", []string{"rooms"}, nil)
}

// CloseRoom: End a room: its participants are removed, and its settings are deleted.
func (c *AdminClient) CloseRoom(ctx context.Context, room string) error {
	return send(ctx, c, "DELETE", []string{"rooms", room}, nil)
}

// GetRoom: Show a room.
func (c *AdminClient) GetRoom(ctx context.Context, room string) (*RoomDetails, error) {
	return ask[RoomDetails](ctx, c, "GET", []string{"rooms", room}, nil)
}

// ConfigureRoom: Create a room, or replace its settings. No participant is removed. The room exists
// until it is deleted or the server stops.
func (c *AdminClient) ConfigureRoom(ctx context.Context, room string, body RoomSettings) (*RoomDetails, error) {
	return ask[RoomDetails](ctx, c, "PUT", []string{"rooms", room}, body)
}

// ListBans: List a room's bans; of the room `*`, those that hold in all.
func (c *AdminClient) ListBans(ctx context.Context, room string) (*Bans, error) {
	return ask[Bans](ctx, c, "GET", []string{"rooms", room, "bans"}, nil)
}

// Unban: Lift a ban.
func (c *AdminClient) Unban(ctx context.Context, room, identity string) error {
	return send(ctx, c, "DELETE", []string{"rooms", room, "bans", identity}, nil)
}

// Ban: Ban an identity from a room, or with the room `*` from all: its participants are removed,
// and its tokens refused. On all servers of a cluster.
func (c *AdminClient) Ban(ctx context.Context, room, identity string, body Period) error {
	return send(ctx, c, "PUT", []string{"rooms", room, "bans", identity}, body)
}

// SetEntry: Lock or unlock a room, or set its lobby. On all servers of a cluster.
func (c *AdminClient) SetEntry(ctx context.Context, room string, body RoomEntry) (*RoomEntry, error) {
	return ask[RoomEntry](ctx, c, "PUT", []string{"rooms", room, "entry"}, body)
}

// RemoveParticipant: Remove a participant. Its client does not rejoin by itself, but may with a
// valid token.
func (c *AdminClient) RemoveParticipant(ctx context.Context, room, participant string) error {
	return send(ctx, c, "DELETE", []string{"rooms", room, "participants", participant}, nil)
}

// ResetGrants: Restore the grants of a participant's token.
func (c *AdminClient) ResetGrants(ctx context.Context, room, participant string) error {
	return send(ctx, c, "DELETE", []string{"rooms", room, "participants", participant, "grants"}, nil)
}

// SetGrants: Set the grants of a participant. What it may no longer do ends at once. Holds for its
// identity until its tokens have expired.
func (c *AdminClient) SetGrants(ctx context.Context, room, participant string, body SetGrants) error {
	return send(ctx, c, "PUT", []string{"rooms", room, "participants", participant, "grants"}, body)
}

// EndRecording: End the recording of a room.
func (c *AdminClient) EndRecording(ctx context.Context, room string) error {
	return send(ctx, c, "DELETE", []string{"rooms", room, "recording"}, nil)
}

// Recording: Show the recording of a room.
func (c *AdminClient) Recording(ctx context.Context, room string) (*RoomRecording, error) {
	return ask[RoomRecording](ctx, c, "GET", []string{"rooms", room, "recording"}, nil)
}

// Record: Record a room, or one of its participants: tracks as they come, on the servers where they
// are published. Everybody in the room is told.
func (c *AdminClient) Record(ctx context.Context, room string, body Record) (*RoomRecording, error) {
	return ask[RoomRecording](ctx, c, "POST", []string{"rooms", room, "recording"}, body)
}

// MuteTrack: Mute or unmute a track.
func (c *AdminClient) MuteTrack(ctx context.Context, room, track string, body Muted) (*Track, error) {
	return ask[Track](ctx, c, "PUT", []string{"rooms", room, "tracks", track, "muted"}, body)
}

// ListWaiting: List the participants in a room's lobby.
func (c *AdminClient) ListWaiting(ctx context.Context, room string) (*Lobby, error) {
	return ask[Lobby](ctx, c, "GET", []string{"rooms", room, "waiting"}, nil)
}

// AnswerWaiting: Admit or refuse a participant in the lobby.
func (c *AdminClient) AnswerWaiting(ctx context.Context, room, waiting string, body Answered) error {
	return send(ctx, c, "PUT", []string{"rooms", room, "waiting", waiting}, body)
}
