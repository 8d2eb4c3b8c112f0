/** A meter of the own microphone, which measures while it is in the page. */
import type { LocalInput } from "../sdk/index.js";
import { make } from "./dom.js";
import { words } from "./language.js";

export class Meter {
  private readonly bar = make("span", { class: "level" });
  readonly element = make(
    "span",
    {
      class: "meter",
      role: "meter",
      "aria-label": words("meter"),
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": 0,
    },
    this.bar,
  );
  private end: (() => void) | null = null;

  /** Shows the level of a microphone from now on. */
  watch(microphone: LocalInput): void {
    this.close();
    this.end = microphone.on("level", (level) => this.show(level));
    this.show(microphone.level);
  }

  /** Stops measuring. */
  close(): void {
    this.end?.();
    this.end = null;
    this.show(0);
  }

  private show(level: number): void {
    this.bar.style.transform = `scaleX(${level.toFixed(3)})`;
    this.element.setAttribute("aria-valuenow", String(Math.round(level * 100)));
  }
}
