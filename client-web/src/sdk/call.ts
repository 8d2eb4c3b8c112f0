/**
 * A call: a sequence of sessions. It reconnects after a lost session, and migrates when the server asks for that: the
 * client joins the new server before it leaves the former one (make-before-break). The states are in `call-state.ts`.
 */
import type { Backoff } from "./backoff.js";
import {
  type CallState,
  type CallStateEvent,
  currentSession,
  type MoveRequest,
  nextState,
  remainingMove,
  successorSession,
} from "./call-state.js";
import { connectionLost, ended, left, Moved, noConnection, noData, OUT, unreachable, WindlassError } from "./errors.js";
import type { CallEvents, HostEvents } from "./events.js";
import { Inbox } from "./inbox.js";
import {
  type Draft,
  draft,
  type MessageData,
  type ReceivedMessage,
  type Receiver,
  type SendOptions,
} from "./message.js";
import { Outbox } from "./outbox.js";
import { type Profile, saysSame } from "./profile.js";
import type { ParticipantInfo, Rung } from "./protocol.js";
import type { Publication } from "./publication.js";
import type { Servers } from "./servers.js";
import type { Session, SessionRequest } from "./session.js";
import { SignalSocket } from "./socket.js";

/** Max servers in a row that may send the client to another one, per attempt to join. */
const MAX_HOPS = 3;
/** Max servers that are asked at once. */
const MAX_ASKED = 4;
/**
 * Max time until a successor receives what the former session does, milliseconds. Servers keep a session for 6 s after
 * `moved`.
 */
const READY_MS = 4500;
/** Time from the switch until the former server learns of it, milliseconds: pages need it to show the new tracks. */
const ARRIVED_MS = 300;
/**
 * Time from the switch until the former session is closed, milliseconds: it still sends to participants that migrate
 * later.
 */
const DRAIN_MS = 7000;
/** Max number of messages that are held until the page knows who sent them. */
const MAX_HELD = 256;
/** Interval of reports to the server, milliseconds. */
const REPORT_MS = 1000;
/** Default max attempts to reconnect: somewhat more than a minute. */
const MAX_ATTEMPTS = 12;

/** The events of the current session that the room emits unchanged. */
const FORWARDED = [
  "participantJoined",
  "participantChanged",
  "participantLeft",
  "trackAdded",
  "trackRemoved",
  "trackMuted",
  "publicationMuted",
  "speaker",
  "quality",
  "rung",
  "stats",
  "locked",
  "recording",
  "lobby",
  "refused",
] as const satisfies readonly (keyof CallEvents)[];

/** What a call adds to each request of its sessions. */
export type CallRequest = Pick<SessionRequest, "former" | "ticket" | "maxRungs" | "seat" | "signal">;

/** What a call needs of its room. */
export interface CallHost {
  readonly servers: Servers;
  readonly backoff: Backoff;
  /** Max attempts to reconnect; undefined: the default. */
  readonly maxAttempts: number | undefined;
  /** What this participant says of itself. */
  readonly profile: Profile;
  /** Begins a session at the first of the servers that answers. */
  join(servers: readonly string[], request: CallRequest): Promise<Session>;
  emit<Name extends keyof HostEvents>(name: Name, value: HostEvents[Name]): void;
  /** Called once, when the call is over. */
  release(): void;
}

/** A call over all its sessions: joins, reconnects, migrates and ends. */
export class Call {
  readonly publications = new Set<Publication>();
  /** Caps on subscriptions, by track id. */
  maxRungs = new Map<string, Rung>();
  private state: CallState<Session> = { name: "connecting" };
  /** Sessions on former servers that still send. */
  private readonly draining = new Set<Session>();
  /** This participant's latest id. */
  private id = "";
  /** The server of the latest session. */
  private lastUrl = "";
  private seat: string | undefined;
  /** The session whose server is being compared with another one. */
  private probed: Session | null = null;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private readonly reports: ReturnType<typeof setInterval>;
  /** Aborts attempts to join: the call is over. */
  private readonly attempts = new AbortController();
  private readonly inbox = new Inbox();
  private readonly outbox = new Outbox({
    path: () => (this.session === this.settled ? this.session : null),
    idOf: (receiver) => this.idOf(receiver),
  });
  /** Messages by the successor of those whom the page does not know before the switch. */
  private held: ReceivedMessage[] = [];
  /** The latest session whose participants the page knows: by it messages are sent. */
  private settled: Session | null = null;

  constructor(private readonly host: CallHost) {
    this.reports = setInterval(() => this.session?.report(), REPORT_MS);
  }

  /** The session that carries the call; null without a connection. */
  get session(): Session | null {
    return currentSession(this.state);
  }

  /** The session that sends: during a migration the successor. */
  get sender(): Session | null {
    return successorSession(this.state) ?? this.session;
  }

  /** This participant's id; the latest one without a connection. */
  get participant(): string {
    return this.session?.participant ?? this.id;
  }

  /**
   * Joins the room for the first time. Rejects with a {@link WindlassError}; the call is over then. `signal` aborts
   * this attempt, and not those after it.
   */
  async start(signal?: AbortSignal): Promise<void> {
    const abort = () => this.attempts.abort();
    signal?.addEventListener("abort", abort);
    if (signal?.aborted === true) abort();
    try {
      await this.connect();
    } catch (error) {
      const reason = error instanceof WindlassError ? error : noConnection(error);
      this.end(reason);
      throw reason;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Sends tracks. Without a connection, the next session does. */
  async publish(publications: readonly Publication[]): Promise<void> {
    for (const publication of publications) this.publications.add(publication);
    const { sender } = this;
    if (sender !== null) await Promise.all(publications.map((publication) => sender.publish(publication)));
  }

  /** Stops sending a track in every session. */
  async unpublish(publication: Publication): Promise<void> {
    this.publications.delete(publication);
    await Promise.all(this.sessions.map((session) => session.unpublish(publication)));
  }

  /** Sends a message to other participants. Resolves when the server has taken it. */
  async send(topic: string, data: MessageData, options: SendOptions): Promise<void> {
    const message: Draft = draft(topic, data, options);
    if (this.state.name === "closed") throw ended();
    if (this.session?.may("data") === false) throw noData();
    if (this.session === null && options.reliable === false) throw connectionLost();
    await this.outbox.send(message);
  }

  /** Changes what the others know of this participant. Resolves when the server has notified them. */
  async describe(changes: Readonly<Record<string, string | null>>, name?: string): Promise<void> {
    if (this.session?.may("data") === false) throw noData();
    await this.host.profile.set(changes, name);
  }

  private idOf(receiver: Receiver): string | null {
    if (typeof receiver !== "string") return receiver.left || receiver.away ? null : receiver.id;
    return this.session?.participants.some(({ id }) => id === receiver) === true ? receiver : null;
  }

  /** Leaves the room. */
  leave(): void {
    if (this.state.name === "closed") return;
    for (const session of this.sessions) session.leave();
    this.finish(left());
  }

  private get sessions(): Session[] {
    return [successorSession(this.state), this.session, ...this.draining].filter((session) => session !== null);
  }

  /** Applies an event to the state; false where the state has no such transition. */
  private apply(event: CallStateEvent<Session>): boolean {
    const next = nextState(this.state, event);
    if (next === null) return false;
    this.state = next;
    return true;
  }

  /** Joins the room on whichever server it is. */
  private async connect(): Promise<void> {
    const session = await this.join(null, undefined, this.maxRungs);
    // Track ids of another server differ.
    if (session.url !== this.lastUrl) this.maxRungs.clear();
    if (!this.apply({ type: "entered", session })) {
      session.close();
      throw unreachable();
    }
    this.entered(session);
    this.take(session);
    this.listen(session);
    setTimeout(() => {
      if (this.session !== session) return;
      session.announce();
      // Once the page knows who is there, as messages name receivers.
      setTimeout(() => this.sendMessagesBy(session), 0);
    }, 0);
  }

  private sendMessagesBy(session: Session): void {
    this.settled = session;
    this.outbox.flush();
  }

  /** Joins the room and follows `moved` answers; `former`: in a migration, the session to succeed. */
  private async join(
    former: Session | null,
    ticket: string | undefined,
    maxRungs: Map<string, Rung>,
  ): Promise<Session> {
    const { servers } = this.host;
    for (let hops = 0; ; hops++) {
      try {
        // A migration must not end on the server that it leaves.
        const urls = servers.first(former === null ? MAX_ASKED : 1);
        return await this.joinAt(urls, { former, ticket, maxRungs, seat: this.seat, signal: this.attempts.signal });
      } catch (error) {
        // What the page has changed since the last session must not end the call.
        const isDropped = error instanceof WindlassError && this.host.profile.refusedByJoin(error);
        if (isDropped && hops < MAX_HOPS) continue;
        if (!(error instanceof Moved) || hops >= MAX_HOPS || error.url === former?.url) throw error;
        servers.named(error.by, [error.url, ...error.others]);
        servers.goTo(error.url);
      }
    }
  }

  private async joinAt(urls: readonly string[], request: CallRequest): Promise<Session> {
    const session = await this.host.join(urls, request);
    if (this.state.name === "closed") {
      session.close();
      throw unreachable();
    }
    return session;
  }

  /** Notes the seat and the server of a session that is to carry the call; one that came too late changes neither. */
  private entered({ welcome, url }: Session): void {
    this.seat = welcome.seat ?? this.seat;
    const others = welcome.others ?? [];
    this.host.servers.named(url, others);
    this.host.servers.at(url, others);
  }

  /** Notes where the call is, now that `session` carries it. */
  private take(session: Session): void {
    // In a loopback room this participant gets its own messages.
    this.inbox.met({ id: session.participant, was: this.id });
    this.id = session.participant;
    this.lastUrl = session.url;
  }

  /** Listens to a session, and sends the publications by it. */
  private listen(session: Session): void {
    for (const name of FORWARDED) this.forward(session, name);
    session.on("met", (participant) => this.inbox.met(participant));
    // Each server may have messages that the other one has not.
    session.on("message", (message) => {
      if (this.isFromNewcomer(session, message)) this.hold(message);
      else this.pass(message);
    });
    this.host.profile.begin(session, session.told, session.may("data"));
    session.on("lost", (error) => this.sessionLost(session, error));
    // An open socket is no success: attempts must end where the media path never comes up.
    session.on("up", () => this.host.backoff.reset());
    session.on("grants", (grants) => {
      // What ended does not begin again by itself.
      if (!session.may("publish")) this.publications.clear();
      this.host.profile.granted(session, session.may("data"));
      if (this.session === session) this.host.emit("grants", grants);
    });
    session.on("quiet", () => void this.probe(session));
    session.on("moved", (target) => this.moveRequested({ session, target }));
    this.sendAll(session);
  }

  private forward<Name extends (typeof FORWARDED)[number]>(session: Session, name: Name): void {
    session.on(name, (value) => {
      if (this.session !== session) return;
      this.host.emit(name, value as HostEvents[Name]);
      if (name === "participantJoined") this.release((message) => !this.isFromNewcomer(null, message));
    });
  }

  private pass(message: ReceivedMessage): void {
    if (this.inbox.takes(message)) this.host.emit("message", message);
  }

  /**
   * Whether a message came by the successor (`session`, or null) from somebody whom the page does not know before the
   * switch.
   */
  private isFromNewcomer(session: Session | null, { from, was }: ReceivedMessage): boolean {
    if (session !== null && session !== successorSession(this.state)) return false;
    return this.session?.participants.some(({ id }) => id === from || id === was) === false;
  }

  private hold(message: ReceivedMessage): void {
    if (this.held.length < MAX_HELD) this.held.push(message);
  }

  /** Passes on the messages that were held. */
  private release(isKnown: (message: ReceivedMessage) => boolean = () => true): void {
    for (const message of this.held.splice(0)) {
      if (isKnown(message)) this.pass(message);
      else this.held.push(message);
    }
  }

  private sendAll(session: Session): void {
    for (const publication of this.publications) {
      session.publish(publication).catch((error: unknown) => this.notSent(session, publication, error));
    }
  }

  /** A further server refuses a track: the call goes on without. Where the session itself is lost, `lost` follows. */
  private notSent(session: Session, publication: Publication, error: unknown): void {
    if (!this.sessions.includes(session) || !(error instanceof WindlassError)) return;
    if (!this.publications.has(publication)) return;
    this.unpublish(publication).catch(() => undefined);
    this.host.emit("refused", error);
  }

  private moveRequested({ session, target }: MoveRequest<Session>): void {
    this.host.servers.named(session.url, [target.url, ...(target.others ?? [])]);
    this.requestMove({ session, target });
  }

  private requestMove(request: MoveRequest<Session>): void {
    const { state } = this;
    if (state.name === "connected" && state.session !== request.session) return;
    if (!this.apply({ type: "move", request })) return;
    if (this.state.name === "entering" && state.name === "connected") void this.migrate(request);
  }

  /**
   * Migrates: joins the target, sends by both sessions, and switches once the successor receives as well as the former.
   */
  private async migrate({ session, target }: MoveRequest<Session>): Promise<void> {
    const { servers } = this.host;
    const isEntering = () => this.state.name === "entering" && this.state.session === session;
    servers.goTo(target.url);
    let successor: Session;
    try {
      successor = await this.join(session, target.ticket, new Map());
    } catch {
      // The former session continues until its server closes it; that error counts.
      if (!isEntering()) return;
      servers.goTo(session.url);
      this.endMigration({ type: "entryFailed" });
      return;
    }
    if (!isEntering()) {
      successor.leave(); // the former session was lost meanwhile
      return;
    }
    this.entered(successor);
    this.apply({ type: "entered", session: successor });
    const able = await this.overlap(session, successor).catch(() => false);
    if (this.state.name === "settling" && this.state.session === successor) this.endMigration({ type: "settled" });
    if (successorSession(this.state) !== successor) return;
    if (able) this.switchOver("switched");
    else this.abandon();
  }

  /** Sends by both sessions; resolves to whether the successor receives. */
  private async overlap(session: Session, successor: Session): Promise<boolean> {
    session.freeze();
    this.listen(successor);
    successor.announce();
    return successor.ready(READY_MS);
  }

  /** Applies an event. If it ends the migration, begins the one that was requested meanwhile of the current session. */
  private endMigration(event: CallStateEvent<Session>): void {
    const { state } = this;
    if (!this.apply(event) || this.state.name !== "connected" || !("queued" in state)) return;
    const request = remainingMove(state.queued, this.state.session, state.target);
    if (request !== null) queueMicrotask(() => this.requestMove(request));
  }

  /** Abandons the successor: the former session continues until its server closes it. */
  private abandon(): void {
    const { state } = this;
    if (state.name !== "overlapping") return;
    const { session, successor } = state;
    this.endMigration({ type: "abandoned" });
    successor.leave();
    // What was held comes by the former session too.
    this.held = [];
    this.seat = session.welcome.seat ?? this.seat;
    this.host.profile.ended(successor);
    this.host.servers.goTo(session.url);
    session.thaw();
    this.sendAll(session);
  }

  /** Switches to the successor: its tracks replace those of the former session. */
  private switchOver(type: "switched" | "formerLost"): void {
    const { state, host } = this;
    if (state.name !== "overlapping") return;
    const { session: former, successor } = state;
    const [participants, tracks] = [former.participants, former.tracks];
    const isIn = ({ id }: ParticipantInfo, list: ParticipantInfo[]) => list.some((other) => other.id === id);
    this.endMigration({ type });
    this.take(successor);
    this.maxRungs = successor.maxRungs;
    for (const participant of successor.participants) {
      const known = participants.find(({ id }) => id === participant.id);
      if (known === undefined) host.emit("participantJoined", participant);
      else if (!saysSame(known, participant)) host.emit("participantChanged", participant);
    }
    for (const told of successor.qualities) host.emit("quality", told);
    this.release();
    this.sendMessagesBy(successor);
    for (const track of successor.tracks) {
      track.replaces = successor.predecessorOf(track);
      host.emit("trackAdded", track);
      track.replaces = null;
    }
    for (const track of tracks) host.emit("trackRemoved", track);
    for (const participant of participants) {
      if (!isIn(participant, successor.participants)) host.emit("participantLeft", participant);
    }
    successor.forgetFormer();
    this.draining.add(former);
    setTimeout(() => former.sendArrived(), ARRIVED_MS);
    setTimeout(() => this.closeDrained(former), DRAIN_MS);
    host.emit("moved", undefined);
  }

  private close(session: Session): void {
    session.close();
    this.host.profile.ended(session);
  }

  private closeDrained(session: Session): void {
    this.close(session);
    this.draining.delete(session);
  }

  /**
   * The server is quiet. Where another one answers while nothing comes from this one, the network is not at fault: the
   * session counts as lost, since the room is on another server soon.
   */
  private async probe(session: Session): Promise<void> {
    const { servers } = this.host;
    const other = servers.second;
    if (this.session !== session || this.probed !== null || other === undefined) return;
    this.probed = session;
    try {
      const before = await session.bytesReceived();
      (await SignalSocket.open(other)).close();
      const silent = (await session.bytesReceived()) === before;
      if (this.session === session && session.quiet && silent) this.sessionLost(session, unreachable());
    } catch {
      // No server answers: wait for the network.
      servers.postpone(1);
    } finally {
      this.probed = null;
    }
  }

  private sessionLost(session: Session, cause: WindlassError): void {
    const isDraining = this.draining.has(session);
    const isSuccessor = session === successorSession(this.state);
    if (!isDraining && !isSuccessor && session !== this.session) return;
    // A removal, and a join from elsewhere, hold on every server.
    if (!cause.temporary) this.lost(cause);
    else if (isDraining) this.closeDrained(session);
    else if (isSuccessor) this.abandon();
    else if (this.state.name === "overlapping") this.switchOver("formerLost");
    else this.lost(cause);
  }

  /** Reconnects after a pause, or ends the call. */
  private lost(cause: WindlassError): void {
    const { backoff, servers, maxAttempts = MAX_ATTEMPTS, emit } = this.host;
    if (this.isOver) return;
    this.drop({ type: "lost" });
    // The page may leave whenever it is told something.
    if (this.isOver) return;
    this.outbox.interrupted();
    // The room may still count the session that was lost.
    const mayPass = cause.temporary || (cause.code === "room_full" && backoff.attempts > 0);
    if (!mayPass || backoff.attempts >= maxAttempts) {
      this.finish(cause);
      return;
    }
    const delayMs = backoff.next();
    // Another server, if there is one, is tried first, unless this one has just named it.
    if (!(cause instanceof Moved)) servers.postpone(0);
    emit("reconnecting", { attempt: backoff.attempts, delayMs, cause });
    if (this.isOver) return;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => {
      this.connect().then(
        () => emit("reconnected", undefined),
        (error: unknown) => this.lost(error instanceof WindlassError ? error : noConnection(error)),
      );
    }, delayMs);
  }

  // A getter, as the state changes while listeners run.
  private get isOver(): boolean {
    return this.state.name === "closed";
  }

  /** Closes all sessions, and removes what came by the current one. */
  private drop(event: CallStateEvent<Session>): void {
    const { session, sessions } = this;
    const [tracks, participants] = [session?.tracks ?? [], session?.participants ?? []];
    this.apply(event);
    this.draining.clear();
    this.held = [];
    for (const dropped of sessions) this.close(dropped);
    // Where the page leaves meanwhile, the call's end is the last event.
    const goesOn = () => event.type === "closed" || !this.isOver;
    for (const track of tracks) if (goesOn()) this.host.emit("trackRemoved", track);
    for (const participant of participants) if (goesOn()) this.host.emit("participantLeft", participant);
  }

  private finish(reason: WindlassError): void {
    this.end(reason);
    const removed = OUT.find((code) => code === reason.code);
    if (removed !== undefined) this.host.emit("removed", { reason: removed });
    this.host.emit("disconnected", { reason });
  }

  private end(reason: WindlassError): void {
    this.attempts.abort();
    this.outbox.end(reason);
    this.host.profile.end(reason);
    clearTimeout(this.retry);
    clearInterval(this.reports);
    this.drop({ type: "closed" });
    this.host.release();
  }
}
