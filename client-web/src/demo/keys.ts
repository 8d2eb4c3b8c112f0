/** Single keys that control a call. They can be switched off in the settings, as some people speak to their machine. */
import type { MessageKey } from "./language.js";
import { preferences } from "./preferences.js";

/** What a key does, and by which it is done. */
export const KEYS = {
  m: "key.microphone",
  c: "key.camera",
  s: "key.share",
  t: "key.chat",
  h: "key.hand",
  g: "key.layout",
  p: "key.pin",
  f: "key.whole",
  i: "key.figures",
  PageDown: "key.next",
  PageUp: "key.previous",
} as const satisfies Record<string, MessageKey>;

export type Key = keyof typeof KEYS;

/** What is needed of an event of the keyboard. */
export type Press = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "repeat">;

/** The key of the call that was pressed; null: none. `target`: what has the focus. */
export function keyOf(press: Press, target: { tagName: string; isContentEditable?: boolean } | null): Key | null {
  if (press.ctrlKey || press.metaKey || press.altKey || press.repeat) return null;
  const writes = /^(INPUT|SELECT|TEXTAREA)$/.test(target?.tagName ?? "") || target?.isContentEditable === true;
  if (writes) return null;
  const key = press.key.length === 1 ? press.key.toLowerCase() : press.key;
  return key in KEYS ? (key as Key) : null;
}

/** Calls `press` at each key of the call. The returned function ends that. */
export function listenForKeys(press: (key: Key) => void): () => void {
  const listener = (event: KeyboardEvent) => {
    // What is open above the call has keys of its own.
    if (!preferences.shortcuts || document.querySelector("dialog[open]") !== null) return;
    const key = keyOf(event, event.target as HTMLElement | null);
    if (key === null) return;
    event.preventDefault();
    press(key);
  };
  addEventListener("keydown", listener);
  return () => removeEventListener("keydown", listener);
}
