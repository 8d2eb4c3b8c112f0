/** How often a connection offers. Every change of the room is a reason to; the server takes only so many, and what others do must not use them up. */

/** Least time from an offer to the next one, in the long run. */
const EACH_MS = 500;
/** Bytes of offers a millisecond, likewise: half of what the server reads of a client. */
const BYTES_A_MS = 32;
/** By so much time the first few may be ahead. */
const AHEAD_MS = 2000;

/** See the module's head. Times are milliseconds and arguments. */
export class Pace {
  private busyUntil = 0;

  /** How long the next offer has to wait. */
  wait(now: number): number {
    return Math.max(0, this.busyUntil - AHEAD_MS - now);
  }

  /** An offer of so many bytes goes out. */
  spend(now: number, bytes: number): void {
    this.busyUntil = Math.max(this.busyUntil, now) + Math.max(EACH_MS, bytes / BYTES_A_MS);
  }

  /** The server wants fewer: the next one waits for a second at least. */
  slow(now: number): void {
    this.busyUntil = Math.max(this.busyUntil, now + AHEAD_MS + 1000);
  }
}
