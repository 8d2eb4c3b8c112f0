/**
 * The header of an anchor message, and the latency of anchors.
 *
 * The WASM module reassembles and applies anchors. The page needs the stream id to route a message, and the RTP
 * timestamp for the age of the anchor's frame. Wire format: `windlass_types::message`, big endian, 24 bytes.
 */

/**
 * The source of an anchor's detail: a super-resolution network (`enhanced`), or the publisher's own pixels
 * (`captured`).
 */
export type AnchorSource = "enhanced" | "captured";

/** The fields of an anchor message's header that the page uses. */
export interface AnchorHeader {
  /** The SFU's id of the stream. */
  stream: number;
  /** Index of this chunk. */
  chunk: number;
  /** Number of chunks of the anchor. */
  chunks: number;
  /** Time from the arrival of the frame at the SFU to sending, milliseconds. */
  ageMs: number;
  /** RTP timestamp of the frame, in this subscriber's timeline. */
  rtpTimestamp: number;
  /** Whether it carries some tiles of the picture only. */
  tiled: boolean;
  source: AnchorSource;
}

const VERSION = 1;
const HEADER_BYTES = 24;
const MAX_CHUNKS = 256;
const CAPTURED = 1;
const FLAG_TILED = 1;

/** Parses the header of a data channel message; null where it is none of this version. */
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

/** The arrival times of frames, for the latency of their anchors. */
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

  /** Time from the arrival of that frame to `now`, milliseconds; null where the arrival is unknown. */
  since(rtpTimestamp: number, now: number): number | null {
    const then = this.times.get(rtpTimestamp);
    return then === undefined ? null : now - then;
  }
}
