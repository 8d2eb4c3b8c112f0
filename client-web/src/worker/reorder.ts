/**
 * Brings a track's encoded frames into decode order for the WASM decoder.
 *
 * The encoded transform hands frames out as they are assembled, so a frame mended by a retransmission comes after
 * its successors. Frames carry consecutive ids (dependency descriptor); a missing id is waited for, at most
 * `waitMs`, and then everything up to the next key frame is given up. Without ids, order of arrival is decode
 * order. Bounded by `capacity` frames. Time is an argument, in milliseconds.
 */

/** One complete encoded frame. */
export interface EncodedFrame {
  /** RTP timestamp, 90 kHz, wrapping at 2^32. */
  rtpTimestamp: number;
  /** Frame number, consecutive in decode order; absent without the dependency descriptor. */
  frameId: number | undefined;
  /** Decoding may start here. */
  key: boolean;
  /** The VP9 frame or superframe. */
  data: Uint8Array;
  /** When it arrived, milliseconds. */
  arrival: number;
}

/** What was given up, in frames. */
export interface ReorderCounters {
  /** Came after its turn had been given up. */
  late: number;
  /** Never came. */
  lost: number;
  /** Came, but could not be decoded for want of an earlier frame. */
  skipped: number;
}

interface Held {
  id: number;
  frame: EncodedFrame;
}

/** Signed distance from `b` to `a` on the 32-bit RTP timeline. */
export function rtpDistance(a: number, b: number): number {
  return (a - b) | 0;
}

/** See the module's head. */
export class ReorderBuffer {
  /** What was given up so far. */
  readonly counters: ReorderCounters = { late: 0, lost: 0, skipped: 0 };
  private held: Held[] = [];
  private next: number | null = null;
  private lastId = 0;
  private lastTimestamp: number | null = null;

  constructor(
    private readonly waitMs = 250,
    private readonly capacity = 32,
  ) {}

  /** True while nothing can be released before a key frame comes. */
  get waitingForKey(): boolean {
    return this.next === null && !this.held.some((h) => h.frame.key);
  }

  /** Frames held. */
  get length(): number {
    return this.held.length;
  }

  /** Gives up what is held before the next key frame; used when the decoder lost its state. */
  requireKey(): void {
    this.next = null;
  }

  /** Gives up all that is held; used when nothing will be decoded for a while. */
  clear(): void {
    this.counters.skipped += this.held.length;
    this.held = [];
    this.next = null;
  }

  /** Takes a frame in order of arrival. */
  push(frame: EncodedFrame): void {
    const behind = this.lastTimestamp !== null && rtpDistance(frame.rtpTimestamp, this.lastTimestamp) <= 0;
    let id = frame.frameId;
    if (id === undefined) {
      if (behind) {
        this.counters.late++;
        return;
      }
      id = this.lastId + 1;
      this.lastId = id;
    }
    const restart = frame.key && !behind && this.next !== null && id < this.next;
    if (restart) {
      // The sender began to number anew.
      this.clear();
    } else if (this.next !== null && id < this.next) {
      this.counters.late++;
      return;
    }
    if (!behind) this.lastTimestamp = frame.rtpTimestamp;
    let at = this.held.length;
    while (at > 0 && (this.held[at - 1] as Held).id > id) at--;
    if (at > 0 && this.held[at - 1]?.id === id) return; // a duplicate
    this.held.splice(at, 0, { id, frame });
    if (this.held.length > this.capacity) this.giveUp();
  }

  /** The next frame to decode, if it is there. */
  pop(now: number): EncodedFrame | null {
    const head = this.held[0];
    if (head === undefined) return null;
    if (this.next !== null && head.id === this.next) return this.release(0);
    const key = this.held.findIndex((h) => h.frame.key);
    if (key >= 0) return this.release(key);
    if (this.next === null) {
      this.counters.skipped += this.held.length;
      this.held = [];
    } else if (now - head.frame.arrival >= this.waitMs) {
      this.giveUp();
    }
    return null;
  }

  /** When to call `pop` again although no frame came, milliseconds; null when there is no gap. */
  deadline(): number | null {
    const head = this.held[0];
    return head === undefined || this.next === null || head.id === this.next ? null : head.frame.arrival + this.waitMs;
  }

  private release(index: number): EncodedFrame {
    const [found] = this.held.splice(index, 1) as [Held];
    const passed = this.held.splice(0, index).length;
    this.counters.skipped += passed;
    if (this.next !== null) this.counters.lost += Math.max(0, found.id - this.next - passed);
    this.next = found.id + 1;
    return found.frame;
  }

  private giveUp(): void {
    const head = this.held[0];
    if (head !== undefined && this.next !== null) this.counters.lost += Math.max(0, head.id - this.next);
    const key = this.held.findIndex((h, i) => i > 0 && h.frame.key);
    const gone = key < 0 ? this.held.length : key;
    this.held.splice(0, gone);
    this.counters.skipped += gone;
    this.next = null;
  }
}
