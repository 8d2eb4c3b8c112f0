/** Exponential backoff: pauses double, with ±25 % of jitter so that clients do not reconnect at the same time. */
export class Backoff {
  private attempt = 0;

  constructor(
    private readonly firstMs = 500,
    private readonly maxMs = 8000,
    private readonly random: () => number = Math.random,
  ) {}

  /** Attempts so far. */
  get attempts(): number {
    return this.attempt;
  }

  /** Counts an attempt; returns the pause before it, milliseconds. */
  next(): number {
    const wait = Math.min(this.firstMs * 2 ** this.attempt, this.maxMs);
    this.attempt++;
    return wait * (0.75 + 0.5 * this.random());
  }

  /** Resets the pauses after a success. */
  reset(): void {
    this.attempt = 0;
  }
}
