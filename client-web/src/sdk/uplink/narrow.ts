/**
 * Halves a camera's frame rate while the uplink is very narrow, and drains the uplink's queue where retransmissions
 * fill it. Pure; times are milliseconds and arguments.
 *
 * Chromium's encoder sends 30 kbit/s at least, and the headers of 30 packets a second take 14 more. So an uplink of 50
 * kbit/s has no room for retransmissions: each fills the queue, which then drops the next packet. While the queue is
 * always full its delay is constant, and delay is all that congestion control sees at such rates: its estimate even
 * rises, and the picture freezes again and again.
 *
 * Measured at 50 kbit/s beside a compiler. Without this: 13 to 18 frames a second and 13 to 40 freezes in three of
 * eleven calls. With half the frame rate, and fewer key frames for broken decoders
 * (`sfu/src/core/publisher/key_frames.rs`): 15 frames a second and no freeze after the first seconds in 24 of 26 calls.
 * With draining too: in 10 of 10.
 */

/** Caps on each layer of a camera; undefined: none. */
export interface UplinkCaps {
  /** Frames per second. */
  maxFps: number | undefined;
  /** Bits per second. */
  maxBitrate: number | undefined;
}

/** A sample of the sender's statistics. */
export interface PathSample {
  /** The bandwidth estimate, kbit/s; null while there is none. */
  availableKbps: number | null;
  /** Payload sent so far. */
  sentBytes: number;
  /** Payload retransmitted so far. */
  retransmittedBytes: number;
}

/** An estimate below this halves the frame rate, kbit/s. */
const NARROW_KBPS = 70;
/** Estimates above this, kbit/s, … */
const WIDE_KBPS = 120;
/** … for this time, milliseconds, restore the frame rate. */
const WIDE_MS = 5000;
/** Cap on a narrow uplink, frames per second. */
const NARROW_FPS = 15;

/** Share of retransmissions in the bytes sent, from which on the queue is drained. */
const CHOKED_SHARE = 0.15;
/** Window of that share, milliseconds. */
const CHOKED_MS = 2000;
/** Duration of a drain, milliseconds: queues are shorter. */
const DRAIN_MS = 1000;
/** Min time from the end of one drain to the next, milliseconds. */
const REST_MS = 4000;
/** Caps during a drain. */
const DRAIN: UplinkCaps = { maxFps: 5, maxBitrate: 10_000 };

/** Caps a camera's frame rate while the uplink is very narrow, and drains its queue. */
export class NarrowUplink {
  private narrow = false;
  private wideSince: number | null = null;
  private drainUntil: number | null = null;
  private restUntil = 0;
  private samples: { at: number; sent: number; retransmitted: number }[] = [];

  /** The caps at the moment. */
  get caps(): UplinkCaps {
    if (this.drainUntil !== null) return DRAIN;
    return { maxFps: this.narrow ? NARROW_FPS : undefined, maxBitrate: undefined };
  }

  /** Takes a sample. Returns whether {@link caps} have changed. */
  onSample(now: number, { availableKbps, sentBytes, retransmittedBytes }: PathSample): boolean {
    const before = this.caps;
    if (availableKbps !== null) this.classify(now, availableKbps);
    if (this.drainUntil !== null && now >= this.drainUntil) {
      this.drainUntil = null;
      this.restUntil = now + REST_MS;
      this.samples = [];
    }
    this.samples.push({ at: now, sent: sentBytes, retransmitted: retransmittedBytes });
    while (this.samples.length > 2 && (this.samples[1]?.at ?? now) <= now - CHOKED_MS) this.samples.shift();
    if (this.narrow && this.drainUntil === null && now >= this.restUntil && this.isChoked(now))
      this.drainUntil = now + DRAIN_MS;
    return this.caps.maxFps !== before.maxFps || this.caps.maxBitrate !== before.maxBitrate;
  }

  private classify(now: number, availableKbps: number): void {
    if (availableKbps < NARROW_KBPS) this.narrow = true;
    if (availableKbps <= WIDE_KBPS) this.wideSince = null;
    else this.wideSince ??= now;
    if (this.wideSince !== null && now - this.wideSince >= WIDE_MS) this.narrow = false;
  }

  private isChoked(now: number): boolean {
    const [from, to] = [this.samples[0], this.samples.at(-1)];
    if (from === undefined || to === undefined || now - from.at < CHOKED_MS) return false;
    return to.retransmitted - from.retransmitted > CHOKED_SHARE * (to.sent - from.sent);
  }
}
