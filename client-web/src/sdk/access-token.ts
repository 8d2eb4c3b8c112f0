/** The access token of a call, as a page gives it. */
import { noToken, WindlassError } from "./errors.js";

/** A token, or what gets one at every attempt to connect. */
export type TokenSource = string | (() => string | Promise<string>);

/** The token. What a page's function throws becomes an error with a hint, unless it is one already. */
export async function tokenOf(source: TokenSource | undefined): Promise<string | undefined> {
  if (typeof source !== "function") return source;
  try {
    return await source();
  } catch (cause) {
    throw cause instanceof WindlassError ? cause : noToken(cause);
  }
}
