/**
 * One session: this participant's stay in a room on one server, by one socket and one media connection. A call is a
 * sequence of sessions: a lost session is followed by a new one, and during a migration the sessions overlap.
 */
import type { Connection } from "./connection.js";
import { Emitter } from "./emitter.js";
import { WindlassError } from "./errors.js";
import type { Move, SessionEvents } from "./events.js";
import { fitting } from "./fitting.js";
import { handshake, type JoinRequest } from "./handshake.js";
import { contentOf } from "./message.js";
import type { Described } from "./profile.js";
import type { Moderate, SendData, SetAttributes } from "./protocol.gen.js";
import type {
  ConnectionQuality,
  Grant,
  ParticipantInfo,
  Rung,
  ServerMessage,
  TrackInfo,
  WaitingInfo,
  Welcome,
} from "./protocol.js";
import type { Publication, VideoCodec } from "./publication.js";
import { Roster } from "./roster.js";
import { nextSessionState, type SessionState } from "./session-state.js";
import { type Outcome, SignalSocket } from "./socket.js";
import {
  type Comparison,
  compareTracks,
  expectedTracks,
  findPredecessor,
  isSameSource,
  type Source,
} from "./succession.js";
import { type RemoteTrack, RemoteVideoTrack } from "./tracks.js";

/** Max time for which a participant is pending because its predecessor has not left, milliseconds. */
const PENDING_MS = 6000;
/** Interval between two comparisons of a successor with the former session, milliseconds. */
const COMPARE_MS = 50;
/** Messages about who and what is in the room. Those that come before the welcome's is announced wait for that. */
const AFTER_WELCOME: ReadonlySet<ServerMessage["type"]> = new Set([
  "participant_joined",
  "participant_changed",
  "participant_left",
  "track_added",
  "track_removed",
  "track_muted",
  "paused",
  "speaker",
  "data",
]);
/** Max number of these with which further ones of the type `data` are dropped. */
const MAX_EARLY = 256;
/** Once every track has a picture, max wait until each is as good as on the former server, milliseconds. */
const QUALITY_WAIT_MS = 1500;

/** The media connection of a session. */
export type Transport = Pick<
  Connection,
  | "onLost"
  | "onUp"
  | "sections"
  | "publish"
  | "unpublish"
  | "subscribe"
  | "unsubscribe"
  | "tracks"
  | "idOf"
  | "learnOwn"
  | "setIceServers"
  | "settled"
  | "stats"
  | "freeze"
  | "thaw"
  | "close"
>;

/** Makes the media connections of sessions. */
export interface Transports {
  /** Resolves when the next connection can be made. */
  ready(): Promise<unknown>;
  /** `maxRungs`: caps on subscriptions, by track id. */
  connect(socket: SignalSocket, welcome: Welcome, maxRungs: ReadonlyMap<string, Rung>): Transport;
}

/** How a session is begun. */
export interface SessionRequest extends JoinRequest {
  /** Caps on subscriptions, by track id. */
  maxRungs: Map<string, Rung>;
  /** The session that this one is to succeed, in a migration. */
  former: Session | null;
}

/** A stay in a room on one server, from the welcome until the connection ends. */
export class Session extends Emitter<SessionEvents> {
  /** Whether the room is recorded. */
  recording: boolean;
  /** Whether the room is locked, and whether it has a lobby. */
  entry: { locked: boolean; lobby: boolean };
  /** The participants in the lobby. */
  waiting: readonly WaitingInfo[] = [];
  /** Caps on subscriptions, by track id. */
  readonly maxRungs: Map<string, Rung>;
  private state: SessionState = "live";
  /** Whether the media path has been up. */
  private mediaUp = false;
  private readonly roster = new Roster();
  private readonly publications = new Set<Publication>();
  private readonly mutedByModerator = new Set<Publication>();
  /** Codecs of backups that the server has refused. */
  private readonly refusedCodecs = new Set<VideoCodec>();
  private readonly timers = new Set<ReturnType<typeof setTimeout>>();
  /** Every track of the room, received or not. */
  private readonly roomTracks = new Map<string, TrackInfo>();
  /** Messages about who and what is in the room that came before the welcome's was announced; null: it is. */
  private early: ServerMessage[] | null = [];
  private grants: readonly string[] | undefined;
  private speakerId: string | null = null;
  /** The qualities of connections that the server has reported, by participant; this one's too. */
  private readonly toldQualities = new Map<string, ConnectionQuality>();
  /** Tracks whose report went out between two times of it: the next one is left out, so that there is one a second. */
  private readonly reportedEarly = new Set<RemoteVideoTrack>();
  private former: Session | null;
  /** This participant's id at the former server. */
  private readonly formerId: string | null;
  /** What the server knows of this participant from its join. */
  readonly told: Described;

  /**
   * Joins a room at the first of the servers (URLs of their WebSockets) that answers. Rejects with a
   * {@link WindlassError}: with `Moved` where the room is on another server.
   */
  static async join(urls: readonly string[], request: SessionRequest, transports: Transports): Promise<Session> {
    const opening = SignalSocket.openAny(urls);
    const [[url, socket]] = await Promise.all([opening, transports.ready()]).catch((error: unknown) => {
      opening.then(([, opened]) => opened.close()).catch(() => undefined);
      throw error;
    });
    try {
      const welcome = await handshake(url, socket, request);
      return new Session(url, socket, transports.connect(socket, welcome, request.maxRungs), welcome, request);
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  private constructor(
    /** URL of the server's WebSocket. */
    readonly url: string,
    private readonly socket: SignalSocket,
    private readonly transport: Transport,
    readonly welcome: Welcome,
    { former, maxRungs, name }: SessionRequest,
  ) {
    super();
    this.told = { name, attributes: welcome.attributes ?? {} };
    this.grants = welcome.grants;
    this.recording = welcome.recording ?? false;
    this.entry = { locked: welcome.locked ?? false, lobby: welcome.lobby ?? false };
    this.former = former;
    this.formerId = former?.participant ?? null;
    this.maxRungs = maxRungs;
    transport.onLost = (error) => this.fail(error);
    transport.onUp = () => {
      this.mediaUp = true;
      this.emit("up", undefined);
    };
    socket.onLost = (error) => this.fail(error);
    // Quiet matters only where another server could be tried.
    if ((welcome.others ?? []).some((other) => other !== url)) socket.onQuiet = () => this.emit("quiet", undefined);
    socket.onMessage = (message) => this.handle(message);
  }

  /** Announces the participants and tracks of the welcome. Call once, after listeners are set. */
  announce(): void {
    if (this.state === "closed") return;
    for (const participant of this.welcome.participants) this.addParticipant(participant, this.welcome.participants);
    for (const track of this.welcome.tracks) this.addRoomTrack(track);
    this.updateSubscriptions();
    const early = this.early ?? [];
    this.early = null;
    for (const message of early) if (!this.isClosed) this.handle(message);
  }

  /** This participant's id. */
  get participant(): string {
    return this.welcome.participant;
  }

  /** The others, without those that are pending. */
  get participants(): ParticipantInfo[] {
    return this.roster.present;
  }

  get speaker(): ParticipantInfo | null {
    return this.participants.find(({ id }) => id === this.speakerId) ?? null;
  }

  /** The qualities of connections that are known: of this participant, and of the others that are not pending. */
  get qualities(): { participant: string; quality: ConnectionQuality }[] {
    const told = [...this.toldQualities].map(([participant, quality]) => ({ participant, quality }));
    return told.filter(({ participant }) => this.isAnnounced(participant));
  }

  /** The received tracks, without those of pending participants. */
  get tracks(): RemoteTrack[] {
    return this.transport.tracks().filter((track) => !this.isPending(track.participant));
  }

  /** Whether a ping has not been answered for a second. */
  get quiet(): boolean {
    return this.socket.quiet;
  }

  may(grant: Grant): boolean {
    return this.grants?.includes(grant) ?? (grant !== "admin" && grant !== "moderate");
  }

  /** Whether a moderator muted this participant's track. */
  isMutedByModerator(publication: Publication): boolean {
    return this.mutedByModerator.has(publication);
  }

  /** Sends a track, unless it is sent already. */
  async publish(publication: Publication): Promise<void> {
    if (this.publications.has(publication)) return;
    this.publications.add(publication);
    const negotiated = this.transport.publish(publication);
    this.updateSubscriptions();
    await negotiated;
    // The server mutes a backup with its track.
    if (publication.muted && publication.backupOf === null) this.sendMuted(publication);
  }

  /** Sends a track in a second codec too, for those who decode these: in another one than before, if asked to. */
  private backUp(track: string, codecs: readonly VideoCodec[]): void {
    const publication = this.ownTrack(track);
    const backup = publication?.backUp(codecs.filter((codec) => !this.refusedCodecs.has(codec))) ?? null;
    if (backup === null) return;
    const former = [...this.publications].find(({ backupOf }) => backupOf === publication);
    if (former?.codec === backup.codec) return;
    if (former !== undefined) this.unpublish(former).catch(() => undefined); // `lost` follows
    this.publish(backup).catch(() => {
      // The server asks again, of all codecs that would do.
      if (backup.codec !== null) this.refusedCodecs.add(backup.codec);
      this.unpublish(backup).catch(() => undefined);
    });
  }

  /** Stops sending a track, and its backup. */
  async unpublish(publication: Publication): Promise<void> {
    if (!this.publications.delete(publication)) return;
    for (const other of this.publications)
      if (other.backupOf === publication) this.unpublish(other).catch(() => undefined);
    const negotiated = this.transport.unpublish(publication);
    this.updateSubscriptions();
    await negotiated;
  }

  /** Sends whether a track of this participant is muted. */
  sendMuted(publication: Publication): void {
    const track = this.transport.idOf(publication);
    if (track !== null) this.socket.send({ type: "mute", track, muted: publication.muted });
  }

  /** Sends the cap on a track, once its subscription is negotiated. */
  sendMaxRung(track: string, rung: Rung): void {
    void this.transport.settled().then(() => {
      if (this.maxRungs.get(track) === rung) this.socket.send({ type: "set_rung", track, max: rung });
    });
  }

  /** Sets how large a track is shown, device pixels: for its decoder at once, for the server after negotiation. */
  sendView(track: string, width: number, height: number, pinned: boolean): void {
    this.video(track)?.setSize(width, height);
    void this.transport.settled().then(() => this.socket.send({ type: "view", track, width, height, pinned }));
  }

  /** Sends a moderator's request. Resolves when the server has carried it out. */
  moderate(request: Moderate): Promise<void> {
    return this.socket.moderate({ type: "moderate", ...request });
  }

  /** Sends a message to other participants. */
  sendData(message: SendData): Promise<Outcome> {
    return this.socket.tell({ type: "send", ...message });
  }

  /** Changes what the others know of this participant. */
  setAttributes(change: SetAttributes): Promise<Outcome> {
    return this.socket.tell({ type: "attributes", ...change });
  }

  /** Sends the statistics of received tracks, and of the uplink. */
  report(): void {
    for (const track of this.tracks) {
      if (track instanceof RemoteVideoTrack && !this.reportedEarly.delete(track)) this.reportOn(track);
    }
    for (const publication of this.publications) {
      const uplink = publication.uplink();
      const track = this.transport.idOf(publication);
      if (uplink !== null && track !== null && this.state !== "frozen") {
        this.socket.send({ type: "uplink", track, ...uplink });
      }
    }
  }

  private reportOn(track: RemoteVideoTrack): void {
    const report = track.report((this.socket.roundTripMs ?? 0) / 2);
    if (report !== null) this.socket.send({ type: "report", ...report });
  }

  stats(): Promise<RTCStatsReport> {
    return this.transport.stats();
  }

  /** Bytes received by the media connection since its start. */
  async bytesReceived(): Promise<number> {
    let bytes = 0;
    for (const entry of (await this.stats()).values()) {
      if (entry.type === "transport") bytes += (entry as RTCTransportStats).bytesReceived ?? 0;
    }
    return bytes;
  }

  /** Keeps what is sent and received as it is: the call migrates. */
  freeze(): void {
    this.state = nextSessionState(this.state, "freeze");
    this.transport.freeze();
  }

  /** Ends {@link freeze}: what has changed meanwhile is negotiated. */
  thaw(): void {
    this.state = nextSessionState(this.state, "thaw");
    this.transport.thaw();
    for (const publication of this.publications) this.sendMuted(publication);
  }

  /** Drops the reference to the former session: the migration is done. */
  forgetFormer(): void {
    this.former = null;
  }

  /** Reports to the server that this participant has migrated. The session continues until it is closed. */
  sendArrived(): void {
    this.socket.send({ type: "arrived" });
  }

  /** Leaves the room, and closes. */
  leave(): void {
    this.socket.send({ type: "leave" });
    this.close();
  }

  /** Closes the socket and the media connection. */
  close(): void {
    this.state = nextSessionState(this.state, "close");
    for (const timer of this.timers) clearTimeout(timer);
    this.socket.close();
    this.transport.close();
  }

  /** The track of the former session that `track` succeeds. */
  predecessorOf(track: Source): RemoteTrack | null {
    return this.former === null ? null : findPredecessor(track, this.roster.get(track.participant), this.former);
  }

  /**
   * Resolves when everything that the former session receives is received by this one, as well as there, or after
   * `maxMs`. False: this session receives nothing.
   */
  async ready(maxMs: number): Promise<boolean> {
    const deadline = performance.now() + maxMs;
    let completeAt: number | null = null;
    while (!this.isClosed && performance.now() < deadline) {
      const comparison = await this.compareWithFormer();
      if (comparison !== "incomplete") completeAt ??= performance.now();
      if (comparison === "as good") return true;
      if (completeAt !== null && performance.now() - completeAt > QUALITY_WAIT_MS) return true;
      await new Promise((resolve) => setTimeout(resolve, COMPARE_MS));
    }
    return this.mediaUp && !this.isClosed;
  }

  private async compareWithFormer(): Promise<Comparison> {
    const expected = expectedTracks(this.former?.tracks ?? []);
    if (!this.mediaUp) return this.publications.size === 0 && expected.length === 0 ? "as good" : "incomplete";
    return compareTracks(expected, (former) => this.tracks.find((track) => this.predecessorOf(track) === former));
  }

  private handle(message: ServerMessage): void {
    if (this.early !== null && AFTER_WELCOME.has(message.type)) {
      if (message.type !== "data" || this.early.length < MAX_EARLY) this.early.push(message);
      return;
    }
    switch (message.type) {
      case "participant_joined":
        this.addParticipant(participantInfo(message), this.participants);
        break;
      case "participant_changed":
        this.changeParticipant(message);
        break;
      case "data":
        this.receiveData(message);
        break;
      case "participant_left":
        this.removeParticipant(message.participant);
        break;
      case "track_added":
        this.addRoomTrack(message.track);
        this.updateSubscriptions();
        break;
      case "track_removed":
        this.roomTracks.delete(message.track);
        this.updateSubscriptions();
        break;
      case "track_muted":
        this.setTrackMuted(message.track, message.muted);
        break;
      case "paused":
        this.video(message.track)?.setPaused(message.paused);
        break;
      case "speaker":
        this.speakerId = message.participant;
        if (this.speaker !== null) this.emit("speaker", this.speaker);
        break;
      case "quality":
        this.toldQualities.set(message.participant, message.quality);
        this.tellQuality(message.participant);
        break;
      case "rung":
        this.setRung(message);
        break;
      case "way":
        this.video(message.track)?.setWay({ way: message.way, reason: message.reason });
        break;
      case "knobs":
        this.ownTrack(message.track)?.turn(message);
        break;
      case "backup_wanted":
        this.backUp(message.track, message.codecs);
        break;
      case "regions":
        this.ownTrack(message.track)?.request(message);
        break;
      case "ice_servers":
        this.transport.setIceServers(message.ice);
        break;
      case "stats":
        for (const { track, anchors_dropped, refused } of message.tracks)
          this.video(track)?.setServerStats(anchors_dropped, refused ?? null);
        break;
      case "grants":
        this.setGrants(message.grants);
        break;
      case "entry":
        this.entry = { locked: message.locked, lobby: message.lobby };
        this.emit("locked", this.entry);
        break;
      case "recording":
        this.recording = message.on;
        this.emit("recording", { on: message.on });
        break;
      case "lobby":
        this.waiting = message.waiting;
        this.emit("lobby", message.waiting);
        break;
      case "moved":
        this.emit("moved", message satisfies Move);
        break;
      case "error":
        // A track may end while a report or a request for it is on its way: that is no failure.
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

  /** Whether `id` is this participant, on this server or on the former one. */
  private isSelf(id: string): boolean {
    return id === this.participant || id === this.formerId;
  }

  private isPending(id: string): boolean {
    return this.roster.presence(id) === "pending";
  }

  /** Whether the page knows of a participant: it is this one, or one that is present. */
  private isAnnounced(id: string): boolean {
    return id === this.participant || this.roster.presence(id) === "present";
  }

  private tellQuality(participant: string): void {
    const quality = this.toldQualities.get(participant);
    if (quality !== undefined && this.isAnnounced(participant)) this.emit("quality", { participant, quality });
  }

  private joined(participant: ParticipantInfo): void {
    this.emit("participantJoined", participant);
    this.tellQuality(participant.id);
  }

  private addParticipant(participant: ParticipantInfo, present: readonly ParticipantInfo[]): void {
    const { id, was } = participant;
    if (this.isSelf(id)) return;
    this.emit("met", participant);
    const presence = this.roster.add(participant, present);
    if (presence === "present") this.joined(participant);
    if (presence === "pending" && was !== undefined) {
      this.timers.add(setTimeout(() => this.admitSuccessors(was, []), PENDING_MS));
    }
  }

  private changeParticipant({
    participant,
    name,
    attributes,
  }: Extract<ServerMessage, { type: "participant_changed" }>): void {
    const info = this.roster.change(participant, { name, ...(attributes === undefined ? {} : { attributes }) });
    if (info !== undefined && !this.isPending(participant)) this.emit("participantChanged", info);
  }

  private receiveData(message: Extract<ServerMessage, { type: "data" }>): void {
    const { from, seq, number, topic } = message;
    const content = contentOf(message);
    if (content === null) return;
    this.emit("message", { from, was: this.roster.get(from)?.was, seq, number, topic, ...content });
  }

  private removeParticipant(id: string): void {
    this.admitSuccessors(id, this.tracks);
    if (this.isPending(id)) this.roster.remove(id);
    const participant = this.roster.get(id);
    for (const info of [...this.roomTracks.values()]) if (info.participant === id) this.roomTracks.delete(info.id);
    this.updateSubscriptions();
    this.roster.remove(id);
    this.toldQualities.delete(id);
    if (participant !== undefined) this.emit("participantLeft", participant);
  }

  /** Announces the pending successors of `id`; their tracks replace those of `id` among `tracks`, which end now. */
  private admitSuccessors(id: string, tracks: readonly RemoteTrack[]): void {
    const ending = tracks.filter((track) => track.participant === id);
    for (;;) {
      const participant = this.roster.admitSuccessor(id);
      if (participant === undefined) return;
      this.joined(participant);
      for (const track of this.tracks) {
        if (track.participant !== participant.id) continue;
        track.replaces = ending.find((predecessor) => isSameSource(predecessor, track)) ?? null;
        this.emit("trackAdded", track);
        track.replaces = null;
      }
    }
  }

  /** Ends what is no longer allowed. Receiving begins again by itself where allowed; sending does not. */
  private setGrants(grants: readonly string[]): void {
    this.grants = grants;
    if (!this.may("publish")) {
      for (const publication of [...this.publications]) {
        this.unpublish(publication).catch(() => undefined); // `lost` follows
      }
    }
    this.updateSubscriptions();
    this.emit("grants", { grants });
  }

  private addRoomTrack(info: TrackInfo): void {
    this.roomTracks.set(info.id, info);
    if (info.participant === this.participant) this.transport.learnOwn(info);
  }

  /** Subscribes to the tracks of the room that are allowed and fit into an offer; ends the other subscriptions. */
  private updateSubscriptions(): void {
    if (this.state === "closed") return;
    const { transport, participant, welcome } = this;
    const allowed = this.may("subscribe");
    const candidates = [...this.roomTracks.values()].filter(
      (info) => allowed && info.participant !== this.formerId && (info.participant !== participant || welcome.loopback),
    );
    const wanted = fitting(candidates, welcome.max_sections - transport.sections);
    for (const { id } of transport.tracks()) if (!wanted.has(id)) this.unsubscribe(id);
    const subscribed = new Set(transport.tracks().map(({ id }) => id));
    for (const info of candidates) if (wanted.has(info.id) && !subscribed.has(info.id)) this.subscribe(info);
  }

  private subscribe(info: TrackInfo): void {
    const cap = this.former?.maxRungs.get(this.predecessorOf(info)?.id ?? "");
    if (cap !== undefined && !this.maxRungs.has(info.id)) this.maxRungs.set(info.id, cap);
    const track = this.transport.subscribe(info);
    if (track instanceof RemoteVideoTrack) {
      track.on("stats", (stats) => this.emit("stats", { track, stats }));
      track.requests = {
        keyAnchor: () => this.socket.send({ type: "key_anchor", track: info.id }),
        view: (width, height, pinned) => this.sendView(info.id, width, height, pinned),
        maxRung: (rung) => {
          // A later subscription carries its cap in its offer; the server may know of this one already.
          this.maxRungs.set(info.id, rung);
          this.sendMaxRung(info.id, rung);
        },
        report: () => {
          this.reportedEarly.add(track);
          this.reportOn(track);
        },
      };
    }
    if (!this.isPending(info.participant)) this.emit("trackAdded", track);
  }

  private unsubscribe(id: string): void {
    const track = this.transport.tracks().find((t) => t.id === id);
    if (track === undefined) return;
    this.admitSuccessors(track.participant, this.tracks);
    const announced = !this.isPending(track.participant);
    this.transport.unsubscribe(id);
    if (announced) this.emit("trackRemoved", track);
  }

  private setTrackMuted(id: string, muted: boolean): void {
    const publication = this.ownTrack(id);
    // In a loopback room the server also echoes the participant's own mutes.
    if (publication !== undefined && !this.welcome.loopback) {
      if (muted) this.mutedByModerator.add(publication);
      else this.mutedByModerator.delete(publication);
      publication.setMuted(muted);
      this.emit("publicationMuted", { publication, muted });
    }
    const track = this.transport.tracks().find((t) => t.id === id);
    if (track === undefined) return;
    if (track instanceof RemoteVideoTrack) track.setMuted(muted);
    else Object.assign(track, { muted });
    if (!this.isPending(track.participant)) this.emit("trackMuted", { track, muted });
  }

  private setRung(message: Extract<ServerMessage, { type: "rung" }>): void {
    const track = this.video(message.track);
    if (track === undefined) return;
    const { rung, epoch, width, height } = message;
    const scale = message.scale ?? this.welcome.scale;
    track.setRung({ rung, epoch, width, height, scale }, message.spatial_layers ?? 1);
    if (!this.isPending(track.participant)) this.emit("rung", { track, rung, epoch, width, height, scale });
  }

  private ownTrack(id: string): Publication | undefined {
    if (this.state === "frozen") return undefined;
    return [...this.publications].find((publication) => this.transport.idOf(publication) === id);
  }

  private video(id: string): RemoteVideoTrack | undefined {
    const tracks = this.transport.tracks();
    return tracks.find((track): track is RemoteVideoTrack => track.id === id && track instanceof RemoteVideoTrack);
  }

  private get isClosed(): boolean {
    return this.state === "closed";
  }

  private fail(error: WindlassError): void {
    if (this.isClosed) return;
    this.state = nextSessionState(this.state, "close");
    this.emit("lost", error);
  }
}

function participantInfo({
  participant,
  name,
  identity,
  was,
  attributes,
}: Extract<ServerMessage, { type: "participant_joined" }>): ParticipantInfo {
  return {
    id: participant,
    name,
    ...(identity === undefined ? {} : { identity }),
    ...(was === undefined ? {} : { was }),
    ...(attributes === undefined ? {} : { attributes }),
  };
}
