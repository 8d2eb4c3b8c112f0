/** Where tiles go: pure arithmetic, without a page. */

/** How tiles are laid out: all alike, or one large with the others beside it. */
export type Layout = "grid" | "speaker";

/** What a tile shows, as far as the layout goes. */
export interface Placed {
  /** Whether it is a shared screen. */
  readonly screen: boolean;
  /** When who it shows began to speak last, milliseconds; 0: never. */
  readonly spokeAt: number;
}

/** Aspect ratio of a tile. */
const ASPECT = 16 / 9;
/** Tiles in a page of a window of usual size, and of a phone. */
const PAGE = { wide: 9, narrow: 6 };
/** Tiles in a page of the strip beside a large one, in a window of usual size and on a phone. */
const STRIP = { wide: 6, narrow: 3 };
/** Windows narrower than this are phones, pixels. */
const NARROW = 600;

/** How many tiles one page holds. */
export function pageSize(layout: Layout, width: number): number {
  return (layout === "grid" ? PAGE : STRIP)[width < NARROW ? "narrow" : "wide"];
}

/**
 * The columns with which tiles of a given number are largest; of equal ones those that suit the shape of the window.
 */
export function columnsFor(count: number, width: number, height: number): number {
  let best = { columns: 1, tile: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    const tile = Math.min(width / columns, (height / rows) * ASPECT);
    const gain = tile / best.tile;
    if (gain > 1.001 || (gain > 0.999 && width > height)) best = { columns, tile };
  }
  return best.columns;
}

/** The number of pages, at least one. */
export function pagesFor(count: number, size: number): number {
  return Math.max(1, Math.ceil(count / size));
}

/** The tiles of a page. */
export function pageOf<T>(tiles: readonly T[], size: number, page: number): T[] {
  return tiles.slice(page * size, (page + 1) * size);
}

/**
 * The tile that is shown large: the pinned one; in the speaker view also the latest shared screen, who spoke last, or
 * the first. Null: all are alike.
 */
export function largeOf<T extends Placed>(tiles: readonly T[], layout: Layout, pinned: T | null): T | null {
  if (pinned !== null && tiles.includes(pinned)) return pinned;
  if (layout === "grid") return null;
  const screen = tiles.filter((tile) => tile.screen).at(-1);
  if (screen !== undefined) return screen;
  return tiles.reduce<T | null>((best, tile) => (best === null || tile.spokeAt > best.spokeAt ? tile : best), null);
}

/**
 * The order with who speaks in the first page: in the place of the one there who has not spoken for the longest time.
 * The others stay where they are, so that nobody has to be looked for.
 */
export function withSpeaker<T extends Placed>(tiles: readonly T[], speaker: T, size: number): T[] {
  const order = [...tiles];
  const from = order.indexOf(speaker);
  if (from < size) return order;
  const first = order.slice(0, size).filter((tile) => !tile.screen);
  const quietest = first.reduce<T | null>((a, b) => (a === null || b.spokeAt <= a.spokeAt ? b : a), null);
  if (quietest === null) return order;
  order[order.indexOf(quietest)] = speaker;
  order[from] = quietest;
  return order;
}
