/**
 * One's stay in a room on one server: the socket, the connection, and who and what is there. A call is one visit after
 * another: a connection that was lost is followed by a new one, and a room that moves to another server is visited there
 * before one leaves the former.
 */
import type { Assets } from "./assets.js";
import { Connection } from "./connection.js";
import { Emitter } from "./emitter.js";
import { left, Moved, unreachable, WindlassError } from "./errors.js";
import { fitting } from "./fitting.js";
import type { OutputKind } from "./output.js";
import type { Moderate } from "./protocol.gen.js";
import {
  ANCHOR_CODECS,
  type Grant,
  type ParticipantInfo,
  PROTOCOL_VERSION,
  type Rung,
  type ServerMessage,
  type TrackInfo,
  type WaitingInfo,
  type Welcome,
} from "./protocol.js";
import type { Publication } from "./publication.js";
import type { Relay } from "./relay.js";
import { SignalSocket } from "./socket.js";
import { EnhancedTrack, type RemoteTrack, type RungInfo, type TrackStats } from "./tracks.js";

const WELCOME_TIMEOUT_MS = 8000;
/** Whoever takes the place of somebody is shown once that one has left, and after this time in any case. */
const WITHHELD_MS = 6000;
/** How often one looks whether what is received is as good as what was. */
const LOOK_MS = 50;
/** Once every picture is there, it may take so long until it is as good as before. */
const BETTER_MS = 1500;

/** What happens in a room, wherever that is. */
export interface CallEvents {
  participantJoined: ParticipantInfo;
  participantLeft: ParticipantInfo;
  /** Where {@link RemoteTrack.replaces} is set, it comes in the place of that one, which is removed after it. */
  trackAdded: RemoteTrack;
  /** The track itself is told: one that has come in its place may have the same id. */
  trackRemoved: RemoteTrack;
  trackMuted: { track: RemoteTrack; muted: boolean };
  /** An operator has muted one's own track, or ended that. While it is so, it cannot be unmuted from here. */
  publicationMuted: { publication: Publication; muted: boolean };
  /** Somebody speaks now, until another does. */
  speaker: ParticipantInfo;
  rung: { track: EnhancedTrack } & RungInfo;
  stats: { track: EnhancedTrack; stats: TrackStats };
  /** What one may do has changed: what one does and may not any more has ended. */
  grants: { grants: readonly string[] };
  /** The room was locked or opened, or has a lobby now, or none. */
  locked: { locked: boolean; lobby: boolean };
  /** Who waits to be let in now; moderators are told. */
  lobby: readonly WaitingInfo[];
  /** The server refused something; the call goes on. */
  refused: WindlassError;
}

/** What a visit tells its room. */
export interface VisitEvents extends CallEvents {
  /** The media path is up. */
  up: undefined;
  /** It is over. */
  lost: WindlassError;
  /** The server does not answer soon. */
  quiet: undefined;
  /** The room goes on elsewhere. */
  moved: Move;
}

/** Where a room goes on. */
export interface Move {
  /** The server's WebSocket. */
  url: string;
  /** Says there whose place one takes. */
  ticket?: string;
  /** Further servers of the cluster. */
  others?: string[];
}

/** Who enters, and how. */
export interface Visitor {
  room: string;
  name: string;
  loopback: boolean;
  token: string | undefined;
  /** By which one comes back. */
  seat: string | undefined;
  /** Called where one has to wait until a moderator lets one in. */
  waiting: () => void;
  /** Ends the attempt. */
  signal: AbortSignal | undefined;
  assets: Assets;
  relay: Relay;
  output: OutputKind;
  /** Caps on what is received, by track. */
  maxRungs: Map<string, Rung>;
  /** One's visit on the server that the room is on until now, and what that gave for the next one. */
  former: Visit | null;
  ticket: string | undefined;
}

/** See the module's head. */
export class Visit extends Emitter<VisitEvents> {
  readonly welcome: Welcome;
  private readonly connection: Connection;
  private readonly others = new Map<string, ParticipantInfo>();
  /** Those who take the place of others who have not left yet. */
  private readonly withheld = new Map<string, ParticipantInfo>();
  /** Of one's own tracks, those that an operator has muted. */
  private readonly held = new Set<Publication>();
  private readonly publications = new Set<Publication>();
  private readonly timers = new Set<ReturnType<typeof setTimeout>>();
  /** Every track of the room, whether one may have it or not. */
  private readonly known = new Map<string, TrackInfo>();
  private granted: readonly string[] | undefined;
  /** Who may come in. */
  door: { locked: boolean; lobby: boolean };
  /** Who waits to. */
  knocks: readonly WaitingInfo[] = [];
  private spoke: string | null = null;
  /** One's own id at the former server. */
  private readonly formerId: string | null;
  private up = false;
  private isFrozen = false;
  private isOver = false;

  /**
   * Enters a room at the first of some servers, by their WebSockets, that answers. Rejects with a {@link WindlassError};
   * with {@link Moved} where the room is elsewhere.
   */
  static async enter(urls: readonly string[], visitor: Visitor): Promise<Visit> {
    // What is received begins when it is known whether its frames can pass through the relay.
    const [[url, socket]] = await Promise.all([SignalSocket.openAny(urls), visitor.relay.ready()]);
    try {
      return new Visit(url, socket, await greet(url, socket, visitor), visitor);
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  private constructor(
    /** The server's WebSocket. */
    readonly url: string,
    private readonly socket: SignalSocket,
    welcome: Welcome,
    private visitor: Visitor,
  ) {
    super();
    this.welcome = welcome;
    this.granted = welcome.grants;
    this.door = { locked: welcome.locked ?? false, lobby: welcome.lobby ?? false };
    this.formerId = visitor.former?.participant ?? null;
    const { assets, relay, output, maxRungs } = visitor;
    this.connection = new Connection(socket, assets, relay, output, welcome, maxRungs, welcome.ice);
    this.connection.onLost = (error) => this.lose(error);
    this.connection.onUp = () => {
      this.up = true;
      this.emit("up", undefined);
    };
    socket.onLost = (error) => this.lose(error);
    if ((welcome.others ?? []).some((other) => other !== url)) socket.onQuiet = () => this.emit("quiet", undefined);
    socket.onMessage = (message) => this.handle(message);
  }

  /** Takes in who and what was there when one entered: call it once, when whoever listens does. */
  announce(): void {
    if (this.isOver) return;
    for (const participant of this.welcome.participants) this.join(participant, this.welcome.participants);
    for (const track of this.welcome.tracks) this.learn(track);
    this.fit();
  }

  /** This participant's id. */
  get participant(): string {
    return this.welcome.participant;
  }

  get participants(): ParticipantInfo[] {
    return [...this.others.values()];
  }

  get speaker(): ParticipantInfo | null {
    return this.spoke === null ? null : (this.others.get(this.spoke) ?? null);
  }

  /** What is received, of those who are not withheld. */
  get tracks(): RemoteTrack[] {
    return this.connection.tracks().filter((track) => !this.withheld.has(track.participant));
  }

  /** Caps on what is received, by track. */
  get maxRungs(): Map<string, Rung> {
    return this.visitor.maxRungs;
  }

  /** Whether the server has not answered for a while. */
  get quiet(): boolean {
    return this.socket.quiet;
  }

  may(grant: Grant): boolean {
    return this.granted?.includes(grant) ?? (grant !== "admin" && grant !== "moderate");
  }

  /** Whether an operator has muted one's track. */
  holds(publication: Publication): boolean {
    return this.held.has(publication);
  }

  /** Begins to send a track, unless it is sent already. */
  async publish(publication: Publication): Promise<void> {
    if (this.publications.has(publication)) return;
    this.publications.add(publication);
    const published = this.connection.publish(publication);
    this.fit();
    await published;
    if (publication.muted) this.tellMuted(publication);
  }

  /** Ends sending a track. */
  async unpublish(publication: Publication): Promise<void> {
    if (!this.publications.delete(publication)) return;
    const ended = this.connection.unpublish(publication);
    this.fit();
    await ended;
  }

  /** Tells the others whether a track is muted. */
  tellMuted(publication: Publication): void {
    const track = this.connection.idOf(publication);
    if (track !== null) this.socket.send({ type: "mute", track, muted: publication.muted });
  }

  /** Tells a cap on what is received, once the server knows of the subscription. */
  tellRung(track: string, rung: Rung): void {
    void this.connection.settled().then(() => {
      if (this.visitor.maxRungs.get(track) === rung) this.socket.send({ type: "set_rung", track, max: rung });
    });
  }

  /** Tells how a track is shown, to what rebuilds it and to the server. */
  tellView(track: string, width: number, height: number, pinned: boolean): void {
    this.video(track)?.shownIn(width, height);
    void this.connection.settled().then(() => this.socket.send({ type: "view", track, width, height, pinned }));
  }

  /** Says what a moderator wants. */
  order(order: Moderate): Promise<void> {
    return this.socket.order({ type: "moderate", ...order });
  }

  /** Tells what became of what is received and sent. */
  report(): void {
    const halfTripMs = (this.socket.roundTripMs ?? 0) / 2;
    for (const track of this.tracks) {
      const report = track instanceof EnhancedTrack ? track.report(halfTripMs) : null;
      if (report !== null) this.socket.send({ type: "report", ...report });
    }
    for (const publication of this.publications) {
      const uplink = publication.uplink();
      const track = this.connection.idOf(publication);
      if (uplink !== null && track !== null && !this.isFrozen) this.socket.send({ type: "uplink", track, ...uplink });
    }
  }

  stats(): Promise<RTCStatsReport> {
    return this.connection.stats();
  }

  /** Bytes that have come by the media connection. */
  async received(): Promise<number> {
    let bytes = 0;
    for (const entry of (await this.stats()).values()) {
      if (entry.type === "transport") bytes += (entry as RTCTransportStats).bytesReceived ?? 0;
    }
    return bytes;
  }

  /** What is sent and received stays as it is, whatever changes: one goes elsewhere. */
  freeze(): void {
    this.isFrozen = true;
    this.connection.freeze();
  }

  /** One stays: what has changed meanwhile counts. */
  thaw(): void {
    this.isFrozen = false;
    this.connection.thaw();
    for (const publication of this.publications) this.tellMuted(publication);
  }

  /** The former visit is over. */
  forget(): void {
    this.visitor = { ...this.visitor, former: null };
  }

  /** One is elsewhere now, and here for those who are not. */
  arrived(): void {
    this.socket.send({ type: "arrived" });
  }

  /** Leaves. */
  leave(): void {
    this.socket.send({ type: "leave" });
    this.close();
  }

  /** Lets go of everything. */
  close(): void {
    this.isOver = true;
    for (const timer of this.timers) clearTimeout(timer);
    this.socket.close();
    this.connection.close();
  }

  /** The track of the former visit in whose place this one comes. */
  replaced(track: { participant: string; kind: string; name: string }): RemoteTrack | null {
    const former = this.visitor.former?.tracks ?? [];
    const own = this.withheld.get(track.participant) ?? this.others.get(track.participant);
    const was = this.visitor.former?.participants.find((other) => own?.was === other.id);
    const ids = [track.participant, was?.id];
    const same = (t: RemoteTrack) => ids.includes(t.participant) && t.kind === track.kind && t.name === track.name;
    return former.find(same) ?? null;
  }

  /**
   * Resolves when everything that is received by the former visit is by this one, as well as it was; or after `mostMs`. False: nothing can
   * be received by this one.
   */
  async ready(mostMs: number): Promise<boolean> {
    const end = performance.now() + mostMs;
    let here: number | null = null;
    while (!this.isOver && performance.now() < end) {
      const there = await this.comparison();
      if (there !== "less") here ??= performance.now();
      if (there === "as good" || (here !== null && performance.now() - here > BETTER_MS)) return true;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    return this.up && !this.isOver;
  }

  private async comparison(): Promise<"less" | "worse" | "as good"> {
    const wanted = (this.visitor.former?.tracks ?? []).filter((track) => !track.muted && !isPaused(track));
    if (!this.up) return this.publications.size === 0 && wanted.length === 0 ? "as good" : "less";
    let worse = false;
    for (const former of wanted) {
      const heir = this.tracks.find((track) => this.replaced(track) === former);
      if (heir === undefined) return "less";
      if (!(heir instanceof EnhancedTrack) || !(former instanceof EnhancedTrack)) continue;
      if (!(await heir.begun())) return "less";
      worse ||= heir.state === "native" && former.state !== "native";
    }
    return worse ? "worse" : "as good";
  }

  private handle(message: ServerMessage): void {
    switch (message.type) {
      case "participant_joined":
        this.join(joined(message), this.participants);
        break;
      case "participant_left":
        this.left(message.participant);
        break;
      case "track_added":
        this.learn(message.track);
        this.fit();
        break;
      case "track_removed":
        this.known.delete(message.track);
        this.fit();
        break;
      case "track_muted":
        this.muteTrack(message.track, message.muted);
        break;
      case "paused":
        this.video(message.track)?.setPaused(message.paused);
        break;
      case "speaker":
        this.spoke = message.participant;
        if (this.speaker !== null) this.emit("speaker", this.speaker);
        break;
      case "rung": {
        const track = this.video(message.track);
        if (track === undefined) break;
        const { rung, epoch, width, height } = message;
        const scale = message.scale ?? this.welcome.scale;
        track.setRung({ rung, epoch, width, height, scale });
        if (!this.withheld.has(track.participant)) this.emit("rung", { track, rung, epoch, width, height, scale });
        break;
      }
      case "knobs":
        this.own(message.track)?.turn(message);
        break;
      case "regions":
        this.own(message.track)?.request(message);
        break;
      case "ice_servers":
        this.connection.setIceServers(message.ice);
        break;
      case "stats":
        for (const { track, anchors_dropped, refused } of message.tracks)
          this.video(track)?.setServerStats(anchors_dropped, refused ?? null);
        break;
      case "grants":
        this.regrant(message.grants);
        break;
      case "door":
        this.door = { locked: message.locked, lobby: message.lobby };
        this.emit("locked", this.door);
        break;
      case "lobby":
        this.knocks = message.waiting;
        this.emit("lobby", message.waiting);
        break;
      case "moved":
        this.emit("moved", message);
        break;
      case "error":
        // A track that went while a report or a wish for it was on its way is no news.
        if (!message.fatal && message.code !== "unknown_track")
          this.emit("refused", new WindlassError(message.code, message.message, message.hint));
        break;
      case "welcome":
      case "waiting":
      case "done":
      case "answer":
      case "pong":
        break;
    }
  }

  /** Whether that is this participant, here or as those of its former server know it. */
  private isMe(participant: string): boolean {
    return participant === this.participant || participant === this.formerId;
  }

  private join(participant: ParticipantInfo, present: readonly ParticipantInfo[]): void {
    const { id, was } = participant;
    if (this.isMe(id) || this.others.has(id) || this.withheld.has(id)) return;
    if (was !== undefined && was !== id && present.some((other) => other.id === was)) {
      this.withheld.set(id, participant);
      const timer = setTimeout(() => this.reveal(was, false), WITHHELD_MS);
      this.timers.add(timer);
      return;
    }
    this.others.set(id, participant);
    this.emit("participantJoined", participant);
  }

  private left(id: string): void {
    this.reveal(id, true);
    this.withheld.delete(id);
    const participant = this.others.get(id);
    for (const info of [...this.known.values()]) if (info.participant === id) this.known.delete(info.id);
    this.fit();
    this.others.delete(id);
    if (participant !== undefined) this.emit("participantLeft", participant);
  }

  /** Whoever has come in the place of somebody is shown: there, if that one goes. */
  private reveal(id: string, goes: boolean): void {
    const former = goes ? this.tracks.filter((track) => track.participant === id) : [];
    for (const participant of [...this.withheld.values()]) {
      if (participant.was !== id) continue;
      this.withheld.delete(participant.id);
      this.others.set(participant.id, participant);
      this.emit("participantJoined", participant);
      for (const track of this.tracks) {
        if (track.participant !== participant.id) continue;
        track.replaces = former.find(({ kind, name }) => kind === track.kind && name === track.name) ?? null;
        this.emit("trackAdded", track);
        track.replaces = null;
      }
    }
  }

  /** One may do other things from now on: what one may not any more ends, what one may begins where it needs no wish. */
  private regrant(grants: readonly string[]): void {
    this.granted = grants;
    if (!this.may("publish")) {
      for (const publication of [...this.publications]) this.unpublish(publication).catch(() => undefined); // told by `lost`
    }
    this.fit();
    this.emit("grants", { grants });
  }

  private learn(info: TrackInfo): void {
    this.known.set(info.id, info);
    if (info.participant === this.participant) this.connection.learnOwn(info);
  }

  /** Receives what one may of the room, and has places for. */
  private fit(): void {
    if (this.isOver) return;
    const { connection, participant, welcome } = this;
    const may = this.may("subscribe");
    const received = [...this.known.values()].filter(
      (info) => may && info.participant !== this.formerId && (info.participant !== participant || welcome.loopback),
    );
    const wanted = fitting(received, welcome.max_sections - connection.sections);
    for (const { id } of connection.tracks()) if (!wanted.has(id)) this.removeTrack(id);
    const has = new Set(connection.tracks().map(({ id }) => id));
    for (const info of received) if (wanted.has(info.id) && !has.has(info.id)) this.addTrack(info);
  }

  private addTrack(info: TrackInfo): void {
    const { connection } = this;
    const { maxRungs } = this.visitor;
    const cap = maxRungs.get(this.replaced(info)?.id ?? "");
    if (cap !== undefined && !maxRungs.has(info.id)) maxRungs.set(info.id, cap);
    const track = connection.subscribe(info);
    if (track instanceof EnhancedTrack) {
      track.on("stats", (stats) => this.emit("stats", { track, stats }));
      track.onWholeAnchor = () => this.socket.send({ type: "whole_anchor", track: info.id });
    }
    if (!this.withheld.has(info.participant)) this.emit("trackAdded", track);
  }

  private removeTrack(id: string): void {
    const track = this.connection.tracks().find((t) => t.id === id);
    if (track === undefined) return;
    this.reveal(track.participant, true);
    const shown = !this.withheld.has(track.participant);
    this.connection.unsubscribe(id);
    if (shown) this.emit("trackRemoved", track);
  }

  private muteTrack(id: string, muted: boolean): void {
    const publication = this.own(id);
    // In a room of one's own one also hears of what one muted oneself.
    if (publication !== undefined && !this.welcome.loopback) {
      if (muted) this.held.add(publication);
      else this.held.delete(publication);
      publication.setMuted(muted);
      this.emit("publicationMuted", { publication, muted });
    }
    const track = this.connection.tracks().find((t) => t.id === id);
    if (track === undefined) return;
    if (track instanceof EnhancedTrack) track.setMuted(muted);
    else Object.assign(track, { muted });
    if (!this.withheld.has(track.participant)) this.emit("trackMuted", { track, muted });
  }

  private own(id: string): Publication | undefined {
    if (this.isFrozen) return undefined;
    return [...this.publications].find((publication) => this.connection.idOf(publication) === id);
  }

  private video(id: string): EnhancedTrack | undefined {
    const tracks = this.connection.tracks();
    return tracks.find((track): track is EnhancedTrack => track.id === id && track instanceof EnhancedTrack);
  }

  private lose(error: WindlassError): void {
    if (this.isOver) return;
    this.isOver = true;
    this.emit("lost", error);
  }
}

/** Asks to be let in. */
function greet(url: string, socket: SignalSocket, visitor: Visitor): Promise<Welcome> {
  const { room, name, loopback, token, ticket, seat, waiting, signal } = visitor;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(unreachable()), WELCOME_TIMEOUT_MS);
    const giveUp = () => {
      socket.send({ type: "leave" });
      refuse(left());
    };
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
    };
    const refuse = (error: WindlassError) => {
      end();
      reject(error);
    };
    signal?.addEventListener("abort", giveUp);
    socket.onLost = refuse;
    socket.onMessage = (message) => {
      if (message.type === "error") refuse(new WindlassError(message.code, message.message, message.hint));
      if (message.type === "moved") refuse(new Moved(message.url, url, message.others ?? []));
      if (message.type === "waiting") {
        clearTimeout(timer);
        waiting();
      }
      if (message.type !== "welcome") return;
      end();
      resolve(message);
    };
    const anchor_codecs = [...ANCHOR_CODECS];
    const access = token === undefined ? {} : { token };
    const place = ticket === undefined ? {} : { ticket };
    const back = seat === undefined ? {} : { seat };
    socket.send({
      type: "join",
      version: PROTOCOL_VERSION,
      room,
      name,
      loopback,
      anchor_codecs,
      ...access,
      ...place,
      ...back,
    });
  });
}

const isPaused = (track: RemoteTrack): boolean => track instanceof EnhancedTrack && track.paused;

/** Who has come. */
function joined({
  participant,
  name,
  identity,
  was,
}: Extract<ServerMessage, { type: "participant_joined" }>): ParticipantInfo {
  return {
    id: participant,
    name,
    ...(identity === undefined ? {} : { identity }),
    ...(was === undefined ? {} : { was }),
  };
}
