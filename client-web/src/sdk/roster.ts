/**
 * The other participants of a room. A participant that migrated from another server is pending while its predecessor,
 * the same person on the former server, is still present: it is announced when the predecessor leaves.
 */
import type { ParticipantInfo } from "./protocol.js";

export type Presence = "present" | "pending";

/** The other participants of a session, present or pending. */
export class Roster {
  private readonly entries = new Map<string, { readonly info: ParticipantInfo; readonly presence: Presence }>();

  /** The participants that are announced, in that order. */
  get present(): ParticipantInfo[] {
    return [...this.entries.values()].flatMap(({ info, presence }) => (presence === "present" ? [info] : []));
  }

  /** The participant, present or pending. */
  get(id: string): ParticipantInfo | undefined {
    return this.entries.get(id)?.info;
  }

  presence(id: string): Presence | undefined {
    return this.entries.get(id)?.presence;
  }

  /**
   * Adds a participant, pending if its predecessor is among `present`. Returns its presence; undefined where it was
   * known already.
   */
  add(info: ParticipantInfo, present: readonly ParticipantInfo[]): Presence | undefined {
    const { id, was } = info;
    if (this.entries.has(id)) return undefined;
    const waits = was !== undefined && was !== id && present.some((other) => other.id === was);
    const presence = waits ? "pending" : "present";
    this.entries.set(id, { info, presence });
    return presence;
  }

  /** Makes one pending successor of `id` present, and returns it. */
  admitSuccessor(id: string): ParticipantInfo | undefined {
    const successor = [...this.entries.values()].find(
      ({ info, presence }) => presence === "pending" && info.was === id,
    )?.info;
    if (successor === undefined) return undefined;
    this.entries.delete(successor.id); // to the end of the order
    this.entries.set(successor.id, { info: successor, presence: "present" });
    return successor;
  }

  /** Notes another name or other attributes, and returns the participant as it is now; undefined: it is not known. */
  change(id: string, said: Pick<ParticipantInfo, "name" | "attributes">): ParticipantInfo | undefined {
    const entry = this.entries.get(id);
    if (entry === undefined) return undefined;
    const { attributes: _, ...rest } = entry.info;
    const info = { ...rest, ...said };
    this.entries.set(id, { info, presence: entry.presence });
    return info;
  }

  remove(id: string): void {
    this.entries.delete(id);
  }
}
