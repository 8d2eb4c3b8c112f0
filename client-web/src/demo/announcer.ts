/** What screen readers say: one region, one text at a time, so that nothing is lost and nothing is said twice. */
import { make } from "./dom.js";

/** Texts that come within this time are said together, milliseconds. */
const GATHER_MS = 600;
/** Time after which a text is removed, so that nobody reads it as if it were new, milliseconds. */
const KEEP_MS = 8000;
/** How many texts are said together; of more, only how it has ended would be of use. */
const MAX_TOGETHER = 4;

/** A live region for screen readers, which speaks one text at a time. */
export class Announcer {
  readonly element = make("div", { class: "sr announcer", role: "status", "aria-live": "polite" });
  private readonly waiting = new Map<string, string>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Says a text soon. A later one of the same subject takes its place until then. */
  say(text: string, subject = text): void {
    this.waiting.delete(subject);
    this.waiting.set(subject, text);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.speak(), GATHER_MS);
  }

  /** Takes back what was to be said of a subject. */
  withdraw(subject: string): void {
    this.waiting.delete(subject);
  }

  /** Says nothing any more. */
  close(): void {
    clearTimeout(this.timer);
    this.waiting.clear();
  }

  private speak(): void {
    const texts = [...this.waiting.values()].slice(-MAX_TOGETHER);
    this.waiting.clear();
    this.element.replaceChildren(...texts.map((text) => make("p", {}, text)));
    if (texts.length > 0) this.timer = setTimeout(() => this.element.replaceChildren(), KEEP_MS);
  }
}
