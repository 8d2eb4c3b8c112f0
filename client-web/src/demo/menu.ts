/** A button with a menu: by pointer, and by arrow keys, Home, End, Enter and Escape. */
import { type IconName, icon, make } from "./dom.js";
import { type Words, words, write } from "./language.js";
import { Popover } from "./popover.js";

/** An entry of a menu. */
export interface MenuItem {
  readonly look: IconName;
  /** Read each time when the menu opens. */
  label(): Words;
  /** Whether it is offered now. Default: yes. */
  offered?(): boolean;
  press(): void;
}

/** The menu "More" of a call, with its button. */
export class Menu {
  private readonly button = make(
    "button",
    {
      class: "control",
      type: "button",
      "aria-haspopup": "menu",
      "aria-label": words("more"),
    },
    icon("more"),
    make("span", {}, words("more")),
  );
  private readonly list = make("div", { class: "menu", role: "menu", "aria-label": words("more") });
  private readonly popover = new Popover(this.button, this.list, () => this.open(0));
  readonly element = this.popover.element;

  constructor(private readonly items: readonly MenuItem[]) {
    this.element.onkeydown = (event) => this.onKey(event);
  }

  private get entries(): HTMLElement[] {
    return [...this.list.querySelectorAll<HTMLElement>("[role=menuitem]")];
  }

  private open(at: number): void {
    const offered = this.items.filter((item) => item.offered?.() !== false);
    this.list.replaceChildren(
      ...offered.map((item) => {
        const entry = make("button", { type: "button", role: "menuitem", tabIndex: -1 }, icon(item.look), item.label());
        entry.onclick = () => {
          this.popover.show(false);
          // What the entry opens gives the focus back to here.
          this.button.focus();
          item.press();
        };
        return entry;
      }),
    );
    this.popover.show(true);
    this.entries.at(at)?.focus();
  }

  private onKey(event: KeyboardEvent): void {
    const { entries } = this;
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? -1 : at - 1,
      Home: 0,
      End: -1,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    if (!this.popover.isOpen) this.open(event.key === "ArrowUp" ? -1 : 0);
    else entries.at(to === entries.length ? 0 : to)?.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Sets the label of a control: what it says beside its icon, and to screen readers where there is no room for that. */
export function relabel(control: HTMLElement, label: Words): void {
  const span = control.querySelector("span");
  if (span !== null) write(span, label);
}
