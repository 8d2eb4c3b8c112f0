/** The button that is shown while the browser plays no sound, for want of a click. */
import type { Room } from "../sdk/index.js";
import { icon, make } from "./dom.js";
import { words } from "./language.js";

export class HearButton {
  readonly element = make(
    "button",
    { class: "primary hear", type: "button", hidden: true },
    icon("sound"),
    words("sound.hear"),
  );
  readonly close: () => void;

  constructor({ sound }: Room) {
    const show = () => {
      this.element.hidden = !sound.blocked;
    };
    // Any other click on the page helps too.
    this.element.onclick = () => void sound.start().catch(() => undefined);
    this.close = sound.on("change", show);
    show();
  }
}
