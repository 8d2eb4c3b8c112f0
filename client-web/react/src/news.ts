/** Who has come and gone, in words for screen readers. */
import type { Room } from "windlass-client";

/** Time for which news are gathered before they are said, milliseconds: a reader breaks off for what comes next. */
const GATHER_MS = 500;

/** The news of a call. For one listener. */
export class News {
  private text = "";
  private came: string[] = [];
  private left: string[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly call: Room | null) {}

  /** The latest news; empty before the first. */
  readonly get = (): string => this.text;

  readonly subscribe = (notify: () => void): (() => void) => {
    const { call } = this;
    if (call === null) return () => undefined;
    const gather = (names: string[], name: string) => {
      names.push(name);
      this.timer ??= setTimeout(() => {
        this.say();
        notify();
      }, GATHER_MS);
    };
    const ends = [call.on("participantLeft", ({ name }) => gather(this.left, name))];
    // Those who are there already are announced after the task in which the SDK has joined, and before this one.
    const start = setTimeout(() => {
      ends.push(call.on("participant", ({ name }) => gather(this.came, name)));
    }, 0);
    return () => {
      clearTimeout(start);
      clearTimeout(this.timer);
      this.timer = undefined;
      for (const end of ends) end();
    };
  };

  private say(): void {
    const came = this.came.splice(0);
    const left = this.left.splice(0);
    const said = [];
    if (came.length > 0) said.push(`${listed(came)} joined.`);
    if (left.length > 0) said.push(`${listed(left)} left.`);
    this.text = said.join(" ");
    this.timer = undefined;
  }
}

/** Names as a sentence has them. */
const listed = (names: readonly string[]): string => new Intl.ListFormat("en").format(names);
