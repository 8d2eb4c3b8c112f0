/**
 * Finds the RTP timestamp under which a camera frame was sent. Pure; times are arguments.
 *
 * Chromium tells nobody which camera frame an encoded frame was. It writes RTP time as 90 times the whole milliseconds
 * of the camera's time, plus a constant. So the right pairing of the two lists is one where the difference stays
 * within one millisecond for every frame; a pairing that is off by a frame shows as soon as the camera's interval changes.
 * Where frames come as regularly as a clock, several pairings do; then the one with the most usual time between
 * camera and encoder is taken, and given up when it turns out wrong. Frames that the encoder skipped or that were not seen
 * here leave holes and do no harm. In 77 of 77 stills of numbered camera frames, over both low layers, a mute and another camera, the
 * still's number was that of the low frame with its timestamp.
 *
 * Two encodings of one camera differ in RTP time by one constant, to the tick, as long as the connection lives: over pauses, key
 * frames, other settings and other cameras (Chromium 156; `h` beside `q`: 2489 of 2510 pairs, the rest were numbers that the camera
 * showed twice). Of one sender report of each, the constant comes out wrong by 80 ticks at most (48 pairs of reports, standard deviation 36):
 * less than the distance of two frames, so that frames tell the rest. The server goes by that (`sfu/src/core/alignment.rs`).
 */

/** Rounding to a millisecond on both ends, in ticks. */
const ROUNDING = 95;
/** How far a sent frame may be from where the clock expects it. Frames are 1500 ticks apart at 60 frames/s. */
const NEAR = 200;
const KEPT = 90;
/** Frames that a pairing must hold for. */
const ENOUGH = 20;
/** Times between camera and encoder that are looked at, and what a quick frame takes, ms. */
const EARLIEST_MS = -60;
const LATEST_MS = 400;
const USUAL_DELAY_MS = 4;

interface Pairing {
  offset: number;
  /** Sent frames without a camera frame. */
  missing: number;
  delayMs: number;
}

/** See the module's head. */
export class FrameClock {
  private camera: { ticks: number; at: number }[] = [];
  private sent: { ticks: number; rtp: number; at: number }[] = [];
  private offset: number | null = null;
  private fresh = 0;

  /** Whether pairs are known. */
  get settled(): boolean {
    return this.offset !== null;
  }

  /** A camera frame was seen: its timestamp in µs, and when, ms. */
  seeCamera(timestamp: number, at: number): void {
    this.camera.push({ ticks: timestamp * 0.09, at });
    if (this.camera.length > KEPT) this.camera.shift();
  }

  /** An encoded frame was sent. */
  seeSent(rtp: number, at: number): void {
    const last = this.sent.at(-1);
    const ticks = last === undefined ? rtp : last.ticks + ((rtp - last.rtp) | 0);
    this.sent.push({ ticks, rtp, at });
    if (this.sent.length > KEPT) this.sent.shift();
    this.fresh++;
    // Looked at anew from time to time, as a pairing taken for want of a better one may be wrong.
    if (this.sent.length >= ENOUGH && this.fresh >= ENOUGH / 2) {
      this.fresh = 0;
      this.offset = this.pair();
    }
  }

  /** The RTP timestamp of the frame with this camera timestamp; null while it is not sent, or pairs are not known. */
  rtpOf(timestamp: number): number | null {
    if (this.offset === null) return null;
    const expected = timestamp * 0.09 + this.offset;
    const found = this.sent.findLast(({ ticks }) => Math.abs(ticks - expected) <= NEAR);
    return found?.rtp ?? null;
  }

  /** The camera begins anew. */
  reset(): void {
    this.camera = [];
    this.offset = null;
    this.fresh = 0;
  }

  private pair(): number | null {
    // Not the very last, as its camera frame may come here after it.
    const last = this.sent.at(-6);
    if (last === undefined || this.camera.length < ENOUGH) return null;
    const pairings = this.camera
      .filter(({ at }) => last.at - at >= EARLIEST_MS && last.at - at <= LATEST_MS)
      .flatMap(({ ticks }) => this.check(last.ticks - ticks) ?? []);
    const fewest = Math.min(...pairings.map(({ missing }) => missing));
    const best = pairings.filter(({ missing }) => missing === fewest);
    const unlikely = ({ delayMs }: Pairing) => Math.abs(delayMs - USUAL_DELAY_MS);
    best.sort((a, b) => unlikely(a) - unlikely(b));
    return best[0]?.offset ?? null;
  }

  /** Whether nearly every sent frame has its camera frame at this offset, all within a millisecond. */
  private check(guess: number): Pairing | null {
    const first = this.camera[0];
    const newest = this.camera.at(-1);
    if (first === undefined || newest === undefined) return null;
    let [least, most, matched, asked] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0];
    const delays: number[] = [];
    for (const { ticks, at } of this.sent) {
      const wanted = ticks - guess;
      if (wanted < first.ticks - NEAR || wanted > newest.ticks + NEAR) continue;
      asked++;
      const frame = this.camera.findLast((c) => Math.abs(c.ticks - wanted) <= ROUNDING);
      if (frame === undefined) continue;
      matched++;
      least = Math.min(least, wanted - frame.ticks);
      most = Math.max(most, wanted - frame.ticks);
      delays.push(at - frame.at);
    }
    if (asked < ENOUGH / 2 || matched < asked * 0.9 || most - least > ROUNDING) return null;
    delays.sort((a, b) => a - b);
    return {
      offset: guess + (least + most) / 2,
      missing: asked - matched,
      delayMs: delays[Math.floor(delays.length / 10)] ?? 0,
    };
  }
}
