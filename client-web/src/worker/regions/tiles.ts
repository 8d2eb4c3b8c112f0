/** Tile maps of the anchor format (`hybrid::anchor::tiles`): which superblocks of a low picture are meant. Pure. */

/** Side of a tile in samples of the low layer. */
export const TILE = 64;

export interface TileMap {
  columns: number;
  rows: number;
  /** The chosen tiles, row by row. */
  tiles: { column: number; row: number }[];
  /** The map as it is on the wire. */
  bits: Uint8Array;
}

/** Reads the bits of a map for a low picture; null where they are not one, or no tile is chosen. */
export function parseTileMap(width: number, height: number, bits: Uint8Array): TileMap | null {
  const whole = [width, height].every((side) => Number.isInteger(side) && side > 0 && side <= 0x7fff);
  if (!whole) return null;
  const columns = Math.ceil(width / TILE);
  const rows = Math.ceil(height / TILE);
  const count = columns * rows;
  if (bits.length !== Math.ceil(count / 8)) return null;
  const tiles: TileMap["tiles"] = [];
  for (let i = 0; i < bits.length * 8; i++) {
    if ((((bits[i >> 3] ?? 0) >> (i & 7)) & 1) === 0) continue;
    if (i >= count) return null;
    tiles.push({ column: i % columns, row: Math.floor(i / columns) });
  }
  return tiles.length === 0 ? null : { columns, rows, tiles, bits };
}

/** A map's bits out of base64; null where it is none. */
export function bitsOf(base64: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}
