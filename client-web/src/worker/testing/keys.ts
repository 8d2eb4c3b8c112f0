import type { BaseKey } from "../sframe.js";

/** A base key, drawn from its index. */
export async function baseKey(index: number): Promise<BaseKey> {
  const material = new Uint8Array(16).fill(index);
  return { index, key: await crypto.subtle.importKey("raw", material, "HKDF", false, ["deriveBits"]) };
}
