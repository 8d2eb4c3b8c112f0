/** Sliding windows: rates, means and percentiles. Times are milliseconds and arguments. */

/** A rate over the last `spanMs`. */
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

  /** The rate per second at `now`, over the time since the first entry where that is shorter than the window. */
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

/** The latest samples: `capacity` at most, and none older than `spanMs`. */
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

  /** The quantile `share` (0 to 1) at `now`; null without samples. */
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
