/** Figures over the recent past: rates, averages and percentiles. Times are milliseconds and arguments. */

/** The sum of amounts over the last `spanMs`, as a rate per second. */
export class RateWindow {
  private entries: { at: number; amount: number }[] = [];
  private started: number | null = null;

  constructor(private readonly spanMs = 1000) {}

  /** Adds `amount` at `now`. */
  add(now: number, amount = 1): void {
    this.started ??= now;
    this.entries.push({ at: now, amount });
    this.trim(now);
  }

  /** The rate per second at `now`; a window that is not yet full counts the time that it has. */
  perSecond(now: number): number {
    this.trim(now);
    if (this.started === null) return 0;
    const span = Math.min(this.spanMs, Math.max(now - this.started, 250));
    return (this.entries.reduce((sum, e) => sum + e.amount, 0) * 1000) / span;
  }

  private trim(now: number): void {
    while (this.entries.length > 0 && now - (this.entries[0]?.at ?? now) >= this.spanMs) this.entries.shift();
  }
}

/** The latest samples, at most `capacity` and none older than `spanMs`. */
export class SampleWindow {
  private samples: { at: number; value: number }[] = [];

  constructor(
    private readonly capacity = 200,
    private readonly spanMs = 10_000,
  ) {}

  /** Adds a sample. */
  add(now: number, value: number): void {
    this.samples.push({ at: now, value });
    if (this.samples.length > this.capacity) this.samples.shift();
  }

  /** The share-th percentile (0..1) at `now`; null without samples. */
  percentile(now: number, share: number): number | null {
    const values = this.recent(now).sort((a, b) => a - b);
    return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? null;
  }

  /** The mean at `now`; null without samples. */
  mean(now: number): number | null {
    const values = this.recent(now);
    return values.length === 0 ? null : values.reduce((sum, v) => sum + v, 0) / values.length;
  }

  private recent(now: number): number[] {
    return this.samples.filter((s) => now - s.at < this.spanMs).map((s) => s.value);
  }
}
