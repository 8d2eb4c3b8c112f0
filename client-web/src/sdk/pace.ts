/** Limits the rate of offers of a connection: the server limits it too, and every change of the room causes one. */

/** Min mean interval between two offers, milliseconds. */
const OFFER_INTERVAL_MS = 500;
/** Max mean rate of the bytes of offers, bytes per millisecond: half of what the server reads of a client. */
const MAX_BYTES_PER_MS = 32;
/** Burst: offers may be ahead of the mean rate by this time, milliseconds. */
const BURST_MS = 2000;
/** Min pause after the server limited the rate, milliseconds. */
const RATE_LIMITED_MS = 1000;

/** A token bucket in time. Times are milliseconds and arguments. */
export class OfferPace {
  private busyUntil = 0;

  /** The time until the next offer may be sent. */
  wait(now: number): number {
    return Math.max(0, this.busyUntil - BURST_MS - now);
  }

  /** An offer of `bytes` bytes is sent. */
  spend(now: number, bytes: number): void {
    this.busyUntil = Math.max(this.busyUntil, now) + Math.max(OFFER_INTERVAL_MS, bytes / MAX_BYTES_PER_MS);
  }

  /** The server rejected an offer as too frequent. */
  slow(now: number): void {
    this.busyUntil = Math.max(this.busyUntil, now + BURST_MS + RATE_LIMITED_MS);
  }
}
