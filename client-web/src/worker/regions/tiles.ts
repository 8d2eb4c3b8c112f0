/** Tile maps of the anchor format (`windlass_types::tiles`): a set of tiles of an LR picture. Pure. */

/** Side of a tile, samples of the low layer. */
export const TILE = 64;

/** A parsed tile map. */
export interface TileMap {
  columns: number;
  rows: number;
  /** The chosen tiles, row by row. */
  tiles: { column: number; row: number }[];
  /** The map in wire format. */
  bits: Uint8Array;
}

/** Parses the tile map of an LR picture; null where it is invalid, or chooses no tile. */
export function parseTileMap(width: number, height: number, bits: Uint8Array): TileMap | null {
  const valid = [width, height].every((side) => Number.isInteger(side) && side > 0 && side <= 0x7fff);
  if (!valid) return null;
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

/** Decodes a tile map from Base64; null where it is invalid. */
export function bitsOf(base64: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}
