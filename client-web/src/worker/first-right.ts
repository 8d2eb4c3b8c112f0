/**
 * Fetches a file of the SDK from the first of several places that has the right one.
 *
 * A place may answer with something else: a development server with its page, a server of another version with that
 * version's file. So the digest is compared with that of the file with which this SDK was built. Browsers have digests
 * in secure contexts only. Elsewhere whoever uses the file must notice.
 */

/** Max time to fetch a file, milliseconds. */
const FETCH_TIMEOUT_MS = 20_000;

/** A file, and where it may be. */
export interface SoughtFile {
  /** Absolute URLs, the best place first. */
  urls: readonly string[];
  /** Digest of the right file, hexadecimal. */
  sha256: string;
}

/**
 * Gives what `use` makes of the file; where `use` rejects, the next place is tried. Rejects with an error that names
 * every place, and what was wrong there.
 */
export async function fromFirstRight<T>(
  { urls, sha256 }: SoughtFile,
  use: (bytes: ArrayBuffer, url: string) => Promise<T>,
): Promise<T> {
  const faults: string[] = [];
  for (const url of urls) {
    try {
      return await use(await fetchRight(url, sha256), url);
    } catch (error) {
      faults.push(`${url}: ${error instanceof Error ? error.message : error}`);
    }
  }
  throw new Error(faults.length === 0 ? "there is no place to fetch it from" : faults.join("; "));
}

async function fetchRight(url: string, sha256: string): Promise<ArrayBuffer> {
  const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  const bytes = await response.arrayBuffer();
  // Not in insecure contexts.
  const { subtle } = crypto as { subtle?: SubtleCrypto };
  if (subtle === undefined || hex(await subtle.digest("SHA-256", bytes)) === sha256) return bytes;
  const type = response.headers.get("content-type") ?? "of no type";
  throw new Error(`another file than this SDK was built with (${bytes.byteLength} bytes, ${type})`);
}

const hex = (bytes: ArrayBuffer): string =>
  [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
