/**
 * Packs tiles of a camera picture into the mosaic of an anchor, at HR size. Pure: planes in, planes out.
 *
 * Where the camera is larger than HR, each sample is the mean of the area that it covers, as the low layers are made;
 * what lies beyond the picture's edge repeats the edge, which costs the fewest bits.
 */
import { mosaicSize, TILE, type TileMap } from "./tiles.js";

/** One plane of a picture. `step`: distance of two samples in a row, 2 in the chroma of NV12. */
export interface Plane {
  data: Uint8Array;
  offset: number;
  stride: number;
  step: number;
  width: number;
  height: number;
}

/** Luma and the two chroma planes at half size. */
export type Picture = readonly [Plane, Plane, Plane];

/** The mosaic as I420, planes one after another without padding. */
export interface Mosaic {
  data: Uint8Array;
  width: number;
  height: number;
}

/** Packs the tiles of `map`, whose low picture is `low`, out of `picture`. */
export function packMosaic(
  map: TileMap,
  low: { width: number; height: number },
  scale: number,
  picture: Picture,
): Mosaic {
  const { width, height, across } = mosaicSize(map, scale);
  const data = new Uint8Array((width * height * 3) / 2);
  let at = 0;
  picture.forEach((plane, index) => {
    const half = index === 0 ? 1 : 2;
    const side = (TILE * scale) / half;
    const hr = { width: Math.ceil((low.width * scale) / half), height: Math.ceil((low.height * scale) / half) };
    const stride = width / half;
    map.tiles.forEach(({ column, row }, i) => {
      const to = at + Math.floor(i / across) * side * stride + (i % across) * side;
      packTile(plane, hr, column * side, row * side, side, data, to, stride);
    });
    at += stride * (height / half);
  });
  return { data, width, height };
}

/** Writes one tile whose first sample is (x, y) of the plane at HR size. */
function packTile(
  plane: Plane,
  hr: { width: number; height: number },
  x: number,
  y: number,
  side: number,
  out: Uint8Array,
  to: number,
  stride: number,
): void {
  const across = spans(plane.width, hr.width, x, side);
  const down = spans(plane.height, hr.height, y, side);
  const { data, offset, step } = plane;
  down.forEach((rows, line) => {
    across.forEach((columns, sample) => {
      let sum = 0;
      let weight = 0;
      for (let r = rows.from; r < rows.to; r++) {
        const rowWeight = coverage(rows, r);
        for (let c = columns.from; c < columns.to; c++) {
          const w = rowWeight * coverage(columns, c);
          sum += w * (data[offset + r * plane.stride + c * step] ?? 0);
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
