/**
 * Decides whether a shared screen is sent small beside its full size. Pure; times are milliseconds and arguments.
 *
 * Chromium serves the smallest layer first, and gives a larger one nothing while the uplink is narrow. Of a screen that
 * is the wrong way round: a page of text that stands still costs a few kilobytes at full size, is readable within
 * seconds and sharp within ten, but never readable at a quarter of its width (`tests/e2e/ci/screen.test.mjs`). So on a
 * narrow uplink the small layer is sent only where a subscriber takes nothing larger.
 */
import type { Layers } from "./layers.js";

/** Estimate from which on there is room for both, kbit/s, … */
const WIDE_KBPS = 600;
/** … for this time, milliseconds. */
const WIDE_MS = 3000;
/** Estimate below which there is none any more, kbit/s. */
const NARROW_KBPS = 400;

/** Decides whether a shared screen is sent with its small layer. */
export class ScreenLayers {
  private wide = false;
  private since: number | null = null;

  /** Takes the bandwidth estimate. Returns whether {@link of} gives others now. */
  onEstimate(now: number, availableKbps: number | null): boolean {
    const before = this.wide;
    if (availableKbps === null || availableKbps < NARROW_KBPS) this.wide = false;
    if (availableKbps === null || availableKbps < WIDE_KBPS) this.since = null;
    else this.since ??= now;
    if (this.since !== null && now - this.since >= WIDE_MS) this.wide = true;
    return before !== this.wide;
  }

  /** The ones of the `allowed` layers that are sent. `needsQ`: a subscriber takes the quarter layer only. */
  of(allowed: Layers, needsQ: boolean): Layers {
    return this.wide || needsQ || !allowed.includes("f") ? allowed : "f";
  }
}
