/** What can go wrong, in words that a program can branch on and a person can read. */

import type { ErrorCode } from "./protocol.gen.js";

/** Reasons that the server names. */
export type ServerErrorCode = ErrorCode;

/** Reasons that arise in the browser: the server does not answer, or no media path comes about. */
export type ClientErrorCode = "unreachable" | "connection_lost" | "media_failed" | "moved" | "left";

/** A failure with what to do next. */
export class WindlassError extends Error {
  override readonly name = "WindlassError";

  constructor(
    readonly code: ServerErrorCode | ClientErrorCode,
    message: string,
    /** What the person can do. */
    readonly hint: string,
  ) {
    super(message);
  }

  /** Whether another attempt, a little later, may succeed. */
  get temporary(): boolean {
    return TEMPORARY.has(this.code);
  }
}

const TEMPORARY = new Set<string>([
  "unreachable",
  "connection_lost",
  "media_failed",
  "moved",
  "no_media",
  "shutting_down",
  "rate_limited",
  "internal",
]);

/** Reasons for which one is out, and comes back by nothing that the page could do. */
export const OUT = ["removed", "banned", "revoked", "refused"] as const satisfies readonly ErrorCode[];

/** The room is on another server. */
export class Moved extends WindlassError {
  /** `url`: of that server's WebSocket; `by`: of the one that says so, which names `others` too. */
  constructor(
    readonly url: string,
    readonly by: string,
    readonly others: readonly string[],
  ) {
    super("moved", "The call has moved to another server.", "Wait while the page goes there.");
  }
}

/** The server cannot be reached, or not any more. */
export function unreachable(): WindlassError {
  return new WindlassError(
    "unreachable",
    "The server does not answer.",
    "Check your connection, or try again in a moment.",
  );
}

/** The browser has no VP9 with profile 0. */
export function noCodec(): WindlassError {
  return new WindlassError(
    "no_codec",
    "This browser cannot send and receive VP9 video.",
    "Use a current Chrome, Edge or Firefox.",
  );
}

/** One has gone oneself. */
export function left(): WindlassError {
  return new WindlassError("left", "You left the call.", "Join again whenever you like.");
}

/** There is no connection to say something by. */
export function notConnected(): WindlassError {
  return new WindlassError("connection_lost", "There is no connection to the server now.", "Wait until it is back.");
}

/** The access token does not let one send. */
export function notGranted(): WindlassError {
  return new WindlassError("forbidden", "You may watch this call, not send.", "Ask whoever runs it to let you send.");
}
