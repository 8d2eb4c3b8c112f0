/** What a moderator, a participant with the grant `moderate`, may do to others during a call. */
import { badOption } from "./errors.js";
import { finite, oneOf } from "./option-checks.js";
import type { Moderate } from "./protocol.gen.js";
import type { Grant, ParticipantInfo } from "./protocol.js";

/** The grants that a moderator can give and take. */
export type CallGrant = Extract<Grant, "publish" | "subscribe" | "enhance" | "data">;

const CALL_GRANTS: readonly CallGrant[] = ["publish", "subscribe", "enhance", "data"];

/**
 * The requests of a moderator. Each resolves when the server has carried it out. Each rejects with a `WindlassError`:
 * `bad_option`; `forbidden` without the grant `moderate`, `unknown_participant` or `unknown_track` where that has
 * ended, `connection_lost` without a connection, `unreachable` where the server does not answer within 10 s.
 */
export class Moderation {
  /** @internal */
  constructor(private readonly send: (request: Moderate) => Promise<void>) {}

  /**
   * Locks the room for newcomers, or (false) opens it. Participants stay, and may come back after a lost connection.
   */
  async lock(locked = true): Promise<void> {
    await this.send({ action: "lock", locked });
  }

  /** Puts newcomers into a lobby until they are admitted, or (false) ends that and admits those in the lobby. */
  async setLobby(lobby = true): Promise<void> {
    await this.send({ action: "lobby", lobby });
  }

  /** Admits a participant from the lobby. The `id` is from `Room.waiting`. */
  async admit(waiting: { id: string } | string): Promise<void> {
    await this.send({ action: "admit", waiting: idOf(waiting) });
  }

  /** Refuses a participant in the lobby. */
  async refuse(waiting: { id: string } | string): Promise<void> {
    await this.send({ action: "refuse", waiting: idOf(waiting) });
  }

  /** Replaces the grants of a participant. What is no longer allowed ends at once. */
  async setGrants(participant: Pick<ParticipantInfo, "id"> | string, grants: readonly CallGrant[]): Promise<void> {
    const given: unknown = grants;
    if (!Array.isArray(given)) throw badOption("The grants are no list.", `Give a list, such as ["subscribe"].`);
    for (const grant of grants) oneOf("grant of a call", grant, CALL_GRANTS);
    await this.send({ action: "grants", participant: idOf(participant), grants: [...grants] });
  }

  /** Removes a participant. It may come back with a valid token, unless the room is locked. */
  async remove(participant: Pick<ParticipantInfo, "id"> | string): Promise<void> {
    await this.send({ action: "remove", participant: idOf(participant) });
  }

  /** Removes a participant, and refuses its identity for `seconds`. Default: as long as tokens are valid. */
  async ban(participant: Pick<ParticipantInfo, "id"> | string, seconds?: number): Promise<void> {
    const time = seconds === undefined ? {} : { seconds: finite("time", seconds, 0) };
    await this.send({ action: "ban", participant: idOf(participant), ...time });
  }

  /** Ends the ban of an identity. */
  async unban(identity: string): Promise<void> {
    await this.send({ action: "unban", identity: idOf(identity) });
  }

  /** Mutes a track of a participant, or (false) lets its owner unmute it again. */
  async mute(track: { id: string } | string, muted = true): Promise<void> {
    await this.send({ action: "mute", track: idOf(track), muted });
  }
}

function idOf(item: { id: string } | string): string {
  const id: unknown = typeof item === "string" ? item : Object(item).id;
  if (typeof id === "string") return id;
  throw badOption("It is no participant and no track.", "Give one of the call, or its id.");
}
