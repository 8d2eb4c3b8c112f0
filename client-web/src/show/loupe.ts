/** A loupe: the same small place of both pictures, three times as large as on the page, side by side. */
import { make } from "../demo/dom.js";
import { type Words, words } from "../demo/language.js";

/** How much it enlarges. */
const TIMES = 3;
/** Size of each half, CSS pixels. */
const HALF = { width: 300, height: 225 };
/** Part of the picture that an arrow key moves it by. */
const KEY = 0.02;

/** The loupe: two enlarged views of the place that the pointer is at. */
export class Loupe {
  readonly element: HTMLElement;
  readonly halves = [this.half(words("show.plain")), this.half(words("show.rebuilt"))] as const;
  private readonly frame = make("span", { class: "loupe-frame", "aria-hidden": "true" });
  /** The enlarged place, as parts of the picture's width and height. */
  private at = { x: 0.5, y: 0.5 };
  private handle = 0;

  /**
   * `stage`: what the pictures fill, which is pointed at; `pictures`: the plain and the rebuilt one, null while there
   * is none.
   */
  constructor(
    private readonly stage: HTMLElement,
    private readonly pictures: () => readonly [HTMLVideoElement | null, HTMLVideoElement | null],
  ) {
    const { halves } = this;
    this.element = make(
      "div",
      { class: "loupe", tabIndex: 0, role: "group", "aria-label": words("show.loupe") },
      ...halves.map(({ figure }) => figure),
    );
    stage.append(this.frame);
    stage.addEventListener("pointermove", (event) => this.point(event));
    stage.addEventListener("pointerdown", (event) => this.point(event));
    this.element.onkeydown = (event) => this.key(event);
    const draw = () => {
      this.draw();
      this.handle = requestAnimationFrame(draw);
    };
    draw();
  }

  /** Puts it at a place, parts of the picture's width and height. */
  place(x: number, y: number): void {
    const within = (part: number) => Math.min(1, Math.max(0, part));
    this.at = { x: within(x), y: within(y) };
  }

  close(): void {
    cancelAnimationFrame(this.handle);
    this.frame.remove();
  }

  private half(name: Words) {
    const canvas = make("canvas", { ...HALF });
    const scale = Math.min(2, globalThis.devicePixelRatio || 1);
    Object.assign(canvas, { width: HALF.width * scale, height: HALF.height * scale });
    return { canvas, figure: make("figure", {}, canvas, make("figcaption", {}, name)) };
  }

  private point({ clientX, clientY }: PointerEvent): void {
    const box = this.stage.getBoundingClientRect();
    this.place((clientX - box.left) / box.width, (clientY - box.top) / box.height);
  }

  private key(event: KeyboardEvent): void {
    const { x, y } = this.at;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [x - KEY, y],
      ArrowRight: [x + KEY, y],
      ArrowUp: [x, y - KEY],
      ArrowDown: [x, y + KEY],
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.place(...to);
  }

  private draw(): void {
    const box = this.stage.getBoundingClientRect();
    if (box.width === 0) return;
    // The part of the picture that a half shows.
    const part = { width: HALF.width / TIMES / box.width, height: HALF.height / TIMES / box.height };
    const left = Math.min(1 - part.width, Math.max(0, this.at.x - part.width / 2));
    const top = Math.min(1 - part.height, Math.max(0, this.at.y - part.height / 2));
    for (const [side, value] of Object.entries({ left, top, ...part })) {
      this.frame.style.setProperty(side, `${value * 100}%`);
    }
    this.pictures().forEach((video, i) => {
      const context = this.halves[i]?.canvas.getContext("2d", { alpha: false }) ?? null;
      if (context === null || video === null || video.videoWidth === 0) return;
      const { canvas } = context;
      const [width, height] = [video.videoWidth, video.videoHeight];
      const place = [left * width, top * height, part.width * width, part.height * height] as const;
      context.drawImage(video, ...place, 0, 0, canvas.width, canvas.height);
    });
  }
}
