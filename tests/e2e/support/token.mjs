// Access tokens, as an application's server makes them.
import { createHmac } from "node:crypto";

const SECRET = "0123456789abcdef0123456789abcdef";
const PARTICIPANT = ["publish", "subscribe", "enhance"];

/** The server's option for the key of these tokens. */
export const TOKEN_KEY = ["--token-key", `k1=${SECRET}`];

/** A token of ten minutes. */
export function token(room, identity, grants = PARTICIPANT) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { room, sub: identity, name: identity, grants, jti: `${identity}-token`, exp: Math.floor(Date.now() / 1000) + 600 };
  const head = `${part({ alg: "HS256", kid: "k1" })}.${part(claims)}`;
  return `${head}.${createHmac("sha256", SECRET).update(head).digest("base64url")}`;
}
