/** The scale (HR over LR size) of rebuilt pictures: the smallest that fills the place on the page. Pure. */

/** A size in pixels; of a place on the page, in device pixels. */
export interface Size {
  width: number;
  height: number;
}

/**
 * Max enlargement by the browser itself before the next scale pays off. The server uses the same
 * (`sfu/core/subscriber/view`).
 */
const MAX_STRETCH = 1.25;
/** Max pixels of a rebuilt picture, for the CPU of a browser. The smallest scale is exempt. */
const MAX_PIXELS = 1280 * 736;

/**
 * The scale, one of `scales` (ascending), for an LR picture that is fitted into a place; null: it fills the place as it
 * is.
 */
export function scaleFor(low: Size, place: Size, scales: readonly number[]): number | null {
  const by = Math.min(place.width / low.width, place.height / low.height);
  if (by <= MAX_STRETCH) return null;
  const enough = scales.find((scale) => by <= scale * MAX_STRETCH) ?? scales.at(-1) ?? null;
  const pixels = low.width * low.height;
  const possible = scales.filter((scale, i) => i === 0 || pixels * scale * scale <= MAX_PIXELS);
  return enough === null ? null : (possible.findLast((scale) => scale <= enough) ?? null);
}
