/**
 * Packs tiles of a camera picture into the mosaic of an anchor, at HR size. Pure: planes in, planes out.
 *
 * Where the camera is larger than HR, each sample is the mean of the area that it covers, as the low layers are made;
 * what lies beyond the picture's edge repeats the edge, which costs the fewest bits.
 */
import { mosaicSize, TILE, type TileMap } from "./tiles.js";

/** The luma of a picture: all that anchors give, and so all that leaves the page. */
export interface Luma {
  data: Uint8Array;
  offset: number;
  stride: number;
  width: number;
  height: number;
}

/** The chroma of no colour. */
const GREY = 128;

/** The mosaic as I420, planes one after another without padding; without colour, which would only cost bits. */
export interface Mosaic {
  data: Uint8Array;
  width: number;
  height: number;
}

/** Packs the tiles of `map`, whose low picture is `low`. */
export function packMosaic(map: TileMap, low: { width: number; height: number }, scale: number, luma: Luma): Mosaic {
  const { width, height, across } = mosaicSize(map, scale);
  const data = new Uint8Array((width * height * 3) / 2).fill(GREY, width * height);
  const side = TILE * scale;
  const hr = { width: low.width * scale, height: low.height * scale };
  map.tiles.forEach(({ column, row }, i) => {
    const to = Math.floor(i / across) * side * width + (i % across) * side;
    packTile(luma, hr, column * side, row * side, side, data, to, width);
  });
  return { data, width, height };
}

/** Writes one tile whose first sample is (x, y) of the luma at HR size. */
function packTile(
  luma: Luma,
  hr: { width: number; height: number },
  x: number,
  y: number,
  side: number,
  out: Uint8Array,
  to: number,
  stride: number,
): void {
  const across = spans(luma.width, hr.width, x, side);
  const down = spans(luma.height, hr.height, y, side);
  const { data, offset } = luma;
  down.forEach((rows, line) => {
    across.forEach((columns, sample) => {
      let sum = 0;
      let weight = 0;
      for (let r = rows.from; r < rows.to; r++) {
        const rowWeight = coverage(rows, r);
        for (let c = columns.from; c < columns.to; c++) {
          const w = rowWeight * coverage(columns, c);
          sum += w * (data[offset + r * luma.stride + c] ?? 0);
          weight += w;
        }
      }
      out[to + line * stride + sample] = Math.round(sum / weight);
    });
  });
}

/** The samples `from..to` of the camera that one of HR covers: from `start` to `end`. */
interface Span {
  from: number;
  to: number;
  start: number;
  end: number;
}

function spans(camera: number, hr: number, first: number, count: number): Span[] {
  const ratio = camera / hr;
  return Array.from({ length: count }, (_, i) => {
    const at = Math.min(first + i, hr - 1);
    const start = at * ratio;
    const end = Math.min(camera, start + ratio);
    const from = Math.min(camera - 1, Math.floor(start + 1e-9));
    return { from, to: Math.max(from + 1, Math.ceil(end - 1e-9)), start, end };
  });
}

/** How much of sample `i` the span covers. A picture smaller than HR gives its nearest sample. */
function coverage({ start, end, from, to }: Span, i: number): number {
  return to - from === 1 ? 1 : Math.min(end, i + 1) - Math.max(start, i);
}
