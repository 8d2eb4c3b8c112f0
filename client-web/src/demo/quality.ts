/**
 * How well a participant comes through, as bars: it rests on the share of packets that this browser misses of them (for
 * oneself: that the server misses), on pictures that stand still, and on the server pausing the picture.
 */

/** Nothing comes through, or badly, fairly, well. */
export type Bars = 0 | 1 | 2 | 3;

/** What the bars rest on, over the last few seconds. */
export interface Reception {
  /** Whether nothing is known of them now, as this page has lost its connection. */
  away: boolean;
  /** Whether the server has paused the picture, as the bandwidth is too low. */
  paused: boolean;
  /** Share of packets lost, 0 to 1; null: nothing was sent that could be lost. */
  loss: number | null;
  /** Time for which the picture stood still, share of the time. */
  frozen: number;
}

/** Counts since the start, of one track or of several. */
export interface Counts {
  received: number;
  lost: number;
  frozenS: number;
}

/** Share of lost packets from which speech and picture suffer, and from which they fail. */
const LOSS = { fair: 0.02, bad: 0.08 };
/** The same of the time for which a picture stands still. */
const FROZEN = { fair: 0.05, bad: 0.3 };

/** The bars; null where there is nothing to tell. */
export function barsOf({ away, paused, loss, frozen }: Reception): Bars | null {
  if (away) return 0;
  if (paused) return 1;
  if (loss === null) return null;
  if (loss >= LOSS.bad || frozen >= FROZEN.bad) return 1;
  return loss >= LOSS.fair || frozen >= FROZEN.fair ? 2 : 3;
}

/** What counts say of the time between two readings. */
export function between(before: Counts, now: Counts, seconds: number): Pick<Reception, "loss" | "frozen"> {
  const received = now.received - before.received;
  // What comes late after all is counted as lost no longer.
  const lost = Math.max(0, now.lost - before.lost);
  const expected = received + lost;
  return {
    loss: expected > 0 ? lost / expected : null,
    frozen: seconds > 0 ? Math.min(1, Math.max(0, now.frozenS - before.frozenS) / seconds) : 0,
  };
}
