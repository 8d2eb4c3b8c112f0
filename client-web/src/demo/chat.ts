/**
 * The chat of a call: a panel beside the stage. What is said goes to those who are in the call, and is kept nowhere.
 */
import type { Message, Room } from "../sdk/index.js";
import type { Announcer } from "./announcer.js";
import { icon, make } from "./dom.js";
import { lineOf } from "./failure.js";
import { say, type Words, words } from "./language.js";

const TOPIC = "chat";
/** Max characters of what is said at once. */
const MAX_TEXT = 2000;
/** Max lines that are shown: the oldest go. */
const MAX_LINES = 300;

/** The chat panel, and the button that opens it and counts unread messages. */
export class Chat {
  private readonly unread = make("span", { class: "unread", hidden: true });
  readonly button = make(
    "button",
    { class: "control chat-button", type: "button", "aria-expanded": "false" },
    icon("chat"),
    make("span", {}, words("chat")),
    this.unread,
  );
  private readonly lines = make("ol");
  private readonly log = make(
    "div",
    { class: "log", role: "log", tabIndex: 0, "aria-label": words("chat.said") },
    this.lines,
  );
  private readonly none = make("p", { class: "none" }, words("chat.none"));
  private readonly input = make("input", {
    type: "text",
    name: "text",
    autocomplete: "off",
    maxLength: MAX_TEXT,
    placeholder: words("chat.write"),
    "aria-label": words("chat.write"),
  });
  private readonly form = make(
    "form",
    {},
    this.input,
    make("button", { class: "primary", type: "submit" }, words("chat.send")),
  );
  readonly element = make(
    "aside",
    { class: "chat", hidden: true, "aria-label": words("chat") },
    this.none,
    this.log,
    this.form,
  );
  private readonly ends: (() => void)[];
  private missed = 0;

  constructor(
    private readonly room: Room,
    private readonly announcer: Announcer,
    private readonly failed: (text: string) => void,
  ) {
    this.button.onclick = () => this.toggle();
    this.element.onkeydown = (event) => {
      if (event.key !== "Escape") return;
      this.open(false);
      this.button.focus();
      event.stopPropagation();
    };
    this.form.onsubmit = (event) => {
      event.preventDefault();
      this.send();
    };
    const granted = () => {
      this.form.hidden = !room.may("data");
    };
    granted();
    this.ends = [room.on("message", (message) => this.came(message)), room.on("grants", granted)];
  }

  /** Opens it, with the focus where one writes, or closes it. */
  toggle(): void {
    const opens = this.element.hidden === true;
    this.open(opens);
    if (opens) (this.form.hidden ? this.log : this.input).focus();
  }

  /** Removes the listeners. */
  close(): void {
    for (const end of this.ends) end();
  }

  private open(open: boolean): void {
    this.element.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
    if (!open) return;
    this.missed = 0;
    this.unread.hidden = true;
    this.log.scrollTop = this.log.scrollHeight;
  }

  private came({ topic, from, text }: Message): void {
    if (topic !== TOPIC || text === undefined) return;
    // What another program sends may be longer.
    const said = text.slice(0, MAX_TEXT);
    const name = from.name || say("guest");
    this.add(from.name || words("guest"), said);
    if (!this.element.hidden) return;
    this.missed++;
    this.unread.hidden = false;
    this.unread.textContent = String(this.missed);
    this.announcer.say(say("said.chat", { name, text: said }));
  }

  private send(): void {
    const text = this.input.value.trim();
    if (text === "") return;
    this.input.value = "";
    const line = this.add(words("you"), text);
    this.room.send(TOPIC, text).catch((error: unknown) => {
      line.append(make("span", { class: "unsent" }, words("chat.unsent")));
      this.failed(lineOf(error));
    });
  }

  private add(name: Words | string, text: string): HTMLElement {
    const { lines, log } = this;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    const line = make("li", {}, make("span", { class: "who" }, name), make("span", { class: "text" }, text));
    lines.append(line);
    while (lines.childElementCount > MAX_LINES) lines.firstElementChild?.remove();
    this.none.hidden = true;
    if (atEnd) log.scrollTop = log.scrollHeight;
    return line;
  }
}
