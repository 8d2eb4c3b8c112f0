/** A box that a button opens and closes. Escape closes it too, and a focus that leaves both. */
import { make } from "./dom.js";

export class Popover {
  /** The button with the box. */
  readonly element: HTMLElement;

  /** `opened`: called when it has been opened by the button; give the focus to what is in it. */
  constructor(
    private readonly button: HTMLButtonElement,
    private readonly box: HTMLElement,
    opened: () => void,
  ) {
    box.hidden = true;
    button.setAttribute("aria-expanded", "false");
    this.element = make("div", { class: "menu-holder" }, button, box);
    button.onclick = () => {
      this.show(!this.isOpen);
      if (this.isOpen) opened();
    };
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.isOpen) return;
      this.show(false);
      this.button.focus();
      event.preventDefault();
      event.stopPropagation();
    });
    this.element.addEventListener("focusout", ({ relatedTarget }) => {
      if (!this.element.contains(relatedTarget as Node | null)) this.show(false);
    });
  }

  get isOpen(): boolean {
    return !this.box.hidden;
  }

  show(open: boolean): void {
    this.box.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
  }
}
