/**
 * How much of the camera's full-size pixels the server can get by asking for regions: so many requests, so much of
 * the picture and so many bytes a second, whatever it asks for. Pure; times are milliseconds and arguments.
 */

/** Why a request is refused. */
export type Refusal = "rate" | "area" | "bytes";

export interface RegionLimits {
  requestsPerSecond: number;
  /** Shares of the picture in a second, added up. */
  sharePerSecond: number;
  bytesPerRequest: number;
  bytesPerSecond: number;
}

/** What the SDK grants. */
export const REGION_LIMITS: RegionLimits = {
  requestsPerSecond: 4,
  sharePerSecond: 2,
  bytesPerRequest: 12_000,
  bytesPerSecond: 16_000,
};

/** A request is of no use with fewer bytes. */
const LEAST_BYTES = 300;
const SPAN_MS = 1000;

/** See the module's head. */
export class RegionCaps {
  private granted: { at: number; share: number }[] = [];
  private sent: { at: number; bytes: number }[] = [];

  constructor(private readonly limits: RegionLimits = REGION_LIMITS) {}

  /**
   * Asks for `tiles` of the picture's `of` in at most `bytes`. Gives the bytes that are granted, or why it is refused.
   * `spareBytesPerSecond`: what the uplink has to spare.
   */
  admit(now: number, tiles: number, of: number, bytes: number, spareBytesPerSecond: number): number | Refusal {
    this.granted = this.granted.filter(({ at }) => now - at < SPAN_MS);
    this.sent = this.sent.filter(({ at }) => now - at < SPAN_MS);
    const { limits } = this;
    if (this.granted.length >= limits.requestsPerSecond) return "rate";
    const share = tiles / Math.max(1, of);
    const used = this.granted.reduce((sum, g) => sum + g.share, 0);
    if (used + share > limits.sharePerSecond) return "area";
    const spent = this.sent.reduce((sum, s) => sum + s.bytes, 0);
    const left = Math.min(limits.bytesPerSecond, spareBytesPerSecond) - spent;
    const grant = Math.floor(Math.min(bytes, limits.bytesPerRequest, left));
    if (!(grant >= LEAST_BYTES)) return "bytes";
    this.granted.push({ at: now, share });
    this.sent.push({ at: now, bytes: grant });
    return grant;
  }
}
