/**
 * A call: who is there, what they send, and what one sends oneself. Reconnects by itself when the socket or the
 * media path is lost; tracks of others then come anew, one's own are published again. Where the room moves to another
 * server, one is there before one leaves the former: tracks come anew in the place of those that they replace.
 */
import { type Assets, besideThisScript } from "./assets.js";
import { Backoff } from "./backoff.js";
import { Emitter } from "./emitter.js";
import { left, Moved, noCodec, notConnected, notGranted, OUT, unreachable, WindlassError } from "./errors.js";
import { Moderation } from "./moderation.js";
import type { OutputKind } from "./output.js";
import type { Grant, ParticipantInfo, Rung, WaitingInfo } from "./protocol.js";
import { type DetailChoice, type Layers, Publication } from "./publication.js";
import { vp9Preferences } from "./receiver.js";
import { Relay } from "./relay.js";
import { Servers } from "./servers.js";
import { followShowing } from "./showing.js";
import { SignalSocket } from "./socket.js";
import type { EnhancedTrack, RemoteTrack } from "./tracks.js";
import { type CallEvents, type Move, Visit, type Visitor } from "./visit.js";
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
  /** Called where one has to wait until a moderator lets one in: `join` resolves when one has, or rejects with `refused`. */
  waiting?: () => void;
  /** Ends the attempt to join, and waiting. */
  signal?: AbortSignal;
  /** Give up after so many attempts to reconnect; 12 by default, somewhat more than a minute. */
  attempts?: number;
}

export interface RoomEvents extends CallEvents {
  /** The connection was lost; another attempt follows after `delayMs`. */
  reconnecting: { attempt: number; delayMs: number; cause: WindlassError };
  reconnected: undefined;
  /** The room has moved to another server, and one is there without having been away. */
  moved: undefined;
  /** One has to wait until a moderator lets one in again. */
  waiting: undefined;
  /** One was put out and does not come back; `disconnected` follows. */
  removed: { reason: (typeof OUT)[number] };
  /** The call is over. */
  disconnected: { reason: WindlassError };
}

export interface PublishOptions {
  /** Layers of video; `qhf` by default. */
  layers?: Layers;
  /**
   * `ask`: full-size stills of a camera, whole or in tiles, are sent as the server asks for them. Set it only
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

/** So often a server may send one to another before one waits a moment. */
const MOST_HOPS = 3;
/** So many servers are asked at a time. */
const MOST_ASKED = 4;
/**
 * When a room moves: what was received may take so long until it comes from the new server; pages may take so long to
 * show it; and those who take longer are sent to by the former server for so long. Servers wait for six seconds.
 */
const MOVE_MS = { ready: 4500, shown: 300, over: 7000 };

/** What a visit tells that is told on as it is. */
const TOLD_ON = [
  "participantJoined",
  "participantLeft",
  "trackAdded",
  "trackRemoved",
  "trackMuted",
  "publicationMuted",
  "speaker",
  "rung",
  "stats",
  "locked",
  "lobby",
  "refused",
] as const satisfies readonly (keyof CallEvents)[];

/** See the module's head. */
export class Room extends Emitter<RoomEvents> {
  /** What one may do to others, with the grant `moderate`. */
  readonly moderate = new Moderation((order) => this.visit?.order(order) ?? Promise.reject(notConnected()));
  private visit: Visit | null = null;
  /** Where the room moves to: one sends there already, and receives from {@link visit} still. */
  private next: Visit | null = null;
  /** Where the room was until just now. */
  private readonly former = new Set<Visit>();
  private moving = false;
  /** Where a visit was sent while one was moving already. */
  private goal: [visit: Visit, to: Move] | null = null;
  private id = "";
  /** The server of the latest visit. */
  private last = "";
  private readonly publications = new Set<Publication>();
  private readonly assets: Assets;
  private readonly relay: Relay;
  private maxRungs = new Map<string, Rung>();
  private readonly backoff = new Backoff();
  private readonly reports: ReturnType<typeof setInterval>;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private over = false;
  /** By which one comes back where nobody new may. */
  private seat: string | undefined;
  private comparing = false;
  private readonly servers: Servers;

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
    const room = new Room(options);
    void warmUpDecoder(room.assets, room.relay);
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
    this.servers = new Servers(options.url);
    this.assets = options.assets ?? besideThisScript();
    this.relay = new Relay(this.assets);
    this.reports = setInterval(() => this.visit?.report(), 1000);
  }

  /** Who of the others speaks, or spoke last; null: nobody, or this participant. */
  get speaker(): ParticipantInfo | null {
    return this.visit?.speaker ?? null;
  }

  /** This participant's id. It is another one after reconnecting, and after a move. */
  get participant(): string {
    return this.visit?.participant ?? this.id;
  }

  /** Whether one hears and sees oneself. */
  get loopback(): boolean {
    return this.options.loopback ?? false;
  }

  /** The operator's latency budget for anchors, milliseconds. */
  get budgetMs(): number {
    return this.visit?.welcome.budget_ms ?? 0;
  }

  /** The others. */
  get participants(): ParticipantInfo[] {
    return this.visit?.participants ?? [];
  }

  /** One's own identity by the access token; empty where the server needs none. */
  get identity(): string {
    return this.visit?.welcome.identity ?? "";
  }

  /** Whether the access token allows it; without one, everything that participants need is allowed. */
  may(grant: Grant): boolean {
    return this.visit?.may(grant) ?? (grant !== "admin" && grant !== "moderate");
  }

  /** Whether nobody new may come in, and whether there is a lobby, where whoever comes waits to be let in. */
  get door(): { locked: boolean; lobby: boolean } {
    return this.visit?.door ?? { locked: false, lobby: false };
  }

  /** Who waits to be let in; moderators are told. */
  get waiting(): readonly WaitingInfo[] {
    return this.visit?.knocks ?? [];
  }

  /** What is received. */
  get tracks(): RemoteTrack[] {
    return this.visit?.tracks ?? [];
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
    const visit = this.sender();
    // Without a connection the next one takes them along.
    if (visit !== null) await Promise.all(made.map((publication) => visit.publish(publication)));
    return made;
  }

  /** Ends sending a track. The track itself stays the caller's. */
  async unpublish(publication: Publication): Promise<void> {
    this.publications.delete(publication);
    await Promise.all([this.next, this.visit, ...this.former].map((visit) => visit?.unpublish(publication)));
  }

  /** Sends silence or black, and tells the others; or ends that. */
  mute(publication: Publication, muted: boolean): void {
    const visit = this.sender();
    if (!muted && visit?.holds(publication)) return;
    publication.setMuted(muted);
    visit?.tellMuted(publication);
  }

  /** Caps what this participant is given of a track. Holds across reconnects while the track keeps its id. */
  setMaxRung(track: EnhancedTrack | string, rung: Rung): void {
    const id = typeof track === "string" ? track : track.id;
    this.maxRungs.set(id, rung);
    // A new subscription brings its cap along in its offer; on one that the server may have already, it is told.
    this.visit?.tellRung(id, rung);
  }

  /** Says how a track is shown: which layer is enough for it, and how much it matters beside others, follows. */
  setView(track: EnhancedTrack | string, view: TrackView): void {
    const id = typeof track === "string" ? track : track.id;
    const pixels = (size: number) => Math.min(65_535, Math.max(0, Math.round(size)));
    const { width, height, pinned = false } = view;
    this.visit?.tellView(id, pixels(width), pixels(height), pinned);
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
    return (await this.visit?.stats()) ?? null;
  }

  /** Leaves the room. */
  leave(): void {
    if (this.over) return;
    for (const visit of [this.visit, this.next, ...this.former]) visit?.leave();
    this.finish(left());
  }

  /** By which visit one sends. */
  private sender(): Visit | null {
    return this.next ?? this.visit;
  }

  /** Connects, wherever the room is. */
  private async connect(): Promise<void> {
    const visit = await this.enter(null, undefined, this.maxRungs);
    // Tracks have other names there.
    if (visit.url !== this.last) this.maxRungs.clear();
    this.last = visit.url;
    this.visit = visit;
    this.id = visit.participant;
    this.begin(visit);
    setTimeout(() => {
      if (this.visit === visit) visit.announce();
    });
  }

  /** Enters the room, wherever it is; `former`: from that visit, where the room goes to the first of the servers. */
  private async enter(former: Visit | null, ticket: string | undefined, maxRungs: Map<string, Rung>): Promise<Visit> {
    for (let hops = 0; ; hops++) {
      try {
        // Who moves must not come back to where it is.
        const servers = this.servers.first(former === null ? MOST_ASKED : 1);
        return await this.enterAt(servers, { former, ticket, maxRungs });
      } catch (error) {
        if (!(error instanceof Moved) || hops >= MOST_HOPS || error.url === former?.url) throw error;
        this.servers.named(error.by, [error.url, ...error.others]);
        this.servers.goTo(error.url);
      }
    }
  }

  private async enterAt(
    servers: readonly string[],
    from: Pick<Visitor, "former" | "ticket" | "maxRungs">,
  ): Promise<Visit> {
    const { token, room, name, loopback = false, output = "auto" } = this.options;
    const visit = await Visit.enter(servers, {
      room,
      name,
      loopback,
      token: typeof token === "function" ? await token() : token,
      assets: this.assets,
      relay: this.relay,
      output,
      ...from,
      seat: this.seat,
      signal: this.options.signal,
      waiting: () => {
        this.options.waiting?.();
        this.emit("waiting", undefined);
      },
    });
    if (this.over) {
      visit.close();
      throw unreachable();
    }
    this.seat = visit.welcome.seat ?? this.seat;
    const others = visit.welcome.others ?? [];
    this.servers.named(visit.url, others);
    this.servers.at(visit.url, others);
    return visit;
  }

  /** Listens to a visit, and sends by it what is sent. */
  private begin(visit: Visit): void {
    for (const name of TOLD_ON) this.tellOn(visit, name);
    visit.on("lost", (error) => this.lostAt(visit, error));
    // A socket alone is no success: where the media path never comes about, attempts must end.
    visit.on("up", () => this.backoff.reset());
    visit.on("grants", (grants) => {
      // What ended does not begin again by itself.
      if (!visit.may("publish")) this.publications.clear();
      if (this.visit === visit) this.emit("grants", grants);
    });
    visit.on("quiet", () => void this.compare(visit));
    visit.on("moved", (to) => void this.move(visit, to));
    for (const publication of this.publications) {
      visit.publish(publication).catch(() => undefined); // told by `lost`
    }
  }

  private tellOn<Name extends (typeof TOLD_ON)[number]>(visit: Visit, name: Name): void {
    visit.on(name, (value) => {
      if (this.visit === visit) this.emit(name, value as RoomEvents[Name]);
    });
  }

  /** The room goes on elsewhere: one goes there while everything goes on here, and leaves when it comes from there. */
  private async move(visit: Visit, to: Move): Promise<void> {
    this.servers.named(visit.url, [to.url, ...(to.others ?? [])]);
    if (this.moving) this.goal = [visit, to];
    if (this.visit !== visit || this.moving) return;
    this.moving = true;
    try {
      this.servers.goTo(to.url);
      const next = await this.enter(visit, to.ticket, new Map());
      if (this.visit !== visit) return next.leave();
      this.next = next;
      visit.freeze();
      this.begin(next);
      next.announce();
      const able = await next.ready(MOVE_MS.ready);
      if (this.next === next && able) this.settle(next);
      else if (this.next === next) this.stay(next);
    } catch {
      // One stays where one is, until that server lets go: what it says then is told.
      if (this.visit === visit) this.servers.goTo(visit.url);
    } finally {
      this.moving = false;
      const { goal } = this;
      this.goal = null;
      if (goal !== null && goal[1].url !== to.url) void this.move(...goal);
    }
  }

  /** Where the room should move to nothing is received: one stays where one is, until that server lets go. */
  private stay(next: Visit): void {
    this.next = null;
    next.leave();
    const { visit } = this;
    if (visit === null) return;
    this.servers.goTo(visit.url);
    visit.thaw();
    for (const publication of this.publications) visit.publish(publication).catch(() => undefined); // told by `lost`
  }

  /** From now on everything comes from where the room has moved to. */
  private settle(next: Visit): void {
    const { visit } = this;
    if (visit === null) return;
    const [people, tracks] = [visit.participants, visit.tracks];
    const stays = (one: ParticipantInfo, among: ParticipantInfo[]) => among.some(({ id }) => id === one.id);
    this.visit = next;
    this.id = next.participant;
    this.last = next.url;
    this.next = null;
    this.maxRungs = next.maxRungs;
    for (const person of next.participants) if (!stays(person, people)) this.emit("participantJoined", person);
    for (const track of next.tracks) {
      track.replaces = next.replaced(track);
      this.emit("trackAdded", track);
      track.replaces = null;
    }
    for (const track of tracks) this.emit("trackRemoved", track);
    for (const person of people) if (!stays(person, next.participants)) this.emit("participantLeft", person);
    next.forget();
    this.former.add(visit);
    setTimeout(() => visit.arrived(), MOVE_MS.shown);
    setTimeout(() => this.close(visit), MOVE_MS.over);
    this.emit("moved", undefined);
  }

  private close(visit: Visit): void {
    visit.close();
    this.former.delete(visit);
  }

  /** The server is quiet: if another one answers while nothing of this one comes, that is not for want of a network, and the room is there soon. */
  private async compare(visit: Visit): Promise<void> {
    const other = this.servers.second;
    if (this.visit !== visit || this.comparing || other === undefined) return;
    this.comparing = true;
    try {
      const before = await visit.received();
      (await SignalSocket.open(other)).close();
      const silent = (await visit.received()) === before;
      if (this.visit === visit && visit.quiet && silent) this.lostAt(visit, unreachable());
    } catch {
      // Nobody answers: it is waited for.
      this.servers.postpone(1);
    } finally {
      this.comparing = false;
    }
  }

  private lostAt(visit: Visit, cause: WindlassError): void {
    const known = visit === this.visit || visit === this.next || this.former.has(visit);
    // Whoever is removed, or replaced, is so everywhere.
    if (known && !cause.temporary) this.lost(cause);
    else if (this.former.has(visit)) this.close(visit);
    else if (visit === this.next) this.stay(visit);
    else if (visit === this.visit && this.next !== null) this.settle(this.next);
    else if (visit === this.visit) this.lost(cause);
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
    if (!(cause instanceof Moved)) this.servers.postpone(0);
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
    const { visit, next, tracks, participants } = this;
    this.visit = null;
    this.next = null;
    next?.close();
    visit?.close();
    for (const former of this.former) this.close(former);
    for (const track of tracks) this.emit("trackRemoved", track);
    for (const participant of participants) this.emit("participantLeft", participant);
  }

  private finish(reason: WindlassError): void {
    this.end();
    const out = OUT.find((code) => code === reason.code);
    if (out !== undefined) this.emit("removed", { reason: out });
    this.emit("disconnected", { reason });
  }

  private end(): void {
    this.over = true;
    clearTimeout(this.retry);
    clearInterval(this.reports);
    this.drop();
    this.relay.close();
  }
}
