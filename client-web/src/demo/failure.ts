/** What is said of a failure: the SDK's own words in English, those of the page in other languages. */
import { WindlassError } from "../sdk/index.js";
import { FileError } from "./file-source.js";
import { type Language, language, type MessageKey, say, type Words, words } from "./language.js";
import { errors as german } from "./messages/errors.de.js";

/** A failure for a person: what happened, and what to do. */
export interface Said {
  message: string;
  hint: string;
}

/** The SDK and the server speak English. Their errors are put into the person's language here, by code. */
export type Errors = Readonly<Record<WindlassError["code"], Said>>;

const ERRORS: Readonly<Record<Language, Errors | null>> = { en: null, de: german };

/** A failure in the person's language. */
export function saidOf(error: unknown): Said {
  if (error instanceof FileError) return { message: error.message, hint: error.hint };
  if (!(error instanceof WindlassError)) return { message: say("failure.internal"), hint: String(error) };
  // Another server may know codes that this page does not.
  return ERRORS[language()]?.[error.code] ?? { message: error.message, hint: error.hint };
}

/** An error's message and hint in one line, in the person's language. */
export function lineOf(error: unknown): string {
  const { message, hint } = saidOf(error);
  return `${message} ${hint}`;
}

const TITLES: Partial<Record<WindlassError["code"], MessageKey>> = {
  left: "over.left",
  unauthorized: "over.unauthorized",
  token_expired: "over.token_expired",
  forbidden: "over.forbidden",
  replaced: "over.replaced",
  removed: "over.removed",
  banned: "over.banned",
  revoked: "over.revoked",
  refused: "over.refused",
  locked: "over.locked",
  room_full: "over.room_full",
  server_full: "over.server_full",
  no_codec: "over.no_codec",
  unreachable: "over.unreachable",
  connection_lost: "over.connection_lost",
  media_failed: "over.media_failed",
  shutting_down: "over.shutting_down",
  unsupported_version: "over.unsupported_version",
};

/** The title of the reason for which a call did not begin, or is over; null: none. */
export function titleOf(code: WindlassError["code"]): Words | null {
  const key = TITLES[code];
  return key === undefined ? null : words(key);
}
