/** What a moderator (a participant whose access token grants `moderate`) may do to others while the call runs. */
import type { Moderate } from "./protocol.gen.js";
import type { Grant, ParticipantInfo } from "./protocol.js";

/** What participants may be given, or lose, while the call runs. */
export type CallGrant = Extract<Grant, "publish" | "subscribe" | "enhance">;

/**
 * See the module's head. Each resolves when the server has done it, and rejects with a `WindlassError`: `forbidden` without the grant,
 * `unknown_participant` where somebody has just gone.
 */
export class Moderation {
  /** @internal */
  constructor(private readonly ask: (order: Moderate) => Promise<void>) {}

  /** Lets nobody new in, or (false) ends that. Who is there stays, and may come back after a lost connection. */
  lock(locked = true): Promise<void> {
    return this.ask({ action: "lock", locked });
  }

  /** Lets whoever comes wait until they are admitted, or (false) ends that and lets in who waits. */
  setLobby(lobby = true): Promise<void> {
    return this.ask({ action: "lobby", lobby });
  }

  /** Lets in who waits, by their `id` in `Room.waiting`. */
  admit(waiting: { id: string } | string): Promise<void> {
    return this.ask({ action: "admit", waiting: idOf(waiting) });
  }

  /** Sends away who waits. */
  refuse(waiting: { id: string } | string): Promise<void> {
    return this.ask({ action: "refuse", waiting: idOf(waiting) });
  }

  /** Says what somebody may do from now on. What they do and may not any more ends at once. */
  setGrants(participant: ParticipantInfo | string, grants: readonly CallGrant[]): Promise<void> {
    return this.ask({ action: "grants", participant: idOf(participant), grants: [...grants] });
  }

  /** Removes somebody. A token that is still good lets them in again, unless the room is locked. */
  remove(participant: ParticipantInfo | string): Promise<void> {
    return this.ask({ action: "remove", participant: idOf(participant) });
  }

  /** Removes somebody, and lets nobody of their identity in, for so many seconds, or as long as tokens live. */
  ban(participant: ParticipantInfo | string, seconds?: number): Promise<void> {
    const time = seconds === undefined ? {} : { seconds };
    return this.ask({ action: "ban", participant: idOf(participant), ...time });
  }

  /** Ends a ban. */
  unban(identity: string): Promise<void> {
    return this.ask({ action: "unban", identity });
  }

  /** Mutes somebody's track, whatever they say, or (false) leaves that to them again. */
  mute(track: { id: string } | string, muted = true): Promise<void> {
    return this.ask({ action: "mute", track: idOf(track), muted });
  }
}

const idOf = (one: { id: string } | string): string => (typeof one === "string" ? one : one.id);
