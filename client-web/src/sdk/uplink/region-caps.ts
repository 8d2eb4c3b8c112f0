/**
 * The client's own caps on stills, whatever the server asks for: requests, area and bytes per second. Pure; times are
 * milliseconds and arguments.
 */

/** The cap that a request exceeds. */
export type Refusal = "rate" | "area" | "bytes";

/** The caps. */
export interface RegionLimits {
  requestsPerSecond: number;
  /** Sum of the shares of the picture. */
  sharePerSecond: number;
  bytesPerRequest: number;
  bytesPerSecond: number;
}

/** The caps of the SDK. */
export const REGION_LIMITS: RegionLimits = {
  requestsPerSecond: 4,
  sharePerSecond: 2,
  bytesPerRequest: 12_000,
  bytesPerSecond: 16_000,
};

/** Min bytes of a useful still. */
const MIN_BYTES = 300;
/** Window of all caps, milliseconds. */
const SPAN_MS = 1000;

/** Limits the requests, area and bytes of stills per second. */
export class RegionCaps {
  private granted: { at: number; share: number }[] = [];
  private sent: { at: number; bytes: number }[] = [];

  constructor(private readonly limits: RegionLimits = REGION_LIMITS) {}

  /**
   * Admits a request for `tiles` of the picture's `total` tiles in at most `bytes`. Returns the bytes granted, or the
   * cap that it exceeds. `spareBytesPerSecond`: the spare bandwidth of the uplink.
   */
  admit(now: number, tiles: number, total: number, bytes: number, spareBytesPerSecond: number): number | Refusal {
    this.granted = this.granted.filter(({ at }) => now - at < SPAN_MS);
    this.sent = this.sent.filter(({ at }) => now - at < SPAN_MS);
    const { limits } = this;
    if (this.granted.length >= limits.requestsPerSecond) return "rate";
    const share = tiles / Math.max(1, total);
    const used = this.granted.reduce((sum, g) => sum + g.share, 0);
    if (used + share > limits.sharePerSecond) return "area";
    const spent = this.sent.reduce((sum, s) => sum + s.bytes, 0);
    const left = Math.min(limits.bytesPerSecond, spareBytesPerSecond) - spent;
    const grant = Math.floor(Math.min(bytes, limits.bytesPerRequest, left));
    if (!(grant >= MIN_BYTES)) return "bytes";
    this.granted.push({ at: now, share });
    this.sent.push({ at: now, bytes: grant });
    return grant;
  }
}
