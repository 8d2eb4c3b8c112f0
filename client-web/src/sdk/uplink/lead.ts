/**
 * Decides which layer of a camera a narrow uplink is spent on. Pure; times are milliseconds and arguments.
 *
 * Chromium gives bits to the layer of the lowest cap first, which is the smallest: an uplink of 200 kbit/s is all `q`. From some 100 kbit/s on the half layer of a usual camera
 * shows more for the same bits, wherever it is shown larger than the quarter layer is (`lab/notes/rungs.md`). So where the
 * uplink has room for that and not for both, `h` leads: it has the lower cap, which is what there is, and `q` the rest. Chromium gives the first layer
 * its cap even where the estimate is less, and a later one nothing where less than 30 kbit/s are left.
 * Whether anybody wants `q`, or takes `h`, the server says by its knobs. Where `q` is needed, as somebody takes nothing larger, `h` leaves enough for
 * it, or does not lead.
 */

/** Most that layers may use by RID, kbit/s; those that are not named: as much as the page allows. */
export type LeadCaps = Readonly<Partial<Record<string, number>>>;

/** Which of the camera's quarter and half layers are wanted, whether somebody takes the quarter layer only, and how many pixels the half layer has. */
export interface Wanted {
  q: boolean;
  needsQ: boolean;
  h: boolean;
  pixels: number;
}

/** Bits by pixel and second from which on the half layer shows more than the quarter layer for the same bits: 100 kbit/s at 640×360. */
const WORTH_BITS = 0.43;
/** One that leads goes on down to this share of that: to change the layer costs a key frame. */
const LEADS_ON = 0.75;
/** From this estimate on there is room for both, kbit/s; one that leads goes on up to the second. */
const WIDE_KBPS = 480;
const WIDE_ON_KBPS = 560;
/** Things must be so for as long. That there is too little is believed sooner: then the picture stands. */
const RISE_MS = 3000;
const FALL_MS = 1000;
/** Share of the estimate that may be planned with, what sound and headers take of that, and what is left to `q` where somebody needs it. */
const USABLE = 0.9;
const SOUND_KBPS = 45;
const SPARE_KBPS = 35;
/** The cap of `h` falls with the estimate at once, and rises in steps of this factor: each is a change of the encoder. */
const STEP = 1.15;
const LEAST_KBPS = 60;

/** See the module's head. */
export class LeadingLayer {
  private leads = false;
  private since: number | null = null;
  private halfKbps = 0;
  private narrow = false;

  /**
   * Whether `q` must be sent whatever the server wants: it does not know yet how narrow the uplink has become, and alone `h` would be given
   * 193 kbit/s at least.
   */
  get needsQuarter(): boolean {
    return this.narrow && !this.leads;
  }

  /** What the layers may use; no caps while none leads. */
  get caps(): LeadCaps {
    return this.leads ? { q: this.halfKbps + 1, h: this.halfKbps } : {};
  }

  /** Looks at the estimate, given what page and server want. Whether `caps` are others now. */
  look(now: number, availableKbps: number | null, wanted: Wanted): boolean {
    const before = this.leads;
    this.narrow = availableKbps !== null && availableKbps < WIDE_KBPS;
    if (availableKbps === null || !wanted.h) {
      this.leads = false;
      this.since = null;
      return before;
    }
    const worthKbps = (WORTH_BITS * wanted.pixels) / 1000;
    let roomKbps = availableKbps * USABLE - SOUND_KBPS;
    // An `h` that has hardly enough is as easy to have, for most.
    const spares = wanted.q && roomKbps - SPARE_KBPS >= worthKbps;
    if (wanted.needsQ || spares) roomKbps -= SPARE_KBPS;
    const enough = roomKbps >= worthKbps * (this.leads ? LEADS_ON : 1);
    const should = enough && availableKbps <= (this.leads ? WIDE_ON_KBPS : WIDE_KBPS);
    if (should === this.leads) this.since = null;
    else this.since ??= now;
    if (this.since !== null && now - this.since >= (enough ? RISE_MS : FALL_MS)) {
      this.leads = should;
      this.since = null;
      this.halfKbps = 0;
    }
    return this.follow(Math.max(LEAST_KBPS, Math.round(roomKbps))) || before !== this.leads;
  }

  /** Sets the cap of `h` to what there is; whether it has changed. */
  private follow(kbps: number): boolean {
    const near = kbps < this.halfKbps * STEP && kbps >= this.halfKbps * 0.95;
    if (!this.leads || near) return false;
    const before = this.halfKbps;
    this.halfKbps = kbps;
    return kbps !== before;
  }
}
