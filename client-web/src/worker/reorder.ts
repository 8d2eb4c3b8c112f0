/**
 * Brings the encoded frames of a track into decode order for the WASM decoder. Times are milliseconds and arguments.
 *
 * The encoded transform emits frames as they are assembled, so a frame completed by a retransmission comes after its
 * successors. Frames carry consecutive ids (dependency descriptor). A missing frame is waited for, `waitMs` at most;
 * then all frames before the next key frame are skipped. Without ids, the order of arrival is the decode order. Holds
 * `capacity` frames at most.
 */

import type { OtherCodec } from "./picture-decoder.js";

/** One complete encoded frame. */
export interface EncodedFrame {
  /** RTP timestamp, 90 kHz, wrapping at 2^32. */
  rtpTimestamp: number;
  /** Frame number, consecutive in decode order; absent without the dependency descriptor. */
  frameId: number | undefined;
  /** A key frame. */
  key: boolean;
  /** The codec; null: VP9. */
  codec: OtherCodec | null;
  /** The frame; of VP9 it may be a superframe. */
  data: Uint8Array;
  /** Time of arrival. */
  arrival: number;
}

/** Counts of frames that are not decoded. */
export interface ReorderCounters {
  /** Came after their successors were released. */
  late: number;
  /** Never came, as far as ids show. */
  lost: number;
  /** Came, but refer to a missing frame. */
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

/** Holds the encoded frames of a track, and releases them in decode order. */
export class ReorderBuffer {
  /** Counts since the start. */
  readonly counters: ReorderCounters = { late: 0, lost: 0, skipped: 0 };
  private held: Held[] = [];
  private next: number | null = null;
  private lastId = 0;
  private lastTimestamp: number | null = null;

  constructor(
    private readonly waitMs = 250,
    private readonly capacity = 32,
  ) {}

  /** Whether nothing can be released before a key frame comes. */
  get waitingForKey(): boolean {
    return this.next === null && !this.held.some((h) => h.frame.key);
  }

  /** The number of frames held. */
  get length(): number {
    return this.held.length;
  }

  /** Goes on at the next key frame: the decoder has lost its state. */
  requireKey(): void {
    this.next = null;
  }

  /** Skips all frames held: decoding pauses. */
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
      // The sender has restarted its ids.
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

  /** Releases the next frame to decode; null: it has not come. */
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

  /** When to call {@link pop} again although no frame comes; null without a gap. */
  deadline(): number | null {
    const head = this.held[0];
    return head === undefined || this.next === null || head.id === this.next ? null : head.frame.arrival + this.waitMs;
  }

  private release(index: number): EncodedFrame {
    const [found] = this.held.splice(index, 1) as [Held];
    const skipped = this.held.splice(0, index).length;
    this.counters.skipped += skipped;
    if (this.next !== null) this.counters.lost += Math.max(0, found.id - this.next - skipped);
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
