/** Decides by its answers whether a worker still runs. Time is an argument, milliseconds. */
export class Heartbeat {
  private unanswered = 0;
  private last: number | null = null;

  /** It is asked every `everyMs`, and may leave `most` questions in a row unanswered. */
  constructor(
    readonly everyMs: number,
    private readonly most: number,
  ) {}

  /** It has answered. */
  heard(): void {
    this.unanswered = 0;
  }

  /** It is asked once more; false: it has left too much unanswered. */
  asks(now: number): boolean {
    // Whoever asks was held up, and may have answers that were not heard yet.
    const late = this.last !== null && now - this.last > 2 * this.everyMs;
    this.last = now;
    this.unanswered = late ? 1 : this.unanswered + 1;
    return this.unanswered <= this.most;
  }
}
