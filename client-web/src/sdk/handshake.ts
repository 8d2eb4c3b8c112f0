/** The handshake of a session: `join`, the lobby where there is one, and the server's `welcome`. */
import { guarded } from "./emitter.js";
import { left, Moved, unreachable, WindlassError } from "./errors.js";
import type { Attributes } from "./profile.js";
import { ANCHOR_CODECS, PROTOCOL_VERSION, type Welcome } from "./protocol.js";
import type { SignalSocket } from "./socket.js";

/** Max time from `join` to the server's answer, milliseconds. The lobby itself has no time limit. */
const WELCOME_TIMEOUT_MS = 8000;

/** The parameters of a join. */
export interface JoinRequest {
  room: string;
  name: string;
  /** What this participant says of itself. */
  attributes: Attributes;
  loopback: boolean;
  /** Access token. */
  token: string | undefined;
  /** Keeps this participant's place over a lost connection: from the latest welcome. */
  seat: string | undefined;
  /** Proves which participant of the former server this client is: from its request to migrate. */
  ticket: string | undefined;
  /** Called when the server puts this participant into the lobby. */
  waiting: () => void;
  /** Aborts the attempt. */
  signal: AbortSignal | undefined;
}

/**
 * Joins the room by an open socket to the server at `url`. Rejects with a {@link WindlassError}: with {@link Moved}
 * where the room is on another server.
 */
export function handshake(
  url: string,
  socket: Pick<SignalSocket, "send" | "onLost" | "onMessage">,
  request: JoinRequest,
): Promise<Welcome> {
  const { room, name, attributes, loopback, token, ticket, seat, waiting, signal } = request;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(unreachable()), WELCOME_TIMEOUT_MS);
    const abort = () => {
      socket.send({ type: "leave" });
      fail(left());
    };
    const settle = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const fail = (error: WindlassError) => {
      settle();
      reject(error);
    };
    if (signal?.aborted === true) return fail(left());
    signal?.addEventListener("abort", abort);
    socket.onLost = fail;
    socket.onMessage = (message) => {
      if (message.type === "error") fail(new WindlassError(message.code, message.message, message.hint));
      if (message.type === "moved") fail(new Moved(message.url, url, message.others ?? []));
      if (message.type === "waiting") {
        clearTimeout(timer);
        guarded(waiting);
      }
      if (message.type !== "welcome") return;
      settle();
      resolve(message);
    };
    socket.send({
      type: "join",
      version: PROTOCOL_VERSION,
      room,
      name,
      loopback,
      anchor_codecs: [...ANCHOR_CODECS],
      ...(Object.keys(attributes).length === 0 ? {} : { attributes }),
      ...(token === undefined ? {} : { token }),
      ...(ticket === undefined ? {} : { ticket }),
      ...(seat === undefined ? {} : { seat }),
    });
  });
}
