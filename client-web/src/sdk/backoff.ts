/** Waiting times between attempts to reconnect: doubling, with a random share so that clients do not come as one. */
export class Backoff {
  private attempt = 0;

  constructor(
    private readonly firstMs = 500,
    private readonly longestMs = 8000,
    private readonly random: () => number = Math.random,
  ) {}

  /** Attempts so far. */
  get attempts(): number {
    return this.attempt;
  }

  /** The wait before the next attempt, milliseconds. */
  next(): number {
    const wait = Math.min(this.firstMs * 2 ** this.attempt, this.longestMs);
    this.attempt++;
    return wait * (0.75 + 0.5 * this.random());
  }

  /** An attempt succeeded. */
  reset(): void {
    this.attempt = 0;
  }
}
