/** The bars of a tile that show how well somebody comes through. */
import { make } from "./dom.js";
import { words, write } from "./language.js";
import type { Bars } from "./quality.js";

export class QualityBars {
  readonly element = make("span", { class: "bars", role: "img", hidden: true }, bar(), bar(), bar());

  /** Shows them; null: none. */
  show(bars: Bars | null): void {
    const { element } = this;
    element.hidden = bars === null;
    if (bars === null || element.dataset["bars"] === String(bars)) return;
    element.dataset["bars"] = String(bars);
    const text = words(`quality.${bars}`);
    write(element, text, "aria-label");
    write(element, text, "title");
  }
}

const bar = () => make("span", {});
