/** Loads the WASM decoder. The page compiles it once, for all workers. */
import { firstOf, type SoughtFile } from "../worker/places.js";

/** Max time to fetch the decoder, milliseconds. */
const FETCH_TIMEOUT_MS = 20_000;

const compiled = new Map<string, Promise<WebAssembly.Module>>();
const told = new Set<string>();

/** The decoder's places as one text. */
export const placesOf = ({ urls }: SoughtFile): string => urls.join(" ");

/** Fetches and compiles the decoder, once for the same places. After a failure the next call tries again. */
export function compileDecoder(file: SoughtFile): Promise<WebAssembly.Module> {
  const places = placesOf(file);
  const cached = compiled.get(places);
  if (cached !== undefined) return cached;
  const loading = firstOf(file.urls, async (url) => WebAssembly.compile(await fetchRight(url, file.version)));
  compiled.set(places, loading);
  loading.catch((error: Error) => {
    compiled.delete(places);
    if (told.has(places)) return;
    told.add(places);
    console.warn(`Windlass: pictures stay plain, as the decoder cannot be loaded. ${error.message}`);
  });
  return loading;
}

/**
 * A place may have something else: a development server its page, a server of another version that version's decoder.
 * Browsers have digests in secure contexts only; elsewhere what is no decoder is found when it is compiled.
 */
async function fetchRight(url: string, digest: string): Promise<ArrayBuffer> {
  const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  const bytes = await response.arrayBuffer();
  const { subtle } = crypto as { subtle?: SubtleCrypto };
  if (subtle === undefined || hex(await subtle.digest("SHA-256", bytes)) === digest) return bytes;
  const type = response.headers.get("content-type") ?? "no type";
  throw new Error(`another file than this SDK was built with (${bytes.byteLength} bytes, ${type})`);
}

const hex = (bytes: ArrayBuffer): string =>
  [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
