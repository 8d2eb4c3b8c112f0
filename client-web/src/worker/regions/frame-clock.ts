/**
 * Finds the RTP timestamp with which a camera frame was sent. Pure; times are arguments.
 *
 * Chromium does not expose the camera frame of an encoded frame. Its RTP timestamp is 90 times the whole milliseconds
 * of the camera's timestamp, plus a constant. So in the right pairing of camera frames and sent frames, the difference
 * is the same for every frame, within one millisecond. A pairing that is off by a frame fails as soon as the camera's
 * interval changes. Where the interval is constant, several pairings fit; then the one with the most usual delay from
 * camera to encoder is taken, and dropped when it turns out wrong. Frames that the encoder skipped do no harm. Measured
 * with numbered camera frames, over both low layers, a mute and another camera: right in 77 of 77 stills.
 *
 * The RTP timestamps of two encodings of one camera differ by one constant for the whole connection, to the tick: over
 * pauses, key frames, other settings and other cameras (Chromium 156, `h` against `q`: 2489 of 2510 pairs; the others
 * were numbers that the camera showed twice). From one sender report of each, the constant is known within 80 ticks (48
 * pairs of reports, standard deviation 36), which is less than the distance of two frames. The server uses that
 * (`sfu/src/core/tap/alignment.rs`).
 */

/** Max rounding error of both ends, ticks of 90 kHz. */
const ROUNDING = 95;
/** Max distance of a sent frame from its expected timestamp, ticks. Frames are 1500 ticks apart at 60 frames/s. */
const MAX_DISTANCE = 200;
/** Number of recent frames that are kept. */
const KEPT = 90;
/** Min frames for which a pairing must hold. */
const MIN_FRAMES = 20;
/** Min delay from camera to encoder that is considered, milliseconds. */
const MIN_DELAY_MS = -60;
/** Max delay that is considered, milliseconds. */
const MAX_DELAY_MS = 400;
/** Delay of a quick frame, milliseconds. */
const USUAL_DELAY_MS = 4;

/** A way to pair camera frames and sent frames. */
interface Pairing {
  /** RTP timestamp less camera timestamp, ticks. */
  offset: number;
  /** Sent frames without a camera frame. */
  missing: number;
  delayMs: number;
}

/** Pairs camera frames with the RTP timestamps with which they were sent. */
export class FrameClock {
  private camera: { ticks: number; at: number }[] = [];
  private sent: { ticks: number; rtp: number; at: number }[] = [];
  private offset: number | null = null;
  private fresh = 0;

  /** Whether a pairing is known. */
  get settled(): boolean {
    return this.offset !== null;
  }

  /** Takes a camera frame: its timestamp in microseconds, read at `at`, milliseconds. */
  addCamera(timestamp: number, at: number): void {
    this.camera.push({ ticks: timestamp * 0.09, at });
    if (this.camera.length > KEPT) this.camera.shift();
  }

  /** Takes a sent frame. */
  addSent(rtp: number, at: number): void {
    const last = this.sent.at(-1);
    const ticks = last === undefined ? rtp : last.ticks + ((rtp - last.rtp) | 0);
    this.sent.push({ ticks, rtp, at });
    if (this.sent.length > KEPT) this.sent.shift();
    this.fresh++;
    // Paired again from time to time: one of several that fit may be wrong.
    if (this.sent.length >= MIN_FRAMES && this.fresh >= MIN_FRAMES / 2) {
      this.fresh = 0;
      this.offset = this.pair();
    }
  }

  /** The RTP timestamp of the frame with this camera timestamp; null before it is sent, or without a pairing. */
  rtpOf(timestamp: number): number | null {
    if (this.offset === null) return null;
    const expected = timestamp * 0.09 + this.offset;
    const found = this.sent.findLast(({ ticks }) => Math.abs(ticks - expected) <= MAX_DISTANCE);
    return found?.rtp ?? null;
  }

  /** Begins another camera. */
  reset(): void {
    this.camera = [];
    this.offset = null;
    this.fresh = 0;
  }

  private pair(): number | null {
    // Not the last ones: their camera frames may come later.
    const last = this.sent.at(-6);
    if (last === undefined || this.camera.length < MIN_FRAMES) return null;
    const pairings = this.camera
      .filter(({ at }) => last.at - at >= MIN_DELAY_MS && last.at - at <= MAX_DELAY_MS)
      .flatMap(({ ticks }) => this.check(last.ticks - ticks) ?? []);
    const fewest = Math.min(...pairings.map(({ missing }) => missing));
    const best = pairings.filter(({ missing }) => missing === fewest);
    const unlikely = ({ delayMs }: Pairing) => Math.abs(delayMs - USUAL_DELAY_MS);
    best.sort((a, b) => unlikely(a) - unlikely(b));
    return best[0]?.offset ?? null;
  }

  /** The pairing at this offset; null unless nearly every sent frame has a camera frame within a millisecond. */
  private check(guess: number): Pairing | null {
    const first = this.camera[0];
    const newest = this.camera.at(-1);
    if (first === undefined || newest === undefined) return null;
    let [min, max, matched, checked] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0];
    const delays: number[] = [];
    for (const { ticks, at } of this.sent) {
      const wanted = ticks - guess;
      if (wanted < first.ticks - MAX_DISTANCE || wanted > newest.ticks + MAX_DISTANCE) continue;
      checked++;
      const frame = this.camera.findLast((c) => Math.abs(c.ticks - wanted) <= ROUNDING);
      if (frame === undefined) continue;
      matched++;
      min = Math.min(min, wanted - frame.ticks);
      max = Math.max(max, wanted - frame.ticks);
      delays.push(at - frame.at);
    }
    if (checked < MIN_FRAMES / 2 || matched < checked * 0.9 || max - min > ROUNDING) return null;
    delays.sort((a, b) => a - b);
    return {
      offset: guess + (min + max) / 2,
      missing: checked - matched,
      delayMs: delays[Math.floor(delays.length / 10)] ?? 0,
    };
  }
}
