/** The signalling socket: JSON messages, answers matched to requests by id, and a heartbeat that notices silence. */
import { unreachable, WindlassError } from "./errors.js";
import { type ClientMessage, parseServerMessage, type ServerMessage } from "./protocol.js";

const OPEN_TIMEOUT_MS = 8000;
/** A server that has not answered for so long may be lost: the next is asked beside it. */
const NEXT_MS = 700;
const REQUEST_TIMEOUT_MS = 10_000;
const PING_MS = 4000;
const SILENCE_MS = 12_000;
/** Between two pings where somebody listens for quiet, and how long one may go without an answer. */
const QUICK_PING_MS = 400;
const QUIET_MS = 1000;

type Offer = Extract<ClientMessage, { type: "offer" }>;
type Order = Extract<ClientMessage, { type: "moderate" }>;
type Answer = Extract<ServerMessage, { type: "answer" }>;
type Done = Extract<ServerMessage, { type: "done" }>;

interface Pending {
  resolve(answer: Answer | Done): void;
  reject(error: WindlassError): void;
  timer: ReturnType<typeof setTimeout>;
}

/** An open socket. Messages that come before `onMessage` is set wait for it. */
export class SignalSocket {
  /** Called once when the socket is gone for whatever reason but `close`. */
  onLost: ((error: WindlassError) => void) | null = null;
  /** Called again and again while a ping is not answered soon; set, the server is asked more often. */
  onQuiet: (() => void) | null = null;
  /** The latest round trip to the server, milliseconds; null before the first. */
  roundTripMs: number | null = null;
  private handler: ((message: ServerMessage) => void) | null = null;
  private early: ServerMessage[] = [];
  private readonly pending = new Map<number, Pending>();
  private nextId = 1;
  private lastHeard = performance.now();
  private lastPing = performance.now();
  /** When the first ping was sent that nothing has come after; null: something has. */
  private asked: number | null = null;
  private fatal: WindlassError | null = null;
  private readonly heartbeat: ReturnType<typeof setInterval>;
  private closed = false;

  /** Opens a socket to `url`. */
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

  /** Opens a socket to the first of some servers that answers: each is asked once the one before has failed, or not answered soon. */
  static async openAny(urls: readonly string[]): Promise<[url: string, socket: SignalSocket]> {
    let found = false;
    const ask = async (url: string): Promise<[string, SignalSocket]> => {
      const socket = await SignalSocket.open(url);
      if (found) {
        socket.close();
        throw unreachable();
      }
      found = true;
      return [url, socket];
    };
    const asked: Promise<[string, SignalSocket]>[] = [];
    for (const url of urls) {
      if (found) break;
      const answer = ask(url);
      asked.push(answer);
      const soon = new Promise((resolve) => setTimeout(resolve, NEXT_MS));
      await Promise.race([answer.catch(() => undefined), soon]);
    }
    return Promise.any(asked).catch(() => Promise.reject(unreachable()));
  }

  private constructor(private readonly socket: WebSocket) {
    socket.onmessage = (event) => this.receive(event.data);
    socket.onclose = () => this.lost();
    socket.onerror = null;
    this.heartbeat = setInterval(() => this.beat(), QUICK_PING_MS);
  }

  /** Whether a ping has not been answered for a while. Timers of hidden pages may rest: what counts is what was asked. */
  get quiet(): boolean {
    return this.asked !== null && performance.now() - this.asked > QUIET_MS;
  }

  private beat(): void {
    const now = performance.now();
    if (this.asked !== null && now - this.lastHeard > SILENCE_MS) {
      this.lost();
      return;
    }
    if (this.quiet) this.onQuiet?.();
    if (this.onQuiet === null && now - this.lastPing < PING_MS) return;
    this.lastPing = now;
    this.asked ??= now;
    this.send({ type: "ping", time: now });
  }

  /** Who takes the messages that answer no request. */
  set onMessage(handler: (message: ServerMessage) => void) {
    this.handler = handler;
    for (const message of this.early.splice(0)) handler(message);
  }

  /** Sends a message that needs no answer; silently nothing when the socket is gone. */
  send(message: ClientMessage): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /** Sends an offer and waits for its answer. */
  request(message: Offer): Promise<Answer> {
    return this.ask(message) as Promise<Answer>;
  }

  /** Sends what a moderator wants and waits until it is done. */
  async order(message: Order): Promise<void> {
    await this.ask(message);
  }

  private ask(message: Offer | Order): Promise<Answer | Done> {
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
      this.pending.set(id, { resolve, reject, timer });
      this.send({ ...message, id });
    });
  }

  /** Ends the socket without a word to `onLost`. */
  close(): void {
    this.onLost = null;
    this.onQuiet = null;
    this.lost();
  }

  private receive(data: unknown): void {
    this.lastHeard = performance.now();
    this.asked = null;
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
    for (const { reject, timer } of this.pending.values()) {
      clearTimeout(timer);
      reject(error);
    }
    this.pending.clear();
    this.socket.onclose = null;
    this.socket.onmessage = null;
    this.socket.close();
    this.onLost?.(error);
  }
}

function connectionLost(): WindlassError {
  return new WindlassError(
    "connection_lost",
    "The connection to the server was lost.",
    "Wait while the page reconnects, or reload it.",
  );
}
