// Made from signaling/sdk/openapi.json by `cargo xtask protocol`.
import { Connection } from "./connection.js";

/**
 * @import {
 *   Answered,
 *   Bans,
 *   Draining,
 *   Enhancer,
 *   Lobby,
 *   Muted,
 *   Period,
 *   Record,
 *   RoomDetails,
 *   RoomEntry,
 *   RoomPolicy,
 *   RoomRecording,
 *   RoomSettings,
 *   Rooms,
 *   SetGrants,
 *   Track,
 * } from "./types.gen.js"
 */

/** A client of the admin API. Each method sends one request. */
export class AdminClient extends Connection {
  /**
   * End this server when its rooms have ended, or gone to other servers, as SIGTERM does. Needs a token for `*`.
   * @returns {Promise<Draining>}
   */
  drain() {
    return this.send("POST", ["drain"]);
  }

  /**
   * Stop the enhancer, while calls go on with plain video, or start it again.
   * @param {Enhancer} body
   * @returns {Promise<Enhancer>}
   */
  switchEnhancer(body) {
    return this.send("POST", ["enhancer"], body);
  }

  /**
   * Set the policy by which anchors are chosen, of a room, or of all rooms without their own.
   * @param {RoomPolicy} body
   * @returns {Promise<RoomPolicy>}
   */
  setPolicy(body) {
    return this.send("POST", ["policy"], body);
  }

  /**
   * Lift a revocation.
   * @param {string} token The token's `jti`.
   * @returns {Promise<void>}
   */
  reinstateToken(token) {
    return this.send("DELETE", ["revoked", token]);
  }

  /**
   * Revoke an access token by its `jti`: its participants are removed, and the token is refused. On all servers of a
   * cluster. Needs a token for `*`.
   * @param {string} token The token's `jti`.
   * @param {Period} body
   * @returns {Promise<void>}
   */
  revokeToken(token, body) {
    return this.send("PUT", ["revoked", token], body);
  }

  /**
   * List the rooms. Needs a token for `*`.
   * @returns {Promise<Rooms>}
   */
  listRooms() {
    return this.send("GET", ["rooms"]);
  }

  /**
   * End a room: its participants are removed, and its settings are deleted.
   * @param {string} room The room's name.
   * @returns {Promise<void>}
   */
  closeRoom(room) {
    return this.send("DELETE", ["rooms", room]);
  }

  /**
   * Show a room.
   * @param {string} room The room's name.
   * @returns {Promise<RoomDetails>}
   */
  getRoom(room) {
    return this.send("GET", ["rooms", room]);
  }

  /**
   * Create a room, or replace its settings. No participant is removed. The room exists until it is deleted or the
   * server stops.
   * @param {string} room The room's name.
   * @param {RoomSettings} body
   * @returns {Promise<RoomDetails>}
   */
  configureRoom(room, body) {
    return this.send("PUT", ["rooms", room], body);
  }

  /**
   * List a room's bans; of the room `*`, those that hold in all.
   * @param {string} room The room's name, or `*`.
   * @returns {Promise<Bans>}
   */
  listBans(room) {
    return this.send("GET", ["rooms", room, "bans"]);
  }

  /**
   * Lift a ban.
   * @param {string} room The room's name, or `*`.
   * @param {string} identity The identity, as tokens say it.
   * @returns {Promise<void>}
   */
  unban(room, identity) {
    return this.send("DELETE", ["rooms", room, "bans", identity]);
  }

  /**
   * Ban an identity from a room, or with the room `*` from all: its participants are removed, and its tokens refused.
   * On all servers of a cluster.
   * @param {string} room The room's name, or `*`.
   * @param {string} identity The identity, as tokens say it.
   * @param {Period} body
   * @returns {Promise<void>}
   */
  ban(room, identity, body) {
    return this.send("PUT", ["rooms", room, "bans", identity], body);
  }

  /**
   * Lock or unlock a room, or set its lobby. On all servers of a cluster.
   * @param {string} room The room's name.
   * @param {RoomEntry} body
   * @returns {Promise<RoomEntry>}
   */
  setEntry(room, body) {
    return this.send("PUT", ["rooms", room, "entry"], body);
  }

  /**
   * Remove a participant. Its client does not rejoin by itself, but may with a valid token.
   * @param {string} room The room's name.
   * @param {string} participant The participant's id.
   * @returns {Promise<void>}
   */
  removeParticipant(room, participant) {
    return this.send("DELETE", ["rooms", room, "participants", participant]);
  }

  /**
   * Restore the grants of a participant's token.
   * @param {string} room The room's name.
   * @param {string} participant The participant's id.
   * @returns {Promise<void>}
   */
  resetGrants(room, participant) {
    return this.send("DELETE", ["rooms", room, "participants", participant, "grants"]);
  }

  /**
   * Set the grants of a participant. What it may no longer do ends at once. Holds for its identity until its tokens
   * have expired.
   * @param {string} room The room's name.
   * @param {string} participant The participant's id.
   * @param {SetGrants} body
   * @returns {Promise<void>}
   */
  setGrants(room, participant, body) {
    return this.send("PUT", ["rooms", room, "participants", participant, "grants"], body);
  }

  /**
   * End the recording of a room.
   * @param {string} room The room's name.
   * @returns {Promise<void>}
   */
  endRecording(room) {
    return this.send("DELETE", ["rooms", room, "recording"]);
  }

  /**
   * Show the recording of a room.
   * @param {string} room The room's name.
   * @returns {Promise<RoomRecording>}
   */
  recording(room) {
    return this.send("GET", ["rooms", room, "recording"]);
  }

  /**
   * Record a room, or one of its participants: tracks as they come, on the servers where they are published. Everybody
   * in the room is told.
   * @param {string} room The room's name.
   * @param {Record} body
   * @returns {Promise<RoomRecording>}
   */
  record(room, body) {
    return this.send("POST", ["rooms", room, "recording"], body);
  }

  /**
   * Mute or unmute a track.
   * @param {string} room The room's name.
   * @param {string} track The track's id.
   * @param {Muted} body
   * @returns {Promise<Track>}
   */
  muteTrack(room, track, body) {
    return this.send("PUT", ["rooms", room, "tracks", track, "muted"], body);
  }

  /**
   * List the participants in a room's lobby.
   * @param {string} room The room's name.
   * @returns {Promise<Lobby>}
   */
  listWaiting(room) {
    return this.send("GET", ["rooms", room, "waiting"]);
  }

  /**
   * Admit or refuse a participant in the lobby.
   * @param {string} room The room's name.
   * @param {string} waiting The id of the participant in the lobby.
   * @param {Answered} body
   * @returns {Promise<void>}
   */
  answerWaiting(room, waiting, body) {
    return this.send("PUT", ["rooms", room, "waiting", waiting], body);
  }
}
