/** What is around the stage of a call: the bar above it, and what it says while nobody else is there. */
import { brand, icon, make } from "./dom.js";
import { copyButton } from "./invitation.js";
import { words } from "./language.js";

/** What a call is called, and who may come by its link. */
export interface Named {
  readonly room: string;
  /** In a loopback call, the person sees nobody but themselves. */
  readonly loopback: boolean;
  /** Guests need an invitation of their own. */
  readonly closed: boolean;
}

/** The bar. `parts`: what changes in it. */
export function bar({ room, loopback, closed }: Named, ...parts: HTMLElement[]): HTMLElement {
  return make(
    "header",
    { class: "bar" },
    brand(),
    make("h1", { class: "room" }, loopback ? words("alone") : room),
    ...parts,
    loopback ? null : copyButton("quiet", room, closed),
  );
}

/** What the empty stage says. */
export function emptyStage({ room, loopback, closed }: Named): HTMLElement {
  return make(
    "div",
    { class: "empty" },
    icon("people"),
    make("h2", {}, words(loopback ? "alone.soon" : "empty")),
    make("p", {}, words(loopback ? "alone.soon.what" : closed ? "empty.closed" : "empty.what")),
    loopback ? null : copyButton("primary", room, closed),
  );
}
