/**
 * How well somebody's connection works, as bars: by the server's word, of all that it sees of the connection. What the
 * server cannot tell, this page knows: that it has lost its own connection, so that nothing is known of the others.
 */
import type { ConnectionQuality } from "../sdk/index.js";

/** Nothing comes through, or badly, fairly, well. */
export type Bars = 0 | 1 | 2 | 3;

const BARS: Readonly<Record<ConnectionQuality, Bars>> = { lost: 0, poor: 1, fair: 2, good: 3 };

/** The bars; null where nothing is known. `away`: this page has no connection now. */
export function barsOf({ away, quality }: { away: boolean; quality: ConnectionQuality | null }): Bars | null {
  if (away) return 0;
  return quality === null ? null : BARS[quality];
}
