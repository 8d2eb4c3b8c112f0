/** The link to the call, for others. */
import { icon, make } from "./dom.js";
import { type Words, words, write } from "./language.js";
import { roomLink } from "./options.js";

/** Time for which the button says what it has done, milliseconds. */
const TOLD_MS = 4000;

/**
 * A button that copies the link. An access token is its owner's: whoever joined with it would take the owner's place,
 * so the link has none, and `closed` calls say that guests need their own.
 */
export function copyButton(style: string, room: string, closed: boolean): HTMLElement {
  const label = make("span", {}, words("link"));
  const button = make("button", { class: `${style} copy`, type: "button" }, icon("link"), label);
  const told = (text: Words) => {
    write(label, text);
    setTimeout(() => write(label, words("link")), TOLD_MS);
  };
  button.onclick = async () => {
    const link = roomLink(new URL(location.href), room);
    try {
      await navigator.clipboard.writeText(link);
      told(words(closed ? "link.copied.closed" : "link.copied"));
    } catch {
      prompt(String(words("link.prompt")), link);
    }
  };
  return button;
}
