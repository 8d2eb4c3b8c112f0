/** Errors: a code for programs, a message and a hint for people. */
import type { ErrorCode as ServerErrorCode } from "./protocol.gen.js";

export type { ErrorCode as ServerErrorCode } from "./protocol.gen.js";

/**
 * Codes of the SDK's own errors.
 * - `unreachable`: the server does not answer.
 * - `connection_lost`: the socket was lost, or there is no connection now.
 * - `media_failed`: the media path could not be set up, or was lost.
 * - `moved`: the room is on another server.
 * - `no_token`: the page's function `token` failed. Its error is the `cause`.
 * - `ended`: the call is over.
 * - `left`: this participant left, or aborted the attempt to join.
 * - `permission_denied`: the person did not allow the page to use the device, now or earlier.
 * - `permission_blocked`: the operating system, or the page's policy, does not allow it; asking the person is no use.
 * - `device_missing`: there is no such device.
 * - `device_busy`: the device does not start; another program may use it.
 * - `device_unfit`: no device can do what was asked for.
 * - `insecure_page`: the browser gives no devices to a page without https.
 * - `aborted`: it was stopped before it had begun, or the browser gave up.
 * - `sound_blocked`: the browser plays no sound before the person has clicked or pressed a key.
 * - `unsupported`: the browser cannot do it.
 * - `bad_option`, `unknown_event`: the page calls the SDK wrongly.
 */
export type ClientErrorCode =
  | "unreachable"
  | "connection_lost"
  | "media_failed"
  | "moved"
  | "no_token"
  | "ended"
  | "left"
  | "permission_denied"
  | "permission_blocked"
  | "device_missing"
  | "device_busy"
  | "device_unfit"
  | "insecure_page"
  | "aborted"
  | "sound_blocked"
  | "unsupported"
  | "bad_option"
  | "unknown_event";

/** An error. `message` says what failed, {@link hint} what to do next. */
export class WindlassError extends Error {
  /** The name of all errors of this class, as for `Error.name`. */
  override readonly name = "WindlassError";

  constructor(
    /** What failed, for programs. */
    readonly code: ServerErrorCode | ClientErrorCode,
    message: string,
    /** What the person can do, for display. */
    readonly hint: string,
  ) {
    super(message);
  }

  /** Whether a later attempt may succeed. */
  get temporary(): boolean {
    return TEMPORARY.has(this.code);
  }
}

const TEMPORARY = new Set<string>([
  "unreachable",
  "connection_lost",
  "media_failed",
  "moved",
  "no_token",
  "no_media",
  "shutting_down",
  "rate_limited",
  "internal",
]);

/** Codes of a removal, after which the call does not reconnect. */
export const OUT = ["removed", "banned", "revoked", "refused"] as const satisfies readonly ServerErrorCode[];

/** The room is on another server, which the call tries next. */
export class Moved extends WindlassError {
  /** `url`: that server's WebSocket; `by`: the server that named it, and `others`. */
  constructor(
    readonly url: string,
    readonly by: string,
    readonly others: readonly string[],
  ) {
    super("moved", "The call has moved to another server.", "Wait while the page goes there.");
  }
}

/** The server does not answer. */
export function unreachable(): WindlassError {
  return new WindlassError(
    "unreachable",
    "The server does not answer.",
    "Check your connection, or try again in a moment.",
  );
}

/** The browser makes no media connection, as where a URL of the server's ICE servers is wrong. */
export function noConnection(cause: unknown): WindlassError {
  const error = new WindlassError(
    "media_failed",
    `The browser makes no media connection: ${cause}`,
    "Try another browser, or tell who runs the server.",
  );
  error.cause = cause;
  return error;
}

/** The page's own function gave no access token. */
export function noToken(cause: unknown): WindlassError {
  const error = new WindlassError(
    "no_token",
    "This page got no permission to join the call.",
    "Sign in again, or try in a moment.",
  );
  error.cause = cause;
  return error;
}

/** The browser has none of the codecs that the server forwards. */
export function noCodec(): WindlassError {
  return new WindlassError(
    "no_codec",
    "This browser has none of the video codecs of calls: VP9, VP8, H.264, AV1.",
    "Use a current Chrome, Edge or Firefox.",
  );
}

/** No media path comes up, or the one that there was has ended. */
export function mediaFailed(): WindlassError {
  return new WindlassError(
    "media_failed",
    "Audio and video cannot reach the server.",
    "Check your connection, or try another network.",
  );
}

/** Frames cannot be encrypted here. */
export function noEncryption(): WindlassError {
  return new WindlassError(
    "unsupported",
    "This call is encrypted end to end, which this browser or page cannot do.",
    "Use a current Chrome, Edge or Firefox, and open the page by https.",
  );
}

/** This participant left. */
export function left(): WindlassError {
  return new WindlassError("left", "You left the call.", "Join again whenever you like.");
}

/** The page asks something of a call that is over. */
export function ended(): WindlassError {
  return new WindlassError("ended", "The call is over.", "Join again.");
}

/** The socket was lost. */
export function connectionLost(): WindlassError {
  return new WindlassError(
    "connection_lost",
    "The connection to the server was lost.",
    "Wait while the page reconnects, or reload it.",
  );
}

/** A request needs a connection, and there is none. */
export function notConnected(): WindlassError {
  return new WindlassError(
    "connection_lost",
    "There is no connection to the server.",
    "Wait until the page has reconnected.",
  );
}

/** The access token lacks the grant `publish`. */
export function notGranted(): WindlassError {
  return new WindlassError("forbidden", "You may not send in this call.", "Ask its organiser for permission to send.");
}

/** The access token lacks the grant `data`, or a moderator took it. */
export function noData(): WindlassError {
  return new WindlassError(
    "forbidden",
    "You may not send messages in this call.",
    "Ask its organiser for the permission `data`.",
  );
}

/** The page calls the SDK with a wrong option. */
export function badOption(message: string, hint: string): WindlassError {
  return new WindlassError("bad_option", message, hint);
}

/** The page listens for an event that there is not. */
export function unknownEvent(name: PropertyKey, names: readonly string[]): WindlassError {
  return new WindlassError(
    "unknown_event",
    `There is no event "${String(name)}".`,
    `The events are ${names.join(", ")}.`,
  );
}
