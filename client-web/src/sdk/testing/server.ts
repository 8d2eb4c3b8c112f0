/** Servers in memory, each behind a fake `WebSocket` of its URL. */
import type { ParticipantInfo, TrackInfo } from "../protocol.js";

/** A message, as JSON has it. */
export type Json = Record<string, unknown>;

/** The client's end of a socket. */
class FakeSocket {
  static readonly OPEN = 1;
  readyState = 0;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  private readonly server: FakeServer | undefined;

  constructor(readonly url: string) {
    this.server = servers.get(url);
    queueMicrotask(() => {
      if (this.server === undefined || this.server.down) {
        this.onerror?.();
        return;
      }
      this.readyState = FakeSocket.OPEN;
      this.server.sockets.push(this);
      this.onopen?.();
    });
  }

  send(json: string): void {
    this.server?.receive(this, JSON.parse(json) as Json);
  }

  /** The server sends a message. */
  give(message: Json): void {
    if (this.readyState === FakeSocket.OPEN) this.onmessage?.({ data: JSON.stringify(message) });
  }

  /** The server, or the network, ends the socket. */
  cut(): void {
    this.readyState = 3;
    this.onclose?.();
  }

  close(): void {
    this.readyState = 3;
  }
}

const servers = new Map<string, FakeServer>();
const realWebSocket = globalThis.WebSocket;

export function startServers(): void {
  servers.clear();
  Object.assign(globalThis, { WebSocket: FakeSocket });
}

export function stopServers(): void {
  Object.assign(globalThis, { WebSocket: realWebSocket });
}

/** A server in memory, which admits everybody unless a test sets it otherwise. */
export class FakeServer {
  readonly url: string;
  readonly sockets: FakeSocket[] = [];
  /** What clients have sent, without pings. */
  readonly received: Json[] = [];
  participants: ParticipantInfo[] = [];
  tracks: TrackInfo[] = [];
  /** Added to each welcome. */
  welcome: Json = {};
  /** Refuses sockets. */
  down = false;
  /** Answers nothing, pings included. */
  silent = false;
  /** Answers no `send`, as where the socket is lost before the answer. */
  mute = false;
  /** Codes with which the next `send` or `attributes` are refused. */
  readonly refusals: string[] = [];
  /** The answer to the next `join`; null: a welcome. */
  answer: Json | null = null;
  /** Called after each answer to a `join`. */
  onJoin: () => void = () => undefined;
  private joins = 0;

  constructor(readonly name: string) {
    this.url = `wss://${name}.example/ws`;
    servers.set(this.url, this);
  }

  receive(socket: FakeSocket, message: Json): void {
    if (this.silent) return;
    if (message["type"] === "ping") {
      socket.give({ type: "pong", time: message["time"] });
      return;
    }
    this.received.push(message);
    if (message["type"] === "join") {
      socket.give(this.answer ?? this.makeWelcome());
      this.onJoin();
    }
    if (message["type"] === "offer") {
      const publish = message["publish"] as { mid: string; name: string }[];
      const tracks = publish.map(({ mid, name }) => ({ mid, track: `own ${name}` }));
      socket.give({ type: "answer", id: message["id"], sdp: "v=0\r\n", tracks });
    }
    if (message["type"] === "moderate") socket.give({ type: "done", id: message["id"] });
    if (message["type"] === "attributes" || (message["type"] === "send" && !this.mute)) {
      const code = this.refusals.shift();
      const id = message["id"];
      socket.give(code === undefined ? { type: "done", id } : { type: "error", id, code, message: code, hint: "" });
    }
  }

  makeWelcome(): Json {
    return {
      type: "welcome",
      version: 1,
      participant: `${this.name}-${++this.joins}`,
      room: "standup",
      loopback: false,
      budget_ms: 200,
      scale: 2,
      participants: this.participants,
      tracks: this.tracks,
      ...this.welcome,
    };
  }

  /** Sends a message to the latest client. */
  send(message: Json): void {
    this.sockets.at(-1)?.give(message);
  }

  /** Ends all sockets. */
  cut(): void {
    for (const socket of this.sockets.splice(0)) socket.cut();
  }

  /** How many sockets clients hold open. */
  get open(): number {
    return this.sockets.filter((socket) => socket.readyState === FakeSocket.OPEN).length;
  }

  /** The types of the messages received. */
  get types(): unknown[] {
    return this.received.map(({ type }) => type);
  }

  /** All messages of a type. */
  all(type: string): Json[] {
    return this.received.filter((message) => message["type"] === type);
  }

  /** The latest message of a type. */
  last(type: string): Json | undefined {
    return this.received.findLast((message) => message["type"] === type);
  }
}

/** A fatal error message. */
export const fatal = (code: string): Json => ({ type: "error", code, message: code, hint: "", fatal: true });

export const video = (id: string, participant: string, name = "camera"): TrackInfo => ({
  id,
  participant,
  kind: "video",
  name,
  muted: false,
});

export const audio = (id: string, participant: string, name = "microphone"): TrackInfo => ({
  ...video(id, participant, name),
  kind: "audio",
});
