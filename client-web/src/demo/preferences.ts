/** What the page remembers of a person from one call to the next, in this browser. */
import { chooseLanguage, LANGUAGES, type Language } from "./language.js";

/** What a person has chosen, kept from call to call. */
export interface Preferences {
  name: string;
  /** Null: by the browser's languages. */
  language: Language | null;
  /** The chosen devices, by their ids at this origin; empty: the browser's choice. */
  camera: string;
  microphone: string;
  speaker: string;
  /** Whether single keys control the call. */
  shortcuts: boolean;
}

const KEY = "windlass";

/** Reads preferences from a text, which may be anything. */
export function parsePreferences(text: string | null): Preferences {
  let found: Record<string, unknown> = {};
  try {
    found = Object(JSON.parse(text ?? "{}")) as Record<string, unknown>;
  } catch {
    // What cannot be read is forgotten.
  }
  const string = (name: string, max: number) => {
    const value = found[name];
    return typeof value === "string" ? value.slice(0, max) : "";
  };
  return {
    name: string("name", 64),
    language: LANGUAGES.find((language) => language === found["language"]) ?? null,
    camera: string("camera", 200),
    microphone: string("microphone", 200),
    speaker: string("speaker", 200),
    shortcuts: found["shortcuts"] !== false,
  };
}

/** The preferences of now. */
export const preferences: Preferences = parsePreferences(read());

/** Changes and keeps some of them. */
export function prefer(changes: Partial<Preferences>): void {
  Object.assign(preferences, changes);
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // A browser that keeps nothing forgets them with the page.
  }
}

function read(): string | null {
  try {
    return globalThis.localStorage?.getItem(KEY) ?? null;
  } catch {
    return null;
  }
}

/** The language of a page: that of its address (`lang`), the person's choice, or the browser's. */
export function languageOf({ searchParams }: URL): Language {
  const asked = LANGUAGES.find((language) => language === searchParams.get("lang"));
  return asked ?? preferences.language ?? chooseLanguage(navigator.languages);
}
