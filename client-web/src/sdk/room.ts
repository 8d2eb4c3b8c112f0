/**
 * A call: who is there, what they send, and what one sends oneself. Reconnects by itself when the socket or the
 * media path is lost; tracks of others then come anew, one's own are published again.
 */
import { type Assets, besideThisScript } from "./assets.js";
import { Backoff } from "./backoff.js";
import { Connection } from "./connection.js";
import { Emitter } from "./emitter.js";
import { Moved, noCodec, notGranted, unreachable, WindlassError } from "./errors.js";
import type { OutputKind } from "./output.js";
import {
  ANCHOR_CODECS,
  type Grant,
  type ParticipantInfo,
  PROTOCOL_VERSION,
  type Rung,
  type ServerMessage,
  type TrackInfo,
  type Welcome,
} from "./protocol.js";
import { type DetailChoice, type Layers, Publication } from "./publication.js";
import { vp9Preferences } from "./receiver.js";
import { followShowing } from "./showing.js";
import { SignalSocket } from "./socket.js";
import { EnhancedTrack, type RemoteTrack, type RungInfo, type TrackStats } from "./tracks.js";
import { warmUpDecoder } from "./warm-up.js";

export interface JoinOptions {
  /** The server's WebSocket, such as `wss://calls.example/ws`. */
  url: string;
  room: string;
  /** The name that the others see. */
  name: string;
  /** A room of one's own, in which one receives one's own tracks as others would. */
  loopback?: boolean;
  /** An access token, where the server needs one; a function is asked for one at every attempt to connect. */
  token?: string | (() => string | Promise<string>);
  /** The SDK's files, where they do not lie beside its script. */
  assets?: Assets;
  /** How pictures leave the worker; `auto` unless a test wants another. */
  output?: OutputKind;
  /** Give up after so many attempts to reconnect; 12 by default, somewhat more than a minute. */
  attempts?: number;
}

export interface RoomEvents {
  participantJoined: ParticipantInfo;
  participantLeft: ParticipantInfo;
  trackAdded: RemoteTrack;
  trackRemoved: RemoteTrack;
  trackMuted: { track: RemoteTrack; muted: boolean };
  /** An operator has muted one's own track, or ended that. While it is so, it cannot be unmuted from here. */
  publicationMuted: { publication: Publication; muted: boolean };
  /** Somebody speaks now, until another does. */
  speaker: ParticipantInfo;
  rung: { track: EnhancedTrack } & RungInfo;
  stats: { track: EnhancedTrack; stats: TrackStats };
  /** The connection was lost; another attempt follows after `delayMs`. */
  reconnecting: { attempt: number; delayMs: number; cause: WindlassError };
  reconnected: undefined;
  /** The call is over. */
  disconnected: { reason: WindlassError };
  /** The server refused something; the call goes on. */
  refused: WindlassError;
}

export interface PublishOptions {
  /** Layers of video; `qhf` by default. */
  layers?: Layers;
  /**
   * `ask`: full-size stills of a camera, and regions of its pictures, are sent as the server asks for them. Set it only
   * when the person has agreed to that. `off` by default.
   */
  detail?: DetailChoice;
  /**
   * Of audio: each packet repeats the one before (RED), so that single losses are not heard, at twice the bits. For uplinks that lose
   * much and have room. Off by default.
   */
  redundancy?: boolean;
  /** What the others see as the track's name; `camera` or `microphone` by default. */
  name?: string;
}

/** How a track is shown. */
export interface TrackView {
  /** Its place on the screen in pixels of the device; 0: it is not seen, and not sent. */
  width: number;
  /** See {@link width}. */
  height: number;
  /** Whether its user wants it above all others. */
  pinned?: boolean;
}

const WELCOME_TIMEOUT_MS = 8000;
/** So often a server may send one to another before one waits a moment. */
const MOST_HOPS = 3;

/** See the module's head. */
export class Room extends Emitter<RoomEvents> {
  private socket: SignalSocket | null = null;
  private connection: Connection | null = null;
  private welcome: Welcome | null = null;
  private readonly others = new Map<string, ParticipantInfo>();
  private readonly publications = new Set<Publication>();
  private readonly maxRungs = new Map<string, Rung>();
  /** Of one's own tracks, those that an operator has muted. */
  private readonly held = new Set<Publication>();
  private readonly backoff = new Backoff();
  private readonly reports: ReturnType<typeof setInterval>;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private over = false;
  private comparing = false;
  /** The WebSockets of the servers that may have the room: the first is the present or next one. */
  private servers: string[];
  private speaks: ParticipantInfo | null = null;

  /**
   * Enters a room. The tracks that are there already are announced after the caller's turn, so that listeners set
   * right after `await Room.join(…)` hear of them. Rejects with a {@link WindlassError}.
   */
  static async join(options: JoinOptions): Promise<Room> {
    if (
      typeof RTCPeerConnection === "undefined" ||
      vp9Preferences(RTCRtpReceiver.getCapabilities("video")?.codecs ?? []).length === 0
    ) {
      throw noCodec();
    }
    if (typeof RTCRtpScriptTransform !== "undefined") void warmUpDecoder(options.assets ?? besideThisScript());
    const room = new Room(options);
    try {
      await room.connect();
    } catch (error) {
      room.end();
      throw error;
    }
    return room;
  }

  private constructor(private readonly options: JoinOptions) {
    super();
    this.servers = [options.url];
    this.reports = setInterval(() => this.report(), 1000);
  }

  /** Who of the others speaks, or spoke last; null: nobody, or this participant. */
  get speaker(): ParticipantInfo | null {
    return this.speaks !== null && this.others.has(this.speaks.id) ? this.speaks : null;
  }

  /** This participant's id. */
  get participant(): string {
    return this.welcome?.participant ?? "";
  }

  /** Whether one hears and sees oneself. */
  get loopback(): boolean {
    return this.welcome?.loopback ?? false;
  }

  /** The operator's latency budget for anchors, milliseconds. */
  get budgetMs(): number {
    return this.welcome?.budget_ms ?? 0;
  }

  /** The others. */
  get participants(): ParticipantInfo[] {
    return [...this.others.values()];
  }

  /** One's own identity by the access token; empty where the server needs none. */
  get identity(): string {
    return this.welcome?.identity ?? "";
  }

  /** Whether the access token allows it; without one, everything that participants need is allowed. */
  may(grant: Grant): boolean {
    return this.welcome?.grants?.includes(grant) ?? grant !== "admin";
  }

  /** What is received. */
  get tracks(): RemoteTrack[] {
    return this.connection?.tracks() ?? [];
  }

  /** What is sent. */
  get published(): Publication[] {
    return [...this.publications];
  }

  /** Begins to send tracks. Resolves when the server has taken them. */
  async publish(
    source: MediaStream | MediaStreamTrack | readonly MediaStreamTrack[],
    options: PublishOptions = {},
  ): Promise<Publication[]> {
    if (!this.may("publish")) throw notGranted();
    const tracks =
      source instanceof MediaStream ? source.getTracks() : source instanceof MediaStreamTrack ? [source] : source;
    const made = tracks.map((track) => {
      const name = options.name ?? (track.kind === "audio" ? "microphone" : "camera");
      return new Publication(track, name, options.layers ?? "qhf", options.detail ?? "off", options.redundancy);
    });
    for (const publication of made) this.publications.add(publication);
    const { connection } = this;
    // Without a connection the next one takes them along.
    if (connection !== null) await Promise.all(made.map((publication) => connection.publish(publication)));
    return made;
  }

  /** Ends sending a track. The track itself stays the caller's. */
  async unpublish(publication: Publication): Promise<void> {
    this.publications.delete(publication);
    await this.connection?.unpublish(publication);
  }

  /** Sends silence or black, and tells the others; or ends that. */
  mute(publication: Publication, muted: boolean): void {
    if (!muted && this.held.has(publication)) return;
    publication.setMuted(muted);
    if (publication.id !== null) this.socket?.send({ type: "mute", track: publication.id, muted });
  }

  /** Caps what this participant is given of a track. Holds across reconnects while the track keeps its id. */
  setMaxRung(track: EnhancedTrack | string, rung: Rung): void {
    const id = typeof track === "string" ? track : track.id;
    this.maxRungs.set(id, rung);
    const { connection, socket } = this;
    // A new subscription brings its cap along in its offer; on one that the server may have already, it is told.
    void connection?.settled().then(() => {
      if (this.socket === socket && this.maxRungs.get(id) === rung) {
        socket?.send({ type: "set_rung", track: id, max: rung });
      }
    });
  }

  /** Says how a track is shown: which layer is enough for it, and how much it matters beside others, follows. */
  setView(track: EnhancedTrack | string, view: TrackView): void {
    const id = typeof track === "string" ? track : track.id;
    const pixels = (size: number) => Math.min(65_535, Math.max(0, Math.round(size)));
    const { width, height, pinned = false } = view;
    const { connection, socket } = this;
    void connection?.settled().then(() => {
      if (this.socket === socket)
        socket?.send({ type: "view", track: id, width: pixels(width), height: pixels(height), pinned });
    });
  }

  /**
   * Says how a track is shown for as long as it is shown in an element: its size, whether it is in sight, whether the page is.
   * Small pictures then take a small layer, unseen ones nothing, and publishers send no layer that nobody takes. The result
   * ends that; what was said last stays.
   */
  follow(track: EnhancedTrack | string, element: Element): () => void {
    return followShowing(element, (shown) => this.setView(track, shown));
  }

  /** The browser's statistics of the connection; null while there is none. */
  async connectionStats(): Promise<RTCStatsReport | null> {
    return (await this.connection?.stats()) ?? null;
  }

  /** Leaves the room. */
  leave(): void {
    if (this.over) return;
    this.socket?.send({ type: "leave" });
    this.finish(new WindlassError("left", "You left the call.", "Join again whenever you like."));
  }

  /** Connects, wherever the room is. */
  private async connect(): Promise<void> {
    for (let hops = 0; ; hops++) {
      try {
        await this.connectTo(this.servers[0] ?? this.options.url);
        return;
      } catch (error) {
        if (!(error instanceof Moved) || hops >= MOST_HOPS) throw error;
        this.socket?.close();
        this.goTo(error.url);
      }
    }
  }

  /** The server at `url` is the next to be tried, and the present one the last. */
  private goTo(url: string): void {
    this.servers = [url, ...this.servers.filter((known) => known !== url)];
  }

  private async connectTo(url: string): Promise<void> {
    const socket = await SignalSocket.open(url);
    if (this.over) {
      socket.close();
      throw unreachable();
    }
    this.socket = socket;
    const { token } = this.options;
    const welcome = await this.enter(socket, typeof token === "function" ? await token() : token);
    this.welcome = welcome;
    this.servers = [url, ...(welcome.others ?? []).filter((other) => other !== url)];
    const { assets = besideThisScript(), output = "auto" } = this.options;
    const connection = new Connection(socket, assets, output, welcome.scale, this.maxRungs, welcome.ice);
    this.connection = connection;
    connection.onLost = (error) => this.lost(error);
    // A socket alone is no success: where the media path never comes about, attempts must end.
    connection.onUp = () => this.backoff.reset();
    socket.onLost = (error) => this.lost(error);
    if (this.servers.length > 1) socket.onQuiet = () => void this.compare(socket);
    socket.onMessage = (message) => this.handle(message);
    for (const publication of this.publications) {
      connection.publish(publication).catch(() => undefined); // told by onLost
    }
    setTimeout(() => {
      if (this.connection === connection) this.announce(welcome);
    });
  }

  /** The server is quiet: if another one answers while nothing of this one comes, that is not for want of a network, and the room is there soon. */
  private async compare(socket: SignalSocket): Promise<void> {
    const other = this.servers[1];
    if (this.comparing || other === undefined) return;
    this.comparing = true;
    try {
      const before = await this.received();
      (await SignalSocket.open(other)).close();
      const silent = (await this.received()) === before;
      if (this.socket === socket && socket.quiet && silent) this.lost(unreachable());
    } catch {
      // Nobody answers: it is waited for.
      this.servers.push(...this.servers.splice(1, 1));
    } finally {
      this.comparing = false;
    }
  }

  /** Bytes that have come by the media connection. */
  private async received(): Promise<number> {
    let bytes = 0;
    for (const entry of (await this.connectionStats())?.values() ?? []) {
      if (entry.type === "transport") bytes += (entry as RTCTransportStats).bytesReceived ?? 0;
    }
    return bytes;
  }

  private enter(socket: SignalSocket, token: string | undefined): Promise<Welcome> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(unreachable()), WELCOME_TIMEOUT_MS);
      const refuse = (error: WindlassError) => {
        clearTimeout(timer);
        reject(error);
      };
      socket.onLost = refuse;
      socket.onMessage = (message) => {
        if (message.type === "error") refuse(new WindlassError(message.code, message.message, message.hint));
        if (message.type === "moved") refuse(new Moved(message.url));
        if (message.type !== "welcome") return;
        clearTimeout(timer);
        resolve(message);
      };
      const { room, name, loopback = false } = this.options;
      const anchor_codecs = [...ANCHOR_CODECS];
      const ticket = token === undefined ? {} : { token };
      socket.send({ type: "join", version: PROTOCOL_VERSION, room, name, loopback, anchor_codecs, ...ticket });
    });
  }

  private announce(welcome: Welcome): void {
    for (const participant of welcome.participants) this.handleJoined(participant);
    for (const track of welcome.tracks) this.addTrack(track);
  }

  private handle(message: ServerMessage): void {
    switch (message.type) {
      case "participant_joined":
        this.handleJoined(joined(message));
        break;
      case "participant_left": {
        const participant = this.others.get(message.participant);
        for (const track of this.tracks) if (track.participant === message.participant) this.removeTrack(track.id);
        this.others.delete(message.participant);
        if (participant !== undefined) this.emit("participantLeft", participant);
        break;
      }
      case "track_added":
        this.addTrack(message.track);
        break;
      case "track_removed":
        this.removeTrack(message.track);
        break;
      case "track_muted":
        this.muteTrack(message.track, message.muted);
        break;
      case "paused":
        this.video(message.track)?.setPaused(message.paused);
        break;
      case "speaker": {
        const speaker = this.others.get(message.participant);
        this.speaks = speaker ?? null;
        if (speaker !== undefined) this.emit("speaker", speaker);
        break;
      }
      case "rung": {
        const track = this.video(message.track);
        if (track === undefined) break;
        const { rung, epoch, width, height } = message;
        const scale = message.scale ?? this.welcome?.scale ?? 2;
        track.setRung({ rung, epoch, width, height, scale });
        this.emit("rung", { track, rung, epoch, width, height, scale });
        break;
      }
      case "knobs":
        this.own(message.track)?.turn(message);
        break;
      case "regions":
        this.own(message.track)?.request(message);
        break;
      case "ice_servers":
        this.connection?.setIceServers(message.ice);
        break;
      case "stats":
        for (const { track, anchors_dropped, refused } of message.tracks)
          this.video(track)?.setServerStats(anchors_dropped, refused ?? null);
        break;
      case "moved":
        this.goTo(message.url);
        this.lost(new Moved(message.url));
        break;
      case "error":
        // A track that went while a report or a wish for it was on its way is no news.
        if (!message.fatal && message.code !== "unknown_track")
          this.emit("refused", new WindlassError(message.code, message.message, message.hint));
        break;
      case "welcome":
      case "answer":
      case "pong":
        break;
    }
  }

  private handleJoined(participant: ParticipantInfo): void {
    if (participant.id === this.participant || this.others.has(participant.id)) return;
    this.others.set(participant.id, participant);
    this.emit("participantJoined", participant);
  }

  private addTrack(info: TrackInfo): void {
    const { connection } = this;
    if (connection === null || this.tracks.some((track) => track.id === info.id)) return;
    if (!this.may("subscribe")) return;
    if (info.participant === this.participant) {
      connection.learnOwn(info);
      if (!this.loopback) return;
    }
    const track = connection.subscribe(info);
    if (track instanceof EnhancedTrack) {
      track.on("stats", (stats) => this.emit("stats", { track, stats }));
      track.onWholeAnchor = (source) => this.socket?.send({ type: "whole_anchor", track: info.id, source });
    }
    this.emit("trackAdded", track);
  }

  private removeTrack(id: string): void {
    const track = this.tracks.find((t) => t.id === id);
    if (track === undefined) return;
    this.connection?.unsubscribe(id);
    this.emit("trackRemoved", track);
  }

  private muteTrack(id: string, muted: boolean): void {
    const publication = this.own(id);
    // In a room of one's own one also hears of what one muted oneself.
    if (publication !== undefined && !this.loopback) {
      if (muted) this.held.add(publication);
      else this.held.delete(publication);
      publication.setMuted(muted);
      this.emit("publicationMuted", { publication, muted });
    }
    const track = this.tracks.find((t) => t.id === id);
    if (track === undefined) return;
    if (track instanceof EnhancedTrack) track.setMuted(muted);
    else Object.assign(track, { muted });
    this.emit("trackMuted", { track, muted });
  }

  private own(id: string): Publication | undefined {
    return this.published.find((publication) => publication.id === id);
  }

  private video(id: string): EnhancedTrack | undefined {
    return this.tracks.find((track): track is EnhancedTrack => track.id === id && track instanceof EnhancedTrack);
  }

  private report(): void {
    const halfTripMs = (this.socket?.roundTripMs ?? 0) / 2;
    for (const track of this.tracks) {
      const report = track instanceof EnhancedTrack ? track.report(halfTripMs) : null;
      if (report !== null) this.socket?.send({ type: "report", ...report });
    }
    for (const publication of this.publications) {
      const uplink = publication.uplink();
      if (uplink !== null && publication.id !== null) {
        this.socket?.send({ type: "uplink", track: publication.id, ...uplink });
      }
    }
  }

  private lost(cause: WindlassError): void {
    if (this.over) return;
    this.drop();
    // The room may still count the session that was lost.
    const mayPass = cause.temporary || (cause.code === "room_full" && this.backoff.attempts > 0);
    if (!mayPass || this.backoff.attempts >= (this.options.attempts ?? 12)) {
      this.finish(cause);
      return;
    }
    const waitMs = this.backoff.next();
    // Who was sent away is awaited; otherwise another server, if there is one, knows where the room is by now.
    const delayMs = cause instanceof Moved && this.backoff.attempts === 1 ? 0 : waitMs;
    if (!(cause instanceof Moved)) this.servers.push(...this.servers.splice(0, 1));
    this.emit("reconnecting", { attempt: this.backoff.attempts, delayMs, cause });
    clearTimeout(this.retry);
    this.retry = setTimeout(() => {
      this.connect().then(
        () => this.emit("reconnected", undefined),
        (error: unknown) => this.lost(error instanceof WindlassError ? error : unreachable()),
      );
    }, delayMs);
  }

  /** Lets go of the connection and of everything that came through it. */
  private drop(): void {
    const { connection, socket, tracks } = this;
    this.held.clear();
    this.connection = null;
    this.socket = null;
    socket?.close();
    connection?.close();
    for (const track of tracks) this.emit("trackRemoved", track);
    for (const participant of this.others.values()) this.emit("participantLeft", participant);
    this.others.clear();
  }

  private finish(reason: WindlassError): void {
    this.end();
    this.emit("disconnected", { reason });
  }

  private end(): void {
    this.over = true;
    clearTimeout(this.retry);
    clearInterval(this.reports);
    this.drop();
  }
}

/** Who has come. */
function joined({
  participant,
  name,
  identity,
}: Extract<ServerMessage, { type: "participant_joined" }>): ParticipantInfo {
  return { id: participant, name, ...(identity === undefined ? {} : { identity }) };
}
