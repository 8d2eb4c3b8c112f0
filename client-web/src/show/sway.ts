/** The handle of the split picture sways slowly, so that people see that it can be moved, until somebody does. */

/** One swing there and back, milliseconds, and how far it goes to each side, percent of the width. */
const [PERIOD_MS, REACH] = [10_000, 15];

/** What is swayed: a `<windlass-video>`. */
export interface Swayed extends EventTarget {
  split: number;
}

/** The divider's place `ms` after the beginning, which is the middle. */
export const placeAt = (ms: number): number => 50 + REACH * Math.sin((2 * Math.PI * ms) / PERIOD_MS);

/** Sways the divider of a split picture until somebody moves it. */
export class Sway {
  private state: "waits" | "sways" | "over" = "waits";

  /** `still`: the person wants no motion. */
  constructor(
    private readonly video: Swayed,
    private readonly still: boolean,
    private readonly frame: (draw: (now: number) => void) => void = (draw) => requestAnimationFrame(draw),
  ) {
    const end = () => {
      this.state = "over";
    };
    for (const name of ["pointerdown", "focusin"]) video.addEventListener(name, end);
  }

  /** Begins, once. */
  begin(): void {
    if (this.state !== "waits" || this.still) return;
    this.state = "sways";
    let from: number | null = null;
    const draw = (now: number) => {
      if (this.state !== "sways") return;
      from ??= now;
      this.video.split = placeAt(now - from);
      this.frame(draw);
    };
    this.frame(draw);
  }
}
