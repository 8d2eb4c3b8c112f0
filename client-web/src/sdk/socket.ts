/** The signalling socket: JSON messages, requests with ids, and pings that detect a silent server. */
import { connectionLost, unreachable, WindlassError } from "./errors.js";
import { type ClientMessage, parseServerMessage, type ServerMessage } from "./protocol.js";

/** Max time to open a socket, milliseconds. */
const OPEN_TIMEOUT_MS = 8000;
/** Time without an answer after which the next server is tried as well, milliseconds. */
const NEXT_SERVER_MS = 700;
/** Max time for the answer to a request, milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Interval of pings, milliseconds. */
const PING_MS = 4000;
/** Silence after which the socket counts as lost, milliseconds. */
const SILENCE_MS = 12_000;
/** Interval of pings while `onQuiet` is set, milliseconds. */
const QUICK_PING_MS = 400;
/** Time without an answer to a ping after which the server counts as quiet, milliseconds. */
const QUIET_MS = 1000;

type Offer = Extract<ClientMessage, { type: "offer" }>;
type ModerateRequest = Extract<ClientMessage, { type: "moderate" }>;
type Telling = Extract<ClientMessage, { type: "send" | "attributes" }>;
type Answer = Extract<ServerMessage, { type: "answer" }>;
type Done = Extract<ServerMessage, { type: "done" }>;

/** What became of a message: the server took or refused it, or the socket was lost before it said so. */
export type Outcome =
  | { readonly type: "done" }
  | { readonly type: "refused"; readonly error: WindlassError }
  | { readonly type: "lost"; readonly error: WindlassError };

interface Pending {
  resolve(answer: Answer | Done): void;
  /** The server refused it. */
  reject(error: WindlassError): void;
  lost(error: WindlassError): void;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** An open socket. Messages that come before `onMessage` is set are kept for it. */
export class SignalSocket {
  /** Called once when the socket is lost, but not after {@link close}. */
  onLost: ((error: WindlassError) => void) | null = null;
  /** Called again and again while the server is {@link quiet}. While it is set, pings are more frequent. */
  onQuiet: (() => void) | null = null;
  /** The latest round-trip time, milliseconds; null before the first. */
  roundTripMs: number | null = null;
  private handler: ((message: ServerMessage) => void) | null = null;
  private early: ServerMessage[] = [];
  private readonly pending = new Map<number, Pending>();
  private nextId = 1;
  private lastHeard = performance.now();
  private lastPing = performance.now();
  /** When the oldest unanswered ping was sent; null: none is unanswered. */
  private unansweredSince: number | null = null;
  private fatal: WindlassError | null = null;
  private readonly heartbeat: ReturnType<typeof setInterval>;
  private closed = false;

  /** Opens a socket to `url`. Rejects with `unreachable`, within 8 s. */
  static open(url: string): Promise<SignalSocket> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url);
      const timer = setTimeout(() => {
        socket.close();
        reject(unreachable());
      }, OPEN_TIMEOUT_MS);
      socket.onopen = () => {
        clearTimeout(timer);
        resolve(new SignalSocket(socket));
      };
      socket.onerror = () => {
        clearTimeout(timer);
        reject(unreachable());
      };
    });
  }

  /**
   * Opens a socket to the first server that answers. Each is tried once the one before has failed, or is slow. Rejects
   * with `unreachable`.
   */
  static async openAny(urls: readonly string[]): Promise<[url: string, socket: SignalSocket]> {
    let found = false;
    const open = async (url: string): Promise<[string, SignalSocket]> => {
      const socket = await SignalSocket.open(url);
      if (found) {
        socket.close();
        throw unreachable();
      }
      found = true;
      return [url, socket];
    };
    const attempts: Promise<[string, SignalSocket]>[] = [];
    for (const url of urls) {
      if (found) break;
      const opening = open(url);
      attempts.push(opening);
      const soon = new Promise((resolve) => setTimeout(resolve, NEXT_SERVER_MS));
      await Promise.race([opening.catch(() => undefined), soon]);
    }
    return Promise.any(attempts).catch(() => Promise.reject(unreachable()));
  }

  private constructor(private readonly socket: WebSocket) {
    socket.onmessage = (event) => this.receive(event.data);
    socket.onclose = () => this.lost();
    socket.onerror = null;
    this.heartbeat = setInterval(() => this.beat(), QUICK_PING_MS);
  }

  /** Whether a ping has been unanswered for a second. Only pings count, as the timers of hidden pages may pause. */
  get quiet(): boolean {
    return this.unansweredSince !== null && performance.now() - this.unansweredSince > QUIET_MS;
  }

  private beat(): void {
    const now = performance.now();
    if (this.unansweredSince !== null && now - this.lastHeard > SILENCE_MS) {
      this.lost();
      return;
    }
    if (this.quiet) this.onQuiet?.();
    if (this.onQuiet === null && now - this.lastPing < PING_MS) return;
    this.lastPing = now;
    this.unansweredSince ??= now;
    this.send({ type: "ping", time: now });
  }

  /** Takes the messages that answer no request. */
  set onMessage(handler: (message: ServerMessage) => void) {
    this.handler = handler;
    for (const message of this.early.splice(0)) handler(message);
  }

  /** Sends a message without an answer. Does nothing after the socket was lost. */
  send(message: ClientMessage): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /** Sends an offer. Resolves to its answer; rejects with the server's error, or `unreachable` after 10 s. */
  request(message: Offer): Promise<Answer> {
    return this.ask(message) as Promise<Answer>;
  }

  /** Sends a moderator's request. Resolves when the server has carried it out; rejects like {@link request}. */
  async moderate(message: ModerateRequest): Promise<void> {
    await this.ask(message);
  }

  private ask(message: Offer | ModerateRequest): Promise<Answer | Done> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      if (this.closed) {
        reject(this.fatal ?? connectionLost());
        return;
      }
      const timer = setTimeout(() => {
        this.pending.delete(id);
        reject(unreachable());
      }, REQUEST_TIMEOUT_MS);
      this.pending.set(id, { resolve, reject, lost: reject, timer });
      this.send({ ...message, id });
    });
  }

  /** Sends a message, and resolves to what became of it. Waits for that as long as there is the socket. */
  tell(message: Telling): Promise<Outcome> {
    const id = this.nextId++;
    return new Promise((resolve) => {
      const lost = (error: WindlassError) => resolve({ type: "lost", error });
      if (this.closed) {
        lost(this.fatal ?? connectionLost());
        return;
      }
      const reject = (error: WindlassError) => resolve({ type: "refused", error });
      this.pending.set(id, { resolve: () => resolve({ type: "done" }), reject, lost, timer: undefined });
      this.send({ ...message, id });
    });
  }

  /** Closes the socket without calling `onLost`. */
  close(): void {
    this.onLost = null;
    this.onQuiet = null;
    this.lost();
  }

  private receive(data: unknown): void {
    this.lastHeard = performance.now();
    this.unansweredSince = null;
    const message = typeof data === "string" ? parseServerMessage(data) : null;
    if (message === null) return;
    if (message.type === "pong") {
      this.roundTripMs = performance.now() - message.time;
      return;
    }
    const answers = message.type === "answer" || message.type === "done" || message.type === "error";
    const id = answers ? message.id : undefined;
    const waiting = id === undefined ? undefined : this.pending.get(id);
    if (message.type === "error" && message.fatal) {
      this.fatal = new WindlassError(message.code, message.message, message.hint);
    }
    if (id !== undefined && waiting !== undefined) {
      this.pending.delete(id);
      clearTimeout(waiting.timer);
      if (message.type === "error") waiting.reject(new WindlassError(message.code, message.message, message.hint));
      else if (answers) waiting.resolve(message);
      return;
    }
    if (this.handler === null) this.early.push(message);
    else this.handler(message);
  }

  private lost(): void {
    if (this.closed) return;
    this.closed = true;
    clearInterval(this.heartbeat);
    const error = this.fatal ?? connectionLost();
    for (const { lost, timer } of this.pending.values()) {
      clearTimeout(timer);
      lost(error);
    }
    this.pending.clear();
    this.socket.onclose = null;
    this.socket.onmessage = null;
    this.socket.close();
    this.onLost?.(error);
  }
}
