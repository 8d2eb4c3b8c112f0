/** A labelled choice from a list. */
import { make } from "./dom.js";
import type { Words } from "./language.js";

/** Makes one. */
export function chooser<T extends string>(
  label: Words,
  choices: readonly (readonly [T, Words])[],
  current: T,
  chosen: (value: T) => void,
): HTMLElement {
  const select = make("select", { "aria-label": label });
  for (const [value, text] of choices) select.append(make("option", { value, selected: value === current }, text));
  select.onchange = () => {
    const found = choices.find(([value]) => value === select.value);
    if (found !== undefined) chosen(found[0]);
  };
  return make("label", { class: "control send" }, make("span", {}, label), select);
}
