/** The line above the stage that says what happens to the call. */
import { make } from "./dom.js";
import { type Words, write } from "./language.js";

export class Banner {
  readonly element = make("div", { class: "banner", role: "status", hidden: true });
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Says something, for a time or until something else is said. `working`: it goes on by itself. */
  say(text: Words | string, { working = false, forMs }: { working?: boolean; forMs?: number } = {}): void {
    const said = make("span");
    if (typeof text === "string") said.textContent = text;
    else write(said, text);
    this.element.replaceChildren(working ? make("span", { class: "spinner", "aria-hidden": "true" }) : "", said);
    this.element.hidden = false;
    clearTimeout(this.timer);
    if (forMs === undefined) return;
    this.timer = setTimeout(() => {
      this.element.hidden = true;
    }, forMs);
  }
}
