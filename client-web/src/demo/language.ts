/** The languages of the page: their texts (`messages`), and elements whose text follows the language. */
import de from "./messages/de.json" with { type: "json" };
import en from "./messages/en.json" with { type: "json" };

/** The name of a text. */
export type MessageKey = keyof typeof en;

/** The texts by language. A new language is a file of texts, and a line here and in `failure.ts`. */
export const MESSAGES = { en, de } satisfies Record<string, Record<MessageKey, string>>;

export type Language = keyof typeof MESSAGES;

export const LANGUAGES = Object.keys(MESSAGES) as Language[];

/** What is put into the places of a text, such as `{name}`. */
export type Values = Readonly<Record<string, string | number | Words>>;

let current: Language = "en";

/** A text of the page, in whichever language is chosen when it is read. */
export class Words {
  constructor(
    readonly key: MessageKey,
    readonly values: Values = {},
  ) {}

  toString(): string {
    return fill(MESSAGES[current][this.key], this.values);
  }
}

/** A text, for an element that follows the language. */
export const words = (key: MessageKey, values?: Values): Words => new Words(key, values);

/** A text as it is now. */
export const say = (key: MessageKey, values?: Values): string => words(key, values).toString();

/** Puts values into the places of a text. */
export function fill(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => (name in values ? String(values[name]) : place));
}

/** The first of the wanted languages, such as `de-AT`, that the page has. */
export function chooseLanguage(wanted: readonly string[]): Language {
  for (const tag of wanted) {
    const found = LANGUAGES.find((language) => language === tag.toLowerCase().split("-")[0]);
    if (found !== undefined) return found;
  }
  return "en";
}

/** The chosen language. */
export const language = (): Language => current;

/** The texts of elements, by attribute; empty: of the element itself. */
const shown = new WeakMap<Element, Map<string, Words>>();

/** Sets the text of an element, or of one of its attributes, which then follows the language. */
export function write(element: Element, text: Words, attribute = ""): void {
  const of = shown.get(element) ?? new Map<string, Words>();
  shown.set(element, of);
  of.set(attribute, text);
  element.toggleAttribute("data-words", true);
  put(element, text, attribute);
}

/** Sets the language of the page, and writes again what is shown. */
export function setLanguage(language: Language): void {
  current = language;
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-words]")) {
    for (const [attribute, text] of shown.get(element) ?? []) put(element, text, attribute);
  }
}

function put(element: Element, text: Words, attribute: string): void {
  if (attribute === "") element.textContent = String(text);
  else element.setAttribute(attribute, String(text));
}
