/**
 * Anchors of tiles refine a key anchor, one of the whole picture. Where the decoder has had none, one is requested.
 * Times are milliseconds and arguments.
 */

/** Max anchors noted that came before their frame; the module keeps fewer. */
const MAX_EARLY = 8;
/** Min time between two requests, milliseconds. */
const REQUEST_MS = 1000;

/** Knows whether the decoder of a track has had a key anchor, and requests one where anchors come without. */
export class KeyAnchors {
  private has = false;
  private lastRequest = Number.NEGATIVE_INFINITY;
  /** Anchors that wait for their frame: its RTP timestamp, and whether they are key anchors. */
  private readonly early = new Map<number, boolean>();

  constructor(private readonly request: () => void) {}

  /** Notes an anchor that came before its frame. `whole`: it is a key anchor. */
  wait(rtpTimestamp: number, whole: boolean): void {
    this.early.set(rtpTimestamp, whole);
    if (this.early.size > MAX_EARLY) this.early.delete(this.early.keys().next().value as number);
  }

  /** Takes the anchor that has waited for this frame: whether it is a key anchor; undefined: none has waited. */
  take(rtpTimestamp: number): boolean | undefined {
    const whole = this.early.get(rtpTimestamp);
    this.early.delete(rtpTimestamp);
    return whole;
  }

  /** Notes that an anchor was applied. `whole`: it is a key anchor. */
  applied(now: number, whole: boolean): void {
    this.has ||= whole;
    if (this.has || now - this.lastRequest < REQUEST_MS) return;
    this.lastRequest = now;
    this.request();
  }

  /** The detail of the anchors so far is gone, as with another scale. Those that wait for their frame are kept. */
  expire(): void {
    this.has = false;
  }

  /** The decoder has forgotten everything. */
  reset(): void {
    this.expire();
    this.early.clear();
  }
}
