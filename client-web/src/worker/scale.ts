/** By how much a picture is enlarged when it is rebuilt: as much as fills its place on the page. Pure. */

/** A size in pixels: of a picture, or of a place on the page in the device's. */
export interface Size {
  width: number;
  height: number;
}

/** What the browser may enlarge by itself before rebuilding at the next scale is worth its time: as the server counts it (`sfu/core/view`). */
const STRETCH = 1.25;
/** Rebuilt pictures beyond this are too much for a browser's processor, but for those of the least scale. */
const MAX_PIXELS = 1280 * 736;

/** The scale, one of `scales` (ascending), for a low picture shown whole in a place; null: it fills the place as it is. */
export function scaleFor(low: Size, place: Size, scales: readonly number[]): number | null {
  const by = Math.min(place.width / low.width, place.height / low.height);
  if (by <= STRETCH) return null;
  const enough = scales.find((scale) => by <= scale * STRETCH) ?? scales.at(-1) ?? null;
  const pixels = low.width * low.height;
  const possible = scales.filter((scale, i) => i === 0 || pixels * scale * scale <= MAX_PIXELS);
  return enough === null ? null : (possible.findLast((scale) => scale <= enough) ?? null);
}
