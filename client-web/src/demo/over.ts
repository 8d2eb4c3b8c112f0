/** The screens beside a call: while one waits to be let in, and when it is over. */
import type { WindlassError } from "../sdk/index.js";
import { brand, icon, make } from "./dom.js";
import { saidOf, titleOf } from "./failure.js";
import { words } from "./language.js";

/** A moderator must admit this participant. */
export function waitingScreen(cancelled: () => void): HTMLElement {
  const cancel = make("button", { class: "secondary", type: "button" }, words("waiting.cancel"));
  cancel.onclick = cancelled;
  return make(
    "main",
    { class: "over calm" },
    brand(),
    make(
      "div",
      { class: "card" },
      make("span", { class: "spinner", "aria-hidden": "true" }),
      make("h1", {}, words("waiting")),
      make("p", { role: "status" }, words("waiting.what")),
      make("div", { class: "actions" }, cancel),
    ),
  );
}

/** The call is over. `again` and `back` are called by its buttons, of which the first gets the focus. */
export function overScreen(reason: WindlassError, again: () => void, back: () => void): HTMLElement {
  const kind = reason.code === "left" ? "calm" : "trouble";
  const title = titleOf(reason.code) ?? words("over");
  const { message, hint } = saidOf(reason);
  const redundant = kind === "calm" || `${title}.` === message;
  const button = (style: string, label: ReturnType<typeof words>, press: () => void) => {
    const made = make("button", { class: style, type: "button" }, label);
    made.onclick = press;
    return made;
  };
  const first = button("primary", words("over.again"), again);
  queueMicrotask(() => first.focus());
  return make(
    "main",
    { class: `over ${kind}` },
    brand(),
    make(
      "div",
      { class: "card" },
      icon(kind === "calm" ? "leave" : "alert"),
      make("h1", {}, title),
      make("p", { role: "alert" }, redundant ? hint : `${message} ${hint}`),
      make("div", { class: "actions" }, first, button("secondary", words("over.back"), back)),
    ),
  );
}
