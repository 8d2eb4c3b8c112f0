/**
 * Halves a camera's frame rate while the uplink is very narrow. Pure; times are milliseconds and arguments.
 *
 * Chromium's encoder takes 30 kbit/s at least, and the headers of 30 packets a second 14 more: an uplink of 50 kbit/s has
 * nothing left then to repair a loss with, each repair fills the queue that loses the next packet, and the picture
 * stands more often than it moves, for as long as the uplink is narrow.
 */

/** Estimates below this halve the frame rate, kbit/s. */
const NARROW_KBPS = 70;
/** Estimates above this for `HOLD_MS` take it back. */
const WIDE_KBPS = 120;
const HOLD_MS = 5000;
const NARROW_FPS = 15;

/** See the module's head. */
export class NarrowUplink {
  private narrow = false;
  private wideSince: number | null = null;

  /** Frames per second to send at most; undefined: all. */
  get mostFps(): number | undefined {
    return this.narrow ? NARROW_FPS : undefined;
  }

  /** Looks at the estimate of what can be sent; null while there is none. Whether `mostFps` is another one now. */
  look(now: number, availableKbps: number | null): boolean {
    if (availableKbps === null) return false;
    const before = this.narrow;
    if (availableKbps < NARROW_KBPS) this.narrow = true;
    if (availableKbps <= WIDE_KBPS) this.wideSince = null;
    else this.wideSince ??= now;
    if (this.wideSince !== null && now - this.wideSince >= HOLD_MS) this.narrow = false;
    return this.narrow !== before;
  }
}
