/** The public entry of the SDK. */
import { NETWORKS, type NetworkTier } from "../worker/network-choice.js";
import type { TokenSource } from "./access-token.js";
import type { Assets } from "./assets.js";
import type { StartOptions } from "./devices/local-input.js";
import type { EncryptionKey } from "./encryption.js";
import { badOption } from "./errors.js";
import { oneOf } from "./option-checks.js";
import { NETWORK_BACKENDS, type NetworkBackend, OUTPUT_KINDS, type OutputKind } from "./output.js";
import { Room } from "./room.js";

/** Options of {@link join}. */
export interface JoinOptions {
  /** Name of the room. */
  room: string;
  /** The name that the others see. */
  name: string;
  /** What this participant says of itself from the beginning: see {@link Room.setAttributes}. Default: nothing. */
  attributes?: Readonly<Record<string, string>>;
  /**
   * Opens the camera, and sends it, once the room is joined: with the usual settings, or with these. A failure, such as
   * a permission that was denied, is reported by the event `refused`; the call goes on. Default: false.
   */
  camera?: boolean | StartOptions;
  /** Sends the microphone, with these options, as `camera` does the camera. Default: false. */
  microphone?: boolean | StartOptions;
  /** Joins a private loopback room: this participant receives its own tracks as others would. Default: false. */
  loopback?: boolean;
  /** The access token, where the server needs one. A function is called at every attempt to connect. */
  token?: TokenSource;
  /**
   * Encrypts all media end to end, by this key: the server forwards what it cannot read, and makes and records nothing
   * of it. Nothing is received that is not encrypted. Data messages and names are not encrypted. See
   * {@link Room.setEncryptionKey}. Default: no encryption.
   */
  encryption?: EncryptionKey;
  /** URLs of the SDK's files, where a page keeps them elsewhere. */
  assets?: Assets;
  /**
   * The largest network that may run on every frame: `xs`, `xxs` or `none`. The machine's speed and battery decide
   * which one does, and whether in the decoder, in workers or on the GPU; none does in a hidden page. Default: `xs`.
   */
  maxNetwork?: NetworkTier;
  /** What runs it. Default: `auto`. For tests. */
  networkBackend?: NetworkBackend;
  /** How pictures leave the worker. Default: `auto`. For tests. */
  output?: OutputKind;
  /**
   * Called when this participant is put into the lobby. `join` then resolves on admission, or rejects with `refused`.
   */
  waiting?: () => void;
  /** Aborts the attempt to join, the wait in the lobby included; `join` rejects with `left`. Not once it is joined. */
  signal?: AbortSignal;
  /** Max attempts to reconnect. Default: 12, somewhat more than a minute. */
  attempts?: number;
}

/**
 * Joins a room. `url`: the address of the server, such as `https://calls.example/`, or of its WebSocket,
 * `wss://calls.example/ws`; one that begins with `/` or `.` is relative to the page's.
 *
 * Participants and tracks that are there already are announced after the caller's current task, so that listeners that
 * are set right after `await join(…)` receive them.
 *
 * Rejects with a {@link WindlassError}. Frequent codes: `unreachable` (no server answers within 8 s), `no_codec` (none
 * of VP9, VP8, H.264 and AV1), `unauthorized` (token), `room_full`, `refused` (by a moderator), `left` (aborted by
 * `signal`), `bad_option`.
 */
export async function join(url: string, options: JoinOptions): Promise<Room> {
  for (const name of ["room", "name"] as const) {
    if (typeof options?.[name] !== "string" || options[name].trim() === "") {
      throw badOption(`The option "${name}" is missing.`, `Call join(url, { room: "standup", name: "Ada" }).`);
    }
  }
  const { maxNetwork = "xs", networkBackend = "auto", output = "auto" } = options;
  oneOf("network", maxNetwork, NETWORKS);
  oneOf("backend", networkBackend, NETWORK_BACKENDS);
  oneOf("output", output, OUTPUT_KINDS);
  return Room.enter(socketUrl(url), options);
}

/** The URL of a server's WebSocket. */
export function socketUrl(url: string, base: string = globalThis.document?.baseURI): string {
  // Else a host's name would be that of a page beside this one.
  if (!/^([a-z][a-z\d+.-]*:|[./])/i.test(url)) {
    throw badOption(`"${url}" is no URL of a server.`, 'Write "https://" before its name, or "/" before a path.');
  }
  let address: URL;
  try {
    address = new URL(url, base);
  } catch {
    throw badOption(`"${url}" is no URL.`, 'Name the server, such as "https://calls.example/".');
  }
  const protocols: Record<string, string> = { "http:": "ws:", "https:": "wss:", "ws:": "ws:", "wss:": "wss:" };
  const protocol = protocols[address.protocol];
  if (protocol === undefined) {
    throw badOption(`"${url}" is the URL of no server.`, 'It begins with "https:" or "wss:".');
  }
  // A page's own address may be given: neither its query nor its fragment is the server's.
  if (address.protocol.startsWith("http")) {
    address.search = "";
    if (!address.pathname.endsWith("/ws")) address.pathname = address.pathname.replace(/[^/]*$/, "ws");
  }
  address.protocol = protocol;
  address.hash = "";
  return address.href;
}
