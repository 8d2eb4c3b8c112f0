/** The button that switches the own camera or microphone on and off. */
import type { InputKind } from "../sdk/devices/errors.js";
import { icon, make } from "./dom.js";
import { words, write } from "./language.js";

const LOOKS = {
  camera: { on: "camera", off: "camera-off" },
  microphone: { on: "mic", off: "mic-off" },
} as const;

export class InputButton {
  readonly element = make("button", { class: "control mute", type: "button" });

  constructor(
    private readonly kind: InputKind,
    private readonly press: () => Promise<void> | void,
  ) {
    this.element.dataset["input"] = kind;
    this.element.onclick = () => void this.pressed();
    this.show(true);
  }

  /** Shows whether it is on. */
  show(on: boolean): void {
    const { element, kind } = this;
    element.classList.toggle("off", !on);
    write(element, words(on ? `${kind}.on` : `${kind}.off`), "aria-label");
    element.replaceChildren(icon(LOOKS[kind][on ? "on" : "off"]), make("span", {}, words(kind)));
  }

  private async pressed(): Promise<void> {
    await this.press();
  }
}
