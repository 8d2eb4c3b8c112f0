/** Messages between participants: what a page gives and gets, and what of it is within the server's bounds. */
import { badOption, WindlassError } from "./errors.js";
import type { Participant } from "./participant.js";
import type { SendData } from "./protocol.gen.js";

/** Max size of a message, bytes; of a text in UTF-8. */
export const MAX_MESSAGE_BYTES = 16 * 1024;
/** Max number of receivers that a message names. */
const MAX_RECEIVERS = 100;
/** Topics and keys: 1 to 64 letters, digits, `-`, `_` and `.`. */
export const KEY = /^[A-Za-z0-9._-]{1,64}$/;

/** What a message carries. */
export type MessageData = string | Uint8Array | ArrayBuffer;

/** Somebody to send to: a participant, or its `id`. */
export type Receiver = Pick<Participant, "id" | "away" | "left"> | string;

/** Options of `Room.send`. */
export interface SendOptions {
  /**
   * Who gets it. Default, without `to`: all others. `undefined` is refused, as it may stand for somebody who has left.
   */
  to?: Receiver | readonly Receiver[];
  /**
   * `true`: it is sent again if the connection is lost before the server has it. `false`, for what is soon out of date,
   * such as the place of a pointer: it is not, and the server drops it for receivers that are behind. Default: true.
   */
  reliable?: boolean;
}

/** A message of a participant, with either `text` or `bytes`, as it was sent. */
export type Message = {
  /** What it is about, in the sender's word. */
  readonly topic: string;
  /** Who sent it. */
  readonly from: Participant;
} & MessageContent;

/** The content of a {@link Message}. */
export type MessageContent =
  | {
      /** The text, where one was sent. */
      readonly text: string;
      /** None, beside a text. */
      readonly bytes?: undefined;
    }
  | {
      /** The bytes, where such were sent. */
      readonly bytes: Uint8Array<ArrayBuffer>;
      /** None, beside bytes. */
      readonly text?: undefined;
    };

/** A message as a session receives it. */
export type ReceivedMessage = {
  /** Id of the sender. */
  readonly from: string;
  /** The id that the sender had before it came back or moved. */
  readonly was: string | undefined;
  readonly seq: number;
  readonly number: number | undefined;
  readonly topic: string;
} & MessageContent;

/** A message that is to be sent. */
export interface Draft {
  /** The message's fields, without the receivers and the number, which are given later. */
  readonly message: Omit<SendData, "to" | "number">;
  /** Undefined: all others. */
  readonly to: readonly Receiver[] | undefined;
  /** The message's size. */
  readonly bytes: number;
}

/** Checks what a page gives to be sent. Throws a {@link WindlassError}: `bad_option`, or `too_large`. */
export function draft(topic: string, data: MessageData, options: SendOptions): Draft {
  if (typeof topic !== "string" || !KEY.test(topic)) {
    throw badOption(`"${topic}" is no topic.`, "A topic has 1 to 64 letters, digits, hyphens, underscores and dots.");
  }
  if (typeof options !== "object" || options === null) {
    throw badOption("The options are no object.", "Call send(topic, data, { to: participant }), or without options.");
  }
  const { reliable = true } = options;
  const receivers = receiversOf(options);
  if (receivers !== undefined && receivers.length > MAX_RECEIVERS) {
    throw badOption(`A message names at most ${MAX_RECEIVERS} receivers.`, "Send it to all, without `to`.");
  }
  const bytes = bytesOf(data);
  if (bytes.length > MAX_MESSAGE_BYTES) {
    throw tooLarge(`The message has ${bytes.length} bytes; ${MAX_MESSAGE_BYTES} are allowed.`);
  }
  const content = typeof data === "string" ? { text: decoder.decode(bytes) } : { bytes: toBase64(bytes) };
  const message = { topic, ...content, ...(reliable ? {} : { reliable }) };
  return { message, to: receivers, bytes: bytes.length };
}

/** Who is to get it; undefined: all others. What is given for somebody, and is nobody, must not become all. */
function receiversOf(options: SendOptions): readonly Receiver[] | undefined {
  if (!("to" in options)) return undefined;
  const to: readonly unknown[] = Array.isArray(options.to) ? [...options.to] : [options.to];
  if (to.every(isReceiver)) return to;
  throw badOption("`to` is no participant, id or list of them.", "Leave `to` out to send to all others.");
}

function isReceiver(value: unknown): value is Receiver {
  if (typeof value !== "object" || value === null) return typeof value === "string";
  return "id" in value && typeof value.id === "string" && "left" in value;
}

/** Something is larger than the server takes. */
export function tooLarge(message: string): WindlassError {
  return new WindlassError("too_large", message, "Send less, or in several messages.");
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A text without halves of characters, which JSON cannot carry: each becomes U+FFFD. */
export const wellFormed = (text: string): string => decoder.decode(encoder.encode(text));

/** The number of bytes of a text in UTF-8. */
export const utf8Length = (text: string): number => encoder.encode(text).length;

function bytesOf(data: MessageData): Uint8Array {
  if (typeof data === "string") return encoder.encode(data);
  if (data instanceof Uint8Array) return data;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw badOption("A message is a text or bytes.", "Give a string, a Uint8Array or an ArrayBuffer.");
}

function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** The content of a message of the server; null: it has none, or it cannot be read. */
export function contentOf({ text, bytes }: { text?: string; bytes?: string }): MessageContent | null {
  if (text !== undefined) return { text };
  if (bytes === undefined) return null;
  try {
    return { bytes: Uint8Array.from(atob(bytes), (char) => char.charCodeAt(0)) };
  } catch {
    return null;
  }
}
