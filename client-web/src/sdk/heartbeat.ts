/** Decides by its answers to pings whether a worker still runs. Time is an argument, milliseconds. */
export class Heartbeat {
  private unanswered = 0;
  private lastPing: number | null = null;

  /** A ping is due every `intervalMs`; more than `maxUnanswered` in a row without an answer are too many. */
  constructor(
    readonly intervalMs: number,
    private readonly maxUnanswered: number,
  ) {}

  /** The worker has answered. */
  answered(): void {
    this.unanswered = 0;
  }

  /** A ping is due; false: too many are unanswered. */
  ping(now: number): boolean {
    // This timer was late itself: answers may have come that were not handled yet.
    const late = this.lastPing !== null && now - this.lastPing > 2 * this.intervalMs;
    this.lastPing = now;
    this.unanswered = late ? 1 : this.unanswered + 1;
    return this.unanswered <= this.maxUnanswered;
  }
}
