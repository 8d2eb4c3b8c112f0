/**
 * Halves a camera's frame rate while the uplink is very narrow, and lets it run empty where repairs choke it. Pure;
 * times are milliseconds and arguments.
 *
 * Chromium's encoder takes 30 kbit/s at least, and the headers of 30 packets a second 14 more: an uplink of 50 kbit/s has
 * nothing left then to repair a loss with. Each repair fills the queue that loses the next packet. Once the queue is always
 * full its delay does not change any more, which is all that congestion control goes by at such rates: its estimate even
 * rises, and the picture stands more often than it moves for as long as the uplink is narrow.
 *
 * Seen at 50 kbit/s beside a compiler: without this, 13 to 18 frames a second and 13 to 40 freezes in three of eleven calls. At half the
 * frame rate, and with fewer key frames for broken decoders (`sfu/src/core/keyframes.rs`), 24 of 26 had 15 frames a second and no freeze after
 * the first seconds; run empty where repairs choke it too, 10 of 10.
 */

/** What of a camera's settings is held down; undefined: nothing. */
export interface Hold {
  mostFps: number | undefined;
  mostBitrate: number | undefined;
}

/** What one look at the sender's statistics says: the estimate, null while there is none, and bytes of payload so far. */
export interface PathLook {
  availableKbps: number | null;
  sentBytes: number;
  repairBytes: number;
}

/** Estimates below this halve the frame rate, kbit/s. */
const NARROW_KBPS = 70;
/** Estimates above this for `WIDE_MS` take it back. */
const WIDE_KBPS = 120;
const WIDE_MS = 5000;
const NARROW_FPS = 15;

/** The path is choked where this share of what was sent within `CHOKED_MS` was repairs. */
const CHOKED_SHARE = 0.15;
const CHOKED_MS = 2000;
/** For so long next to nothing is sent then: queues are shorter. */
const DRAIN_MS = 1000;
/** Least time from the end of one drain to the next. */
const REST_MS = 4000;
const DRAIN: Hold = { mostFps: 5, mostBitrate: 10_000 };

/** See the module's head. */
export class NarrowUplink {
  private narrow = false;
  private wideSince: number | null = null;
  private drainUntil: number | null = null;
  private restUntil = 0;
  private marks: { at: number; sent: number; repaired: number }[] = [];

  /** What to hold the camera's layers to. */
  get hold(): Hold {
    if (this.drainUntil !== null) return DRAIN;
    return { mostFps: this.narrow ? NARROW_FPS : undefined, mostBitrate: undefined };
  }

  /** Looks at the path. Whether `hold` is another one now. */
  look(now: number, { availableKbps, sentBytes, repairBytes }: PathLook): boolean {
    const before = this.hold;
    if (availableKbps !== null) this.widen(now, availableKbps);
    if (this.drainUntil !== null && now >= this.drainUntil) {
      this.drainUntil = null;
      this.restUntil = now + REST_MS;
      this.marks = [];
    }
    this.marks.push({ at: now, sent: sentBytes, repaired: repairBytes });
    while (this.marks.length > 2 && (this.marks[1]?.at ?? now) <= now - CHOKED_MS) this.marks.shift();
    if (this.narrow && this.drainUntil === null && now >= this.restUntil && this.choked(now))
      this.drainUntil = now + DRAIN_MS;
    return this.hold.mostFps !== before.mostFps || this.hold.mostBitrate !== before.mostBitrate;
  }

  private widen(now: number, availableKbps: number): void {
    if (availableKbps < NARROW_KBPS) this.narrow = true;
    if (availableKbps <= WIDE_KBPS) this.wideSince = null;
    else this.wideSince ??= now;
    if (this.wideSince !== null && now - this.wideSince >= WIDE_MS) this.narrow = false;
  }

  private choked(now: number): boolean {
    const [from, to] = [this.marks[0], this.marks.at(-1)];
    if (from === undefined || to === undefined || now - from.at < CHOKED_MS) return false;
    return to.repaired - from.repaired > CHOKED_SHARE * (to.sent - from.sent);
  }
}
