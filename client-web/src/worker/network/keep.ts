/** Leaves alone what no network makes better. */
import type { Plane } from "./backend.js";

/** Side of a cell, low samples; the decoder's (`hybrid/cells`). */
const CELL = 8;

/**
 * Takes the cells with a 1 in `kept` (by cell of the low picture, row by row) from `rebuilt`, whose rows are those of
 * `high`.
 */
export function keepCells(
  kept: Uint8Array,
  low: Pick<Plane, "width" | "height">,
  high: Plane,
  rebuilt: Uint8Array,
): void {
  const columns = Math.ceil(low.width / CELL);
  const side = (CELL * high.width) / low.width;
  for (let cell = kept.indexOf(1); cell >= 0; cell = kept.indexOf(1, cell + 1)) {
    const left = (cell % columns) * side;
    const right = Math.min(left + side, high.width);
    const top = Math.floor(cell / columns) * side;
    for (let y = top; y < Math.min(top + side, high.height); y++) {
      const row = y * high.stride;
      high.bytes.set(rebuilt.subarray(row + left, row + right), row + left);
    }
  }
}
