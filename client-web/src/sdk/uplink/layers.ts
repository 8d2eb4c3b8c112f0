/**
 * The settings of the layers of a camera or a shared screen: the page's caps, lowered by the server's requests and by
 * the uplink. Pure.
 *
 * A request never goes beyond the page's caps.
 */
import type { LayerRequest } from "../protocol.js";
import type { LeadCaps } from "./lead.js";
import type { UplinkCaps } from "./narrow.js";

/** The layers that are sent: quarter (`q`), half (`h`) and full (`f`) width. */
export type Layers = "q" | "f" | "qh" | "qf" | "qhf";

/** What may be chosen of the layers. */
export const LAYER_CHOICES: readonly Layers[] = ["q", "f", "qh", "qf", "qhf"];

/** The declaration of a layer. */
export interface LayerCap {
  rid: string;
  scaleResolutionDownBy: number;
  /** Bits per second. */
  maxBitrate: number;
  /** Frames per second. */
  maxFramerate: number;
}

/** The settings of a layer. */
export interface LayerSetting {
  rid: string;
  active: boolean;
  /** Bits per second. */
  maxBitrate: number;
  /** Frames per second, different for each layer: see {@link separateFrameRates}. */
  maxFramerate: number;
}

/** Max frame rate of browsers. */
const MAX_FPS = 60;
/** Max frame rate of a shared screen: what is read there needs pixels more than frames. */
const MAX_SCREEN_FPS = 15;

/** What is sent: a camera's picture, or a shared screen, window or tab. */
export type Content = "camera" | "screen";

/** The layers of either, smallest first. */
export const LAYERS: Readonly<Record<Content, readonly LayerCap[]>> = {
  camera: [
    { rid: "q", scaleResolutionDownBy: 4, maxBitrate: 150_000, maxFramerate: MAX_FPS },
    { rid: "h", scaleResolutionDownBy: 2, maxBitrate: 500_000, maxFramerate: MAX_FPS },
    { rid: "f", scaleResolutionDownBy: 1, maxBitrate: 1_500_000, maxFramerate: MAX_FPS },
  ],
  screen: [
    { rid: "q", scaleResolutionDownBy: 4, maxBitrate: 150_000, maxFramerate: MAX_SCREEN_FPS },
    { rid: "h", scaleResolutionDownBy: 2, maxBitrate: 500_000, maxFramerate: MAX_SCREEN_FPS },
    { rid: "f", scaleResolutionDownBy: 1, maxBitrate: 2_500_000, maxFramerate: MAX_SCREEN_FPS },
  ],
};

/** Min bitrate that a request can set, bit/s: less makes no picture. */
const MIN_BITRATE = 20_000;
/** Min frame rate that a request can set. */
const MIN_FPS = 1;

/** What layers depend on, besides requests. */
export interface LayerConditions {
  uplink?: UplinkCaps;
  /** The division of the uplink among the layers. */
  caps?: LeadCaps;
  /** Whether the uplink needs `q`. */
  needsQuarter?: boolean;
  content?: Content;
  /** Whether they are a backup's. */
  backup?: boolean;
}

/**
 * The settings of all layers. The smallest allowed layer stays on at least, as a request cannot end the video; a backup
 * has none where none is asked for.
 */
export function layerSettings(
  allowed: Layers,
  requests: ReadonlyMap<string, LayerRequest>,
  { uplink, caps = {}, needsQuarter = false, content = "camera", backup = false }: LayerConditions = {},
): LayerSetting[] {
  const settings = LAYERS[content].map(({ rid, maxBitrate, maxFramerate }): LayerSetting => {
    const request = requests.get(rid);
    const bitrate = request?.kbps === undefined ? Infinity : Math.round(request.kbps * 1000);
    const cap = caps[rid];
    // The cap of `q` may exceed its own while `h` leads, so that it comes second.
    const max = Math.min(cap === undefined ? maxBitrate : cap * 1000, uplink?.maxBitrate ?? Infinity);
    const fps = Math.round(Math.min(request?.fps ?? maxFramerate, uplink?.maxFps ?? maxFramerate, maxFramerate));
    return {
      rid,
      active: allowed.includes(rid) && (request?.active !== false || (needsQuarter && rid === "q" && !backup)),
      maxBitrate: Math.min(max, Math.max(MIN_BITRATE, bitrate)),
      maxFramerate: Math.max(MIN_FPS, fps),
    };
  });
  separateFrameRates(settings);
  if (!backup && !settings.some((layer) => layer.active)) {
    const first = settings.find((layer) => allowed.includes(layer.rid));
    if (first !== undefined) first.active = true;
  }
  return settings;
}

/**
 * Makes the frame rates of layers differ. Chromium has one encoder for layers that differ in size alone, by halves. It
 * makes the smaller picture of every second sample of the larger one, which costs `h` beside `f` 3 to 4 dB. Otherwise
 * each layer has its own encoder, and is downscaled by averaging (`lab/notes/captured-anchors.md`).
 */
function separateFrameRates(settings: LayerSetting[]): void {
  const taken = new Set<number>();
  for (const setting of settings) {
    while (taken.has(setting.maxFramerate)) setting.maxFramerate += 1;
    taken.add(setting.maxFramerate);
  }
}
