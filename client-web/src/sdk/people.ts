/**
 * The participants of a room as lasting objects. A session announces participants and tracks again after a reconnect or
 * a migration, often with other ids; here each is found again, so that a page keeps what it shows.
 */
import { type Outlet, Participant } from "./participant.js";
import type { ConnectionQuality, ParticipantInfo } from "./protocol.js";
import type { RemoteTrack } from "./tracks.js";

/** What it needs of its room. */
export interface PeopleHost {
  /** This participant's id. */
  self(): ParticipantInfo;
  /** Whether there is a connection: without one, who is gone may be back. */
  connected(): boolean;
  /** Where elements of participants play. */
  readonly outlet: Outlet;
  /** Called for each new participant. */
  came(participant: Participant): void;
  /** Called for each that has another name or other attributes. */
  changed(participant: Participant): void;
  /** Called for each that has left. */
  left(participant: Participant): void;
}

/** Time after a reconnect in which somebody with an identity may still come back from it too, milliseconds. */
const GRACE_MS = 6000;

/** The participants of a room, each the same object after a reconnect or a migration. */
export class People {
  private readonly byId = new Map<string, Participant>();
  /** Participants who were away and have been announced again, while the rest has not. */
  private readonly returned = new Set<Participant>();
  /** Whether all are announced: false from the loss of the connection until then. */
  private settled = true;
  private grace: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly host: PeopleHost) {}

  /** All that are there or away, in the order in which they came; this participant only in a loopback room. */
  get all(): Participant[] {
    return [...new Set(this.byId.values())];
  }

  get(id: string): Participant | undefined {
    return this.byId.get(id);
  }

  /** Notes who speaks. */
  speaks(id: string): Participant | undefined {
    for (const participant of this.all) participant.setSpeaking(participant.id === id);
    return this.byId.get(id);
  }

  /** Notes the quality of somebody's connection. */
  quality(id: string, quality: ConnectionQuality): Participant | undefined {
    const participant = this.byId.get(id);
    if (participant?.id !== id) return undefined;
    participant.setQuality(quality);
    return participant;
  }

  trackMuted(track: RemoteTrack): void {
    this.byId.get(track.participant)?.changed();
  }

  /**
   * The call has announced again who is there, with their tracks. Who is away still has left; somebody with an identity
   * may come back a little later, as after the end of a server.
   */
  announced(): void {
    if (!this.host.connected()) return;
    this.settled = true;
    for (const participant of this.all.filter(({ away }) => away)) {
      if (this.returned.has(participant)) participant.setAway(false);
      // This participant's own tracks come later.
      else if (participant.identity === undefined && !participant.isSelf) this.remove(participant);
    }
    this.returned.clear();
    clearTimeout(this.grace);
    this.grace = setTimeout(() => {
      if (!this.settled) return;
      for (const participant of this.all) if (participant.away) this.remove(participant);
    }, GRACE_MS);
  }

  /** The call is over. */
  end(): void {
    clearTimeout(this.grace);
    for (const participant of this.all) this.remove(participant);
  }

  join(info: ParticipantInfo): void {
    const known = this.predecessor(info);
    if (known === undefined) {
      this.add(info, false);
      return;
    }
    // Its former id stays known until the former session says that it has left.
    this.byId.set(info.id, known);
    this.become(known, info);
    this.back(known);
  }

  /** Notes what a participant says of itself now. */
  change(info: ParticipantInfo): void {
    const known = this.byId.get(info.id);
    if (known !== undefined && known.id === info.id) this.become(known, info);
  }

  /** The sender of a message; `was`: its id before. In a loopback room this participant too. */
  sender(id: string, was: string | undefined): Participant | undefined {
    const known = this.byId.get(id) ?? (was === undefined ? undefined : this.byId.get(was));
    return known ?? (id === this.host.self().id ? this.itself() : undefined);
  }

  private become(known: Participant, info: ParticipantInfo): void {
    if (known.become(info)) this.host.changed(known);
  }

  /** Notes that somebody is there again. What it sends is announced after it: until then its last picture stays. */
  private back(participant: Participant): void {
    if (this.settled) participant.setAway(false);
    else this.returned.add(participant);
  }

  /** Who `info` was before: by the server's word, or after a reconnect by its id or identity. */
  private predecessor({ id, was, identity }: ParticipantInfo): Participant | undefined {
    const former = was === undefined ? undefined : this.byId.get(was);
    // Where somebody has come in its place already, another one with the same former id is somebody else.
    const same = this.byId.get(id) ?? (former?.id === was ? former : undefined);
    if (same !== undefined || identity === undefined) return same;
    return this.all.find((other) => other.away && other.identity === identity);
  }

  leave(id: string): void {
    const participant = this.byId.get(id);
    if (participant === undefined) return;
    if (participant.id !== id) {
      this.byId.delete(id);
    } else if (this.host.connected()) {
      this.remove(participant);
    } else {
      this.settled = false;
      this.returned.delete(participant);
      participant.setAway(true);
    }
  }

  addTrack(track: RemoteTrack): void {
    const former = track.replaces === null ? undefined : this.byId.get(track.replaces.participant);
    let owner = this.byId.get(track.participant);
    if (former !== undefined && owner !== former && former.id === track.replaces?.participant) {
      // A server that does not say who somebody was: its tracks do.
      const { name, identity, attributes } = owner ?? former;
      if (owner !== undefined) this.remove(owner);
      this.byId.set(track.participant, former);
      const info = { id: track.participant, name, attributes, ...(identity === undefined ? {} : { identity }) };
      this.become(former, info);
      owner = former;
    }
    owner ??= this.ownerOf(track);
    owner.addTrack(track);
  }

  /** The participant of a track whose owner was not announced: in a loopback room, this one. */
  private ownerOf(track: RemoteTrack): Participant {
    return track.participant === this.host.self().id
      ? this.itself()
      : this.add({ id: track.participant, name: "" }, false);
  }

  /** This participant, in a loopback room. */
  private itself(): Participant {
    const self = this.host.self();
    const known = this.all.find((participant) => participant.isSelf);
    if (known === undefined) return this.add(self, true);
    this.byId.set(self.id, known);
    this.become(known, self);
    this.back(known);
    return known;
  }

  removeTrack(track: RemoteTrack): void {
    const owner = this.byId.get(track.participant);
    owner?.removeTrack(track, this.host.connected());
    // In a loopback room nobody announces this participant: its tracks do.
    if (owner?.isSelf === true && owner.tracks.length === 0) this.leave(owner.id);
  }

  private add(info: ParticipantInfo, isSelf: boolean): Participant {
    const participant = new Participant(info, isSelf, this.host.outlet);
    this.byId.set(info.id, participant);
    this.host.came(participant);
    return participant;
  }

  private remove(participant: Participant): void {
    for (const [id, other] of this.byId) if (other === participant) this.byId.delete(id);
    participant.leave();
    this.host.left(participant);
  }
}
