/** A choice of a few values, side by side. */
import { make } from "./dom.js";
import { type Words, write } from "./language.js";

/** A value to choose. */
export interface Segment<T extends string> {
  readonly value: T;
  readonly label: Words;
  /** Shown below while it is chosen. */
  readonly note?: Words;
}

/** A group of buttons, one for each value, of which one is chosen. */
export class Segments<T extends string> {
  readonly element: HTMLElement;
  /** Called at a click on the value that is chosen already. */
  again: (value: T) => void = () => undefined;
  private readonly note: HTMLElement;
  private current: T;

  constructor(
    name: string,
    legend: Words,
    private readonly segments: readonly Segment<T>[],
    current: T,
    chosen: (value: T) => void,
  ) {
    this.current = current;
    this.note = make("p", { class: "fine" });
    const row = make("div", { class: "segments" });
    for (const { value, label } of segments) {
      const input = make("input", { type: "radio", name, value, checked: value === current });
      input.onchange = () => {
        this.show(value);
        chosen(value);
      };
      input.addEventListener("click", () => {
        if (this.current === value) this.again(value);
        this.current = value;
      });
      row.append(make("label", {}, input, make("span", {}, label)));
    }
    this.element = make("fieldset", {}, make("legend", {}, legend), row, this.note);
    this.show(current);
  }

  private show(value: T): void {
    const note = this.segments.find((segment) => segment.value === value)?.note;
    this.note.hidden = note === undefined;
    if (note !== undefined) write(this.note, note);
  }
}
