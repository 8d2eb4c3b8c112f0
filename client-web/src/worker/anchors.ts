/**
 * The head of an anchor message, and how long anchors take.
 *
 * The WASM module reassembles and applies anchors; the page only needs the stream id to route a message, and the
 * RTP timestamp to know how old the anchor's frame is. Wire format: `hybrid::anchor::message`, big endian, 24 bytes.
 */

/** Where an anchor's detail comes from: it was made by a network, or of the publisher's own pixels. */
export type AnchorSource = "enhanced" | "captured";

/** The fields of an anchor message's header that the page uses. */
export interface AnchorHeader {
  /** The SFU's stream id. */
  stream: number;
  /** Which chunk of how many. */
  chunk: number;
  chunks: number;
  /** Milliseconds from the arrival of its frame at the SFU to sending. */
  ageMs: number;
  /** RTP timestamp of its frame in this subscriber's timeline. */
  rtpTimestamp: number;
  /** Whether it gives tiles of the picture and not all of it. */
  tiled: boolean;
  source: AnchorSource;
}

const VERSION = 1;
const HEADER_BYTES = 24;
const MAX_CHUNKS = 256;
const CAPTURED = 1;
const FLAG_TILED = 1;

/** Parses the header of a data channel message; null when it is not one of this version. */
export function parseAnchorHeader(message: ArrayBuffer): AnchorHeader | null {
  if (message.byteLength <= HEADER_BYTES) return null;
  const view = new DataView(message);
  const chunk = view.getUint16(10);
  const chunks = view.getUint16(12);
  if (view.getUint8(0) !== VERSION || chunks === 0 || chunks > MAX_CHUNKS || chunk >= chunks) return null;
  return {
    stream: view.getUint32(4),
    chunk,
    chunks,
    ageMs: view.getUint16(14),
    rtpTimestamp: view.getUint32(16),
    tiled: (view.getUint8(3) & FLAG_TILED) !== 0,
    source: view.getUint8(2) === CAPTURED ? "captured" : "enhanced",
  };
}

/** Remembers when frames arrived, to tell how long their anchors took. */
export class ArrivalLog {
  private readonly times = new Map<number, number>();

  constructor(private readonly capacity = 256) {}

  /** Notes that the frame of `rtpTimestamp` arrived at `now`, milliseconds. */
  note(rtpTimestamp: number, now: number): void {
    this.times.set(rtpTimestamp, now);
    if (this.times.size > this.capacity) {
      const oldest = this.times.keys().next();
      if (!oldest.done) this.times.delete(oldest.value);
    }
  }

  /** Milliseconds from the arrival of that frame to `now`; null when it is not known (any more, or yet). */
  since(rtpTimestamp: number, now: number): number | null {
    const then = this.times.get(rtpTimestamp);
    return then === undefined ? null : now - then;
  }
}
