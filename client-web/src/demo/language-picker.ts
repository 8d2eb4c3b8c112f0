/** The choice of the page's language. */
import { make } from "./dom.js";
import { LANGUAGES, type Language, language, MESSAGES, setLanguage, words } from "./language.js";
import { prefer } from "./preferences.js";

/** Makes one. */
export function languagePicker(): HTMLElement {
  const select = make("select", { class: "language", "aria-label": words("language") });
  for (const value of LANGUAGES) {
    // Each in its own language: whoever looks for it may not read the others.
    const option = make("option", { value, selected: value === language() }, MESSAGES[value]["language.name"]);
    option.lang = value;
    select.append(option);
  }
  select.onchange = () => {
    setLanguage(select.value as Language);
    prefer({ language: language() });
  };
  return select;
}
