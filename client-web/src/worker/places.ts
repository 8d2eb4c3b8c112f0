/** Files of the SDK that may be in several places. */

/** A file, and where it may be. */
export interface SoughtFile {
  /** Absolute URLs, the best place first. */
  urls: readonly string[];
  /** Tells the right file from others: the digest of the decoder, or what a script exports as `version`. */
  version: string;
}

/**
 * What `from` gives for the first place for which it does not reject. Rejects with an error that names every place, and
 * what was wrong there.
 */
export async function firstOf<T>(urls: readonly string[], from: (url: string) => Promise<T>): Promise<T> {
  const faults: string[] = [];
  for (const url of urls) {
    try {
      return await from(url);
    } catch (error) {
      faults.push(`${url}: ${error instanceof Error ? error.message : error}`);
    }
  }
  throw new Error(faults.length === 0 ? "no place is known" : faults.join("; "));
}
