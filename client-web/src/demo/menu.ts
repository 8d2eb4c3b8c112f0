/** A button with a menu: by pointer, and by arrow keys, Home, End, Enter and Escape. */
import { type IconName, icon, make } from "./dom.js";
import { type Words, words, write } from "./language.js";

/** An entry of a menu. */
export interface MenuItem {
  readonly look: IconName;
  /** Read each time when the menu opens. */
  label(): Words;
  /** Whether it is offered now. Default: yes. */
  offered?(): boolean;
  press(): void;
}

/** See the module's head. */
export class Menu {
  private readonly button = make(
    "button",
    {
      class: "control",
      type: "button",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      "aria-label": words("more"),
    },
    icon("more"),
    make("span", {}, words("more")),
  );
  private readonly list = make("div", { class: "menu", role: "menu", "aria-label": words("more"), hidden: true });
  readonly element = make("div", { class: "menu-holder" }, this.button, this.list);

  constructor(private readonly items: readonly MenuItem[]) {
    this.button.onclick = () => (this.list.hidden ? this.open(0) : this.close());
    this.element.onkeydown = (event) => this.onKey(event);
    this.element.addEventListener("focusout", ({ relatedTarget }) => {
      if (!this.element.contains(relatedTarget as Node | null)) this.close();
    });
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
          this.close();
          // What the entry opens gives the focus back to here.
          this.button.focus();
          item.press();
        };
        return entry;
      }),
    );
    this.show(true);
    this.entries.at(at)?.focus();
  }

  private close(): void {
    this.show(false);
  }

  private show(open: boolean): void {
    this.list.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
  }

  private onKey(event: KeyboardEvent): void {
    const { entries } = this;
    const open = !this.list.hidden;
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? -1 : at - 1,
      Home: 0,
      End: -1,
    };
    if (event.key === "Escape" && open) {
      this.close();
      this.button.focus();
    } else if (event.key in moves) {
      const to = moves[event.key] as number;
      if (!open) this.open(event.key === "ArrowUp" ? -1 : 0);
      else entries.at(to === entries.length ? 0 : to)?.focus();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Sets the label of a control: what it says beside its icon, and to screen readers where there is no room for that. */
export function relabel(control: HTMLElement, label: Words): void {
  const span = control.querySelector("span");
  if (span !== null) write(span, label);
}
