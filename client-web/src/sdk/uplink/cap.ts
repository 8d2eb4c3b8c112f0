/** A cap that the page sets on what is sent, as a narrower link would: congestion control plans with no more. */
import type { LayerSetting } from "./layers.js";

/**
 * The server's answer with the cap, kbit/s, on every video; null: without one. (RFC 8866 §5.8: `b=AS` in a received
 * description limits what is sent to its maker. Chromium has one limit for all, that of the section that changed last:
 * so those of received videos have it too, where it means nothing else.)
 */
export function capUplink(answer: string, kbps: number | null): string {
  if (kbps === null) return answer;
  const sections = answer.split(/^(?=m=)/m);
  return sections
    .map((section) => {
      if (!section.startsWith("m=video")) return section;
      // After the section's connection data, before its attributes (RFC 8866 §5).
      return section.replace(/^(?=a=)/m, `b=AS:${Math.max(1, Math.round(kbps))}\r\n`);
    })
    .join("");
}

/** Less than this makes no picture of a further layer, bit/s. */
const MIN_LAYER = 60_000;

/**
 * The layers under a cap, smallest first, for browsers that heed none in descriptions (Firefox): each gets its own cap
 * or what is left, a further one nothing where that is too little.
 */
export function capLayers(settings: readonly LayerSetting[], kbps: number | null): LayerSetting[] {
  let left = kbps === null ? Infinity : kbps * 1000;
  let first = true;
  return settings.map((setting) => {
    if (!setting.active) return setting;
    const active = first || left >= MIN_LAYER;
    first = false;
    const maxBitrate = active ? Math.min(setting.maxBitrate, left) : setting.maxBitrate;
    if (active) left -= maxBitrate;
    return { ...setting, active, maxBitrate };
  });
}
