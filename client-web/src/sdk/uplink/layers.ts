/**
 * What each layer of a camera is set to: the page's caps, made smaller by the server's wishes. Pure.
 *
 * A wish can lower what the page allows and take that back, never go beyond it.
 */
import type { LayerWish } from "../protocol.js";
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
  /** Frames per second; undefined: all. */
  maxFramerate: number | undefined;
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

/**
 * The settings of all layers, `hold` being what the uplink has room for. At least the smallest one allowed stays on: a wish cannot
 * end the video.
 */
export function layerSettings(
  allowed: Layers,
  wishes: ReadonlyMap<string, LayerWish>,
  hold: Hold = { mostFps: undefined, mostBitrate: undefined },
): LayerSetting[] {
  const settings = LAYERS.map(({ rid, maxBitrate }): LayerSetting => {
    const wish = wishes.get(rid);
    const bitrate = wish?.kbps === undefined ? maxBitrate : Math.round(wish.kbps * 1000);
    const fps = Math.min(wish?.fps ?? Infinity, hold.mostFps ?? Infinity);
    return {
      rid,
      active: allowed.includes(rid) && wish?.active !== false,
      maxBitrate: Math.min(maxBitrate, Math.max(LEAST_BITRATE, bitrate), hold.mostBitrate ?? Infinity),
      maxFramerate: fps === Infinity ? undefined : Math.max(LEAST_FPS, fps),
    };
  });
  if (!settings.some((layer) => layer.active)) {
    const first = settings.find((layer) => allowed.includes(layer.rid));
    if (first !== undefined) first.active = true;
  }
  return settings;
}

/**
 * Camera size over picture size of the detail stream: `scale` times the best low layer that is sent, as the browser sends
 * fewer than it may when the uplink is short. `f` is none of these, as nothing is above it. `flowing`: RIDs that frames come of.
 */
export function detailDown(settings: readonly LayerSetting[], flowing: readonly string[], scale: number): number {
  const low = LAYERS.filter(({ rid }) => rid !== "f" && settings.find((s) => s.rid === rid)?.active);
  const sent = low.filter(({ rid }) => flowing.includes(rid));
  const best = sent.at(-1) ?? low.at(-1) ?? LAYERS[1];
  return Math.max(1, (best?.scaleResolutionDownBy ?? 1) / scale);
}
