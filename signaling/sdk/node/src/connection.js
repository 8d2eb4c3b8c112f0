import { signToken } from "./token.js";

/** How long a token of the client's own is valid, in seconds. */
const TOKEN_SECONDS = 60;

/**
 * @typedef {object} ConnectionOptions
 * @property {string} [key] The server's token key, by which each request gets a token for all rooms (see `signToken`).
 * @property {string} [token] An access token that grants `admin`, in the place of a key.
 * @property {number} [timeoutMs] Time for an answer; 15 seconds by default.
 */

/** The server refused a request. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   * @param {string} hint
   */
  constructor(status, code, message, hint) {
    super(message);
    this.name = "ApiError";
    /** The status of the answer. */
    this.status = status;
    /** The reason, for programs: one of `AdminErrorCode`, a later server's, or empty if no Windlass server answered. */
    this.code = code;
    /** What to do next, for people. */
    this.hint = hint;
  }
}

/** There was no answer, or none in time. `cause` says why. The request may have been carried out. */
export class NoAnswerError extends Error {
  /**
   * @param {string} url
   * @param {unknown} cause
   */
  constructor(url, cause) {
    super(`no answer from ${url}: ${cause instanceof Error ? cause.message : cause}`, { cause });
    this.name = "NoAnswerError";
  }
}

/** Sends requests to one server, each once: nothing is tried again. */
export class Connection {
  /** @type {string} */
  #url;
  /** @type {ConnectionOptions} */
  #options;

  /**
   * @param {string} url The server's address, such as `https://calls.example`.
   * @param {ConnectionOptions} [options]
   */
  constructor(url, options = {}) {
    if (!/^https?:/.test(new URL(url).protocol)) throw new TypeError(`not the address of a server: ${url}`);
    this.#url = url.replace(/\/+$/, "");
    this.#options = options;
  }

  /**
   * @protected
   * @param {string} method
   * @param {string[]} path Its segments after `/admin`, as they are.
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async send(method, path, body) {
    const url = `${this.#url}/admin${path.map(segment).join("")}`;
    /** @type {Record<string, string>} */
    const headers = {};
    const token = this.#token();
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const signal = AbortSignal.timeout(this.#options.timeoutMs ?? 15_000);
    // A token goes nowhere else than to this server.
    const request = { method, headers, signal, redirect: /** @type {const} */ ("manual") };
    let status = 0;
    let text = "";
    try {
      const answer = await fetch(url, body === undefined ? request : { ...request, body: JSON.stringify(body) });
      status = answer.status;
      text = await answer.text();
    } catch (cause) {
      throw new NoAnswerError(url, cause);
    }
    const said = parsed(text);
    if (status < 200 || status > 299) {
      const { code = "", message = `the status is ${status}`, hint = "" } = said ?? {};
      throw new ApiError(status, code, message, hint);
    }
    if (text !== "" && said === undefined) throw new ApiError(status, "", "the answer is no JSON", "");
    return said;
  }

  #token() {
    const { key, token } = this.#options;
    if (key === undefined) return token;
    const exp = Math.floor(Date.now() / 1000) + TOKEN_SECONDS;
    return signToken(key, { room: "*", sub: "server-sdk", grants: ["admin"], exp });
  }
}

/** @param {string} text */
function segment(text) {
  // An address loses these, and would be another one.
  if (["", ".", ".."].includes(text)) throw new TypeError(`\`${text}\` is no name that a path can have`);
  return `/${encodeURIComponent(text)}`;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
