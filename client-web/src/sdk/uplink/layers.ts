/**
 * What each layer of a camera is set to: the page's caps, made smaller by the server's wishes. Pure.
 *
 * A wish can lower what the page allows and take that back, never go beyond it.
 */
import type { LayerWish } from "../protocol.js";
import type { LeadCaps } from "./lead.js";
import type { Hold } from "./narrow.js";

/** Which layers a camera sends: all, those for a weak uplink, or the smallest alone. */
export type Layers = "q" | "qh" | "qhf";

/** What the page allows a layer. */
export interface LayerCap {
  rid: string;
  scaleResolutionDownBy: number;
  maxBitrate: number;
}

/** What a layer is set to. */
export interface LayerSetting {
  rid: string;
  active: boolean;
  maxBitrate: number;
  /** Frames per second, of no two layers the same: see `apart`. */
  maxFramerate: number;
}

/** The layers of a camera, smallest first. */
export const LAYERS: readonly LayerCap[] = [
  { rid: "q", scaleResolutionDownBy: 4, maxBitrate: 150_000 },
  { rid: "h", scaleResolutionDownBy: 2, maxBitrate: 500_000 },
  { rid: "f", scaleResolutionDownBy: 1, maxBitrate: 1_500_000 },
];

/** No encoder makes a picture of less, and no wish may ask for it. */
const LEAST_BITRATE = 20_000;
const LEAST_FPS = 1;

/** What browsers send at most where nothing is asked. */
const MOST_FPS = 60;

/**
 * The settings of all layers, `hold` being what the uplink has room for, `caps` how layers share that, and `quarter` whether it needs the smallest one. At least the smallest one allowed stays on: a wish cannot
 * end the video.
 */
export function layerSettings(
  allowed: Layers,
  wishes: ReadonlyMap<string, LayerWish>,
  hold: Hold = { mostFps: undefined, mostBitrate: undefined },
  caps: LeadCaps = {},
  quarter = false,
): LayerSetting[] {
  const settings = LAYERS.map(({ rid, maxBitrate }): LayerSetting => {
    const wish = wishes.get(rid);
    const bitrate = wish?.kbps === undefined ? Infinity : Math.round(wish.kbps * 1000);
    const cap = caps[rid];
    // The one that does not lead is told more than its own, to come second.
    const most = Math.min(cap === undefined ? maxBitrate : cap * 1000, hold.mostBitrate ?? Infinity);
    const fps = Math.round(Math.min(wish?.fps ?? MOST_FPS, hold.mostFps ?? MOST_FPS, MOST_FPS));
    return {
      rid,
      active: allowed.includes(rid) && (wish?.active !== false || (quarter && rid === "q")),
      maxBitrate: Math.min(most, Math.max(LEAST_BITRATE, bitrate)),
      maxFramerate: Math.max(LEAST_FPS, fps),
    };
  });
  apart(settings);
  if (!settings.some((layer) => layer.active)) {
    const first = settings.find((layer) => allowed.includes(layer.rid));
    if (first !== undefined) first.active = true;
  }
  return settings;
}

/**
 * Sets the frame rates of layers apart. Chromium has one encoder for layers that differ by their size alone, each half the next
 * one's, and that takes every second sample of a picture for the smaller one, which costs `h` beside `f` 3 to 4 dB. Else each
 * layer is encoded by itself, of means (lab/notes/captured-anchors.md).
 */
function apart(settings: LayerSetting[]): void {
  const taken = new Set<number>();
  for (const setting of settings) {
    while (taken.has(setting.maxFramerate)) setting.maxFramerate += 1;
    taken.add(setting.maxFramerate);
  }
}
