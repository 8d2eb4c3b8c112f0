import { createHmac, createPrivateKey, sign } from "node:crypto";
import { readFileSync } from "node:fs";

/** @import { Claims } from "./types.gen.js" */

/** The shortest secret in bytes (RFC 7518 §3.2). */
const MIN_SECRET_BYTES = 32;

/**
 * Makes an access token (RFC 7519): HS256 with a secret, EdDSA with an Ed25519 key.
 *
 * @param {string} key The key, as the server has it: `ID=SECRET`, or `ID=@FILE`. Of an Ed25519 key (PEM) the private half.
 * @param {Claims} claims Who may enter where, and what they may do there.
 * @returns {string}
 */
export function signToken(key, claims) {
  const { id, secret } = readKey(key);
  const isPem = secret.subarray(0, 11).toString("latin1") === "-----BEGIN ";
  if (!isPem && secret.length < MIN_SECRET_BYTES) {
    throw new TypeError(`the secret of token key \`${id}\` has less than ${MIN_SECRET_BYTES} bytes`);
  }
  const part = (/** @type {object} */ value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const head = `${part({ typ: "JWT", alg: isPem ? "EdDSA" : "HS256", kid: id })}.${part(claims)}`;
  const signature = isPem
    ? sign(null, Buffer.from(head), createPrivateKey(secret))
    : createHmac("sha256", secret).update(head).digest();
  return `${head}.${signature.toString("base64url")}`;
}

/** @param {string} key */
function readKey(key) {
  const equals = key.indexOf("=");
  const id = key.slice(0, Math.max(equals, 0));
  if (!/^[\w.-]{1,64}$/.test(id)) throw new TypeError("a token key must be ID=SECRET or ID=@FILE");
  const said = key.slice(equals + 1);
  if (!said.startsWith("@")) return { id, secret: Buffer.from(said) };
  return { id, secret: Buffer.from(readFileSync(said.slice(1), "latin1").trim(), "latin1") };
}
