import { createHmac, timingSafeEqual } from "node:crypto";

/** @import { Event } from "./types.gen.js" */

/** How far the time of a request may be from ours, in seconds. */
const TOLERANCE_SECONDS = 300;

/** A request is no genuine webhook of the server, or too old. Answer it with 400 or 401. */
export class WebhookError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "WebhookError";
  }
}

/**
 * Checks the signature and age of a webhook, and gives its event. Of a type that is not known here, ignore it.
 *
 * @param {string} secret The server's `webhook-secret`: `whsec_…`.
 * @param {Headers | Record<string, string | string[] | undefined>} headers The request's, as `node:http` or `fetch` give them.
 * @param {string | Uint8Array} body The request's, as it came: not parsed and written again.
 * @returns {Event}
 */
export function readWebhook(secret, headers, body) {
  const id = header(headers, "webhook-id");
  const at = header(headers, "webhook-timestamp");
  if (!(Math.abs(Date.now() / 1000 - Number(at)) <= TOLERANCE_SECONDS)) {
    throw new WebhookError("the webhook is too old, or a clock is wrong");
  }
  if (!secret.startsWith("whsec_")) throw new TypeError("a webhook secret begins with `whsec_`");
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  if (key.length < 24) throw new TypeError("a webhook secret has 24 bytes or more");
  const expected = createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest();
  const signatures = header(headers, "webhook-signature").split(" ");
  if (!signatures.some((one) => isSame(expected, one))) throw new WebhookError("the webhook's signature is wrong");
  try {
    return JSON.parse(typeof body === "string" ? body : Buffer.from(body).toString());
  } catch {
    throw new WebhookError("the webhook's body is no JSON");
  }
}

/**
 * @param {Buffer} expected
 * @param {string} signature
 */
function isSame(expected, signature) {
  if (!signature.startsWith("v1,")) return false;
  const given = Buffer.from(signature.slice("v1,".length), "base64");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/**
 * @param {Headers | Record<string, string | string[] | undefined>} headers
 * @param {string} name
 */
function header(headers, name) {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value !== "string") throw new WebhookError(`the request has no \`${name}\``);
  return value;
}
