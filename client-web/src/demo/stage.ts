/** The stage: the tiles of the others and the own one, in pages, all alike or one of them large. */
import { icon, make } from "./dom.js";
import { type Words, words, write } from "./language.js";
import { columnsFor, type Layout, largeOf, pageOf, pageSize, pagesFor, withSpeaker } from "./layout.js";
import type { OwnTile } from "./own.js";
import type { Tile } from "./tile.js";

/** The number of others from which on the own picture is a tile among theirs. */
const OWN_AMONG = 2;
/** Gap between tiles, pixels. */
const GAP = 11;

/** The grid of tiles: arranges them in pages, in a layout of equal tiles or of one large one. */
export class Stage {
  private readonly grid = make("div", { class: "grid" });
  private readonly place = make("span", { class: "place" });
  private readonly previous = this.pageButton("back", words("page.previous"), -1);
  private readonly next = this.pageButton("forth", words("page.next"), 1);
  private readonly pager = make("div", {
    class: "pager",
    role: "group",
    "aria-label": words("page.pages"),
    hidden: true,
  });
  readonly element = make("div", { class: "stage-area" }, this.grid, this.pager);
  private readonly sizes = new ResizeObserver(() => this.arrange());
  private order: Tile[] = [];
  private pinned: Tile | null = null;
  private chosen: Layout | null = null;
  private page = 0;
  private pages = 1;

  /** `own`: null where one sees oneself as the others do already. `changed` is called when the layout has changed. */
  constructor(
    private readonly own: OwnTile | null,
    private readonly changed: () => void,
  ) {
    this.pager.append(this.previous, this.place, this.next);
    if (own !== null) this.grid.append(own.element);
    this.sizes.observe(this.grid);
  }

  /** How many tiles of others there are. */
  get count(): number {
    return this.order.length;
  }

  /** The layout: the person's choice, else the speaker view while somebody shares a screen. */
  get layout(): Layout {
    return this.chosen ?? (this.order.some(({ screen }) => screen) ? "speaker" : "grid");
  }

  /** The tile that is shown large; null: all are alike. */
  get large(): Tile | null {
    return largeOf(this.order, this.layout, this.pinned);
  }

  add(tile: Tile): void {
    this.order.push(tile);
    this.grid.append(tile.element);
    if (tile.screen) this.screensChanged();
    this.arrange();
  }

  remove(tile: Tile): void {
    this.order = this.order.filter((other) => other !== tile);
    if (this.pinned === tile) this.pinned = null;
    tile.close();
    if (tile.screen) this.screensChanged();
    this.arrange();
  }

  /** Changes between the grid and the speaker view. */
  toggleLayout(): void {
    this.chosen = this.layout === "grid" ? "speaker" : "grid";
    this.pin(null);
  }

  /** Shows a tile large until another one is pinned; null, or the same tile: ends that. */
  pin(tile: Tile | null): void {
    this.pinned?.setPinned(false);
    this.pinned = tile === this.pinned ? null : tile;
    this.pinned?.setPinned(true);
    this.page = 0;
    this.arrange();
  }

  /** Notes that who is in a tile speaks. */
  speaks(tile: Tile): void {
    tile.spokeAt = performance.now();
    this.order = withSpeaker(this.order, tile, this.size);
    this.arrange();
  }

  /** Turns pages. */
  turn(by: number): void {
    this.page = Math.min(this.pages - 1, Math.max(0, this.page + by));
    this.arrange();
  }

  /** The tile that has the focus, else the large one, else the first. */
  get current(): Tile | null {
    const focused = this.order.find(({ element }) => element.contains(document.activeElement));
    return focused ?? this.large ?? this.order[0] ?? null;
  }

  close(): void {
    this.sizes.disconnect();
    for (const tile of this.order) tile.close();
    this.order = [];
    this.own?.close();
  }

  /** What the person chose held for the screens of then. */
  private screensChanged(): void {
    if (this.chosen === "grid") this.chosen = null;
  }

  private get ownAmong(): boolean {
    return this.own !== null && this.order.length >= OWN_AMONG;
  }

  /** How many tiles of others a page holds. */
  private get size(): number {
    const layout = this.large === null ? "grid" : "speaker";
    return pageSize(layout, innerWidth) - (this.ownAmong ? 1 : 0);
  }

  private arrange(): void {
    const { grid, large, ownAmong } = this;
    const rest = this.order.filter((tile) => tile !== large);
    this.pages = pagesFor(rest.length, this.size);
    this.page = Math.min(this.page, this.pages - 1);
    const shown = new Set(pageOf(rest, this.size, this.page));
    for (const tile of this.order) {
      tile.element.hidden = tile !== large && !shown.has(tile);
      tile.element.classList.toggle("large", tile === large);
      tile.element.style.order = String(rest.indexOf(tile));
    }
    const count = shown.size + (ownAmong ? 1 : 0);
    if (this.own !== null) {
      this.own.element.classList.toggle("tiled", ownAmong);
      this.own.element.style.order = String(this.order.length);
      this.own.element.style.gridColumn = "";
    }
    grid.dataset["layout"] = large === null ? "grid" : "speaker";
    grid.dataset["count"] = String(this.order.length);
    grid.classList.toggle("strip", large !== null && count > 0);
    this.placeRows(rest.filter((tile) => shown.has(tile)));
    this.pager.hidden = this.pages === 1;
    // Not disabled: a button that has the focus would lose it.
    this.previous.setAttribute("aria-disabled", String(this.page === 0));
    this.next.setAttribute("aria-disabled", String(this.page === this.pages - 1));
    write(this.place, words("page.place", { page: this.page + 1, pages: this.pages }));
    this.changed();
  }

  /** Places tiles in rows, of which the last may have fewer: these stand in the middle. */
  private placeRows(shown: readonly Tile[]): void {
    const { grid, own, ownAmong } = this;
    const elements = shown.map(({ element }) => element);
    if (own !== null && ownAmong) elements.push(own.element);
    const { clientWidth, clientHeight } = grid;
    const columns = columnsFor(elements.length, clientWidth + GAP, clientHeight + GAP);
    grid.style.setProperty("--columns", String(columns));
    const last = elements.length % columns;
    elements.forEach((element, at) => {
      // Columns are half as wide as tiles.
      element.style.gridColumn = at === elements.length - last ? `${1 + columns - last} / span 2` : "span 2";
    });
  }

  private pageButton(look: "back" | "forth", label: Words, by: number): HTMLButtonElement {
    const button = make("button", { class: "chip", type: "button", "aria-label": label, title: label }, icon(look));
    button.onclick = () => this.turn(by);
    return button;
  }
}
