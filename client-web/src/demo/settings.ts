/** The settings during a call: devices, what is sent, language, and keys. */
import type { Layers, Room } from "../sdk/index.js";
import { chooser } from "./chooser.js";
import { DevicePickers } from "./device-pickers.js";
import { icon, make } from "./dom.js";
import { KEYS } from "./keys.js";
import { words } from "./language.js";
import { languagePicker } from "./language-picker.js";
import { Meter } from "./meter.js";
import { prefer, preferences } from "./preferences.js";
import type { Sending } from "./sending.js";
import { soundButton } from "./test-sound.js";

const LAYERS = [
  ["qhf", words("layers.qhf")],
  ["qh", words("layers.qh")],
  ["q", words("layers.q")],
] as const satisfies readonly (readonly [Layers, unknown])[];

/** Opens the settings above the call. `failed` gets what cannot be changed. */
export function openSettings(room: Room, sending: Sending, failed: (error: unknown) => void): void {
  const pickers = new DevicePickers(room, failed);
  const meter = new Meter();
  if (room.microphone.active) meter.watch(room.microphone);
  const close = make("button", { class: "chip", type: "button", "aria-label": words("close") }, icon("close"));
  const dialog = make(
    "dialog",
    { class: "settings", "aria-label": words("settings") },
    make("header", {}, make("h2", {}, words("settings")), close),
    section(words("devices"), pickers.element, level(meter), soundButton(room.devices, failed)),
    sending.has("camera")
      ? section(
          words("layers"),
          chooser(words("layers.choose"), LAYERS, sending.sent, (layers) => sending.setLayers(layers)),
        )
      : null,
    section(words("language"), languagePicker()),
    section(words("keys"), shortcuts(), keyList()),
  );
  close.onclick = () => dialog.close();
  dialog.onclick = (event) => {
    // Its own box has no padding: a click on it is one beside it.
    if (event.target === dialog) dialog.close();
  };
  dialog.onclose = () => {
    pickers.close();
    meter.close();
    dialog.remove();
  };
  document.body.append(dialog);
  dialog.showModal();
}

function section(title: Node | ReturnType<typeof words>, ...content: HTMLElement[]): HTMLElement {
  return make("section", {}, make("h3", {}, title), ...content);
}

function level(meter: Meter): HTMLElement {
  return make("div", { class: "own-level" }, icon("mic"), meter.element);
}

function shortcuts(): HTMLElement {
  const box = make("input", { type: "checkbox", name: "shortcuts", checked: preferences.shortcuts });
  box.onchange = () => prefer({ shortcuts: box.checked });
  return make("label", { class: "check" }, box, words("keys.on"));
}

function keyList(): HTMLElement {
  const rows = Object.entries(KEYS).flatMap(([key, text]) => [
    make("dt", {}, make("kbd", {}, key.length === 1 ? key.toUpperCase() : key)),
    make("dd", {}, words(text)),
  ]);
  return make("dl", { class: "keys" }, ...rows);
}
