/**
 * Decides which layer of a camera gets the bits of a narrow uplink. Pure; times are milliseconds and arguments.
 *
 * Chromium serves the layer with the lowest cap first, the smallest: an uplink of 200 kbit/s is all `q`. From about 100
 * kbit/s on, the half layer of a usual camera is the better picture for the same bits, unless it is shown very small
 * (`lab/notes/rungs.md`). So where the uplink has room for `h` but not for both, `h` leads: its cap is the lower one
 * and follows the estimate, and `q` gets the rest. (Chromium gives the first layer its cap even above the estimate, and
 * a later one nothing of less than 30 kbit/s.)
 *
 * The server's knobs say whether `q` or `h` is wanted. Where a subscriber takes nothing larger than `q`, `h` leaves
 * enough bits for it, or does not lead.
 */

/** Max bitrates of layers by RID, kbit/s. A layer without one has the cap of the page. */
export type LeadCaps = Readonly<Partial<Record<string, number>>>;

/** What page and server want of a camera. */
export interface Wanted {
  /** The quarter layer is wanted. */
  q: boolean;
  /** A subscriber takes the quarter layer only. */
  needsQ: boolean;
  /** The half layer is wanted. */
  h: boolean;
  /** Pixels of the half layer. */
  pixels: number;
}

/**
 * Bits per pixel and second from which on the half layer is the better picture for the same bits: 100 kbit/s at
 * 640×360.
 */
const WORTH_BITS = 0.43;
/** Share of that down to which a leading half layer goes on: a change costs a key frame. */
const KEEP_SHARE = 0.75;
/** Estimate from which on there is room for both layers, kbit/s. */
const WIDE_KBPS = 480;
/** Estimate from which on there is room for both layers where the half layer leads already, kbit/s. */
const KEEP_WIDE_KBPS = 560;
/** Time for which a change must hold before it counts, milliseconds, … */
const RISE_MS = 3000;
/** … and where there are too few bits: the picture would freeze. */
const FALL_MS = 1000;
/** Share of the estimate that may be planned with. */
const USABLE_SHARE = 0.9;
/** Bitrate of audio and headers, kbit/s. */
const AUDIO_KBPS = 45;
/** Bitrate left to `q` where it is needed, kbit/s. */
export const QUARTER_KBPS = 35;
/** The cap of `h` falls with the estimate at once, and rises in steps of this factor: each changes the encoder. */
const STEP = 1.15;
/** Min cap of `h`, kbit/s. */
const MIN_KBPS = 60;

/** Decides whether the half layer of a camera leads on a narrow uplink, and caps the layers by that. */
export class LeadingLayer {
  private leads = false;
  private since: number | null = null;
  private halfKbps = 0;
  private narrow = false;

  /**
   * Whether `q` must be sent even if the server does not want it. The server does not know yet that the uplink has
   * become narrow, and Chromium would give `h` alone 193 kbit/s at least.
   */
  get needsQuarter(): boolean {
    return this.narrow && !this.leads;
  }

  /** The caps of the layers; none while `h` does not lead. */
  get caps(): LeadCaps {
    return this.leads ? { q: this.halfKbps + 1, h: this.halfKbps } : {};
  }

  /** Takes the bandwidth estimate, kbit/s. Returns whether {@link caps} have changed. */
  onEstimate(now: number, availableKbps: number | null, wanted: Wanted): boolean {
    const before = this.leads;
    this.narrow = availableKbps !== null && availableKbps < WIDE_KBPS;
    if (availableKbps === null || !wanted.h) {
      this.leads = false;
      this.since = null;
      return before;
    }
    const worthKbps = (WORTH_BITS * wanted.pixels) / 1000;
    let roomKbps = availableKbps * USABLE_SHARE - AUDIO_KBPS;
    // Where `h` has just enough, `q` gets nothing: nearly every subscriber has room for such an `h`.
    const spares = wanted.q && roomKbps - QUARTER_KBPS >= worthKbps;
    if (wanted.needsQ || spares) roomKbps -= QUARTER_KBPS;
    const enough = roomKbps >= worthKbps * (this.leads ? KEEP_SHARE : 1);
    const should = enough && availableKbps <= (this.leads ? KEEP_WIDE_KBPS : WIDE_KBPS);
    if (should === this.leads) this.since = null;
    else this.since ??= now;
    if (this.since !== null && now - this.since >= (enough ? RISE_MS : FALL_MS)) {
      this.leads = should;
      this.since = null;
      this.halfKbps = 0;
    }
    return this.setHalfCap(Math.max(MIN_KBPS, Math.round(roomKbps))) || before !== this.leads;
  }

  /** Sets the cap of `h`; returns whether it has changed. */
  private setHalfCap(kbps: number): boolean {
    const near = kbps < this.halfKbps * STEP && kbps >= this.halfKbps * 0.95;
    if (!this.leads || near) return false;
    const before = this.halfKbps;
    this.halfKbps = kbps;
    return kbps !== before;
  }
}
