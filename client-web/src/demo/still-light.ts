/** The light in the bar that says that full-size pixels of the camera leave this page. */
import type { Room } from "../sdk/index.js";
import { icon, make } from "./dom.js";
import { words } from "./language.js";

/** Interval of checks whether stills are sent, milliseconds. */
const CHECK_MS = 500;
/** Time for which a sent still is indicated, milliseconds. */
const SHOWN_MS = 3000;

/** A light that shows while stills of the camera are being sent. */
export class StillLight {
  readonly element = make("div", { class: "stills", role: "status", hidden: true });
  private timer: ReturnType<typeof setInterval> | undefined;
  private sent = 0;
  private at = Number.NEGATIVE_INFINITY;
  private lit = false;

  /** Begins to look. */
  watch(room: Room): void {
    this.timer = setInterval(() => this.look(room), CHECK_MS);
  }

  close(): void {
    clearInterval(this.timer);
  }

  private look(room: Room): void {
    const now = performance.now();
    const sent = room.published.reduce((sum, { stills }) => sum + (stills?.regions.sent ?? 0), 0);
    if (sent > this.sent) this.at = now;
    this.sent = sent;
    const lit = now - this.at < SHOWN_MS;
    if (lit === this.lit) return; // screen readers announce a change once
    this.lit = lit;
    this.element.hidden = !lit;
    this.element.replaceChildren(...(lit ? [icon("camera"), make("span", {}, words("stills.sending"))] : []));
  }
}
