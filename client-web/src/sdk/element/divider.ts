/** The divider between two pictures: a slider that is dragged, or moved by keys. */

/** What a screen reader calls it, unless the page says something else. */
const LABEL = "Divider between the plain and the enhanced picture";
/** Percent that a key moves it. */
const STEP = 5;

/** A slider over two pictures, whose position splits them. */
export class Divider {
  readonly element = document.createElement("div");
  private at = 50;

  /** `stage`: what it lies on; its property `--at` is the divider's place. */
  constructor(private readonly stage: HTMLElement) {
    const { element } = this;
    const attributes = {
      class: "divider",
      part: "divider",
      role: "slider",
      tabindex: "0",
      "aria-label": LABEL,
      "aria-orientation": "horizontal",
      "aria-valuemin": "0",
      "aria-valuemax": "100",
    };
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    const grip = document.createElement("span");
    grip.className = "grip";
    grip.textContent = "⇔";
    grip.setAttribute("aria-hidden", "true");
    element.append(grip);
    element.onpointerdown = (event) => {
      element.setPointerCapture(event.pointerId);
      event.preventDefault();
      element.focus({ preventScroll: true });
    };
    element.onpointermove = (event) => {
      if (!element.hasPointerCapture(event.pointerId)) return;
      const box = stage.getBoundingClientRect();
      this.place(((event.clientX - box.left) / box.width) * 100);
    };
    element.onkeydown = (event) => this.key(event);
    this.place(this.at);
  }

  /** What a screen reader calls it; null: in English. */
  set label(label: string | null) {
    this.element.setAttribute("aria-label", label ?? LABEL);
  }

  /** The divider's place, percent of the width. */
  get position(): number {
    return this.at;
  }

  /** Moves it to `percent` of the width. */
  place(percent: number): void {
    if (!Number.isFinite(percent)) return;
    this.at = Math.min(100, Math.max(0, percent));
    this.stage.style.setProperty("--at", `${this.at}%`);
    this.element.setAttribute("aria-valuenow", String(Math.round(this.at)));
    this.element.setAttribute("aria-valuetext", `${Math.round(this.at)} %`);
  }

  private key(event: KeyboardEvent): void {
    const moves: Record<string, number> = {
      ArrowLeft: this.at - STEP,
      ArrowDown: this.at - STEP,
      ArrowRight: this.at + STEP,
      ArrowUp: this.at + STEP,
      Home: 0,
      End: 100,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.place(to);
  }
}
