/** The bar of controls below the stage. */
import type { InputKind } from "../sdk/devices/errors.js";
import type { Layers, Room, Rung } from "../sdk/index.js";
import { chooser } from "./chooser.js";
import { type IconName, icon, make } from "./dom.js";
import { InputButton } from "./input-button.js";
import { type Words, words } from "./language.js";
import type { Layout } from "./layout.js";
import { Menu, type MenuItem, relabel } from "./menu.js";
import type { Sending } from "./sending.js";

/** What the controls do. */
export interface ControlsHost {
  share(): void;
  toggleLayout(): void;
  toggleFigures(): void;
  figuresShown(): boolean;
  settings(): void;
  /** In a call with oneself: the low layer that is shown. */
  setRung(rung: Rung): void;
  sendAgain(): void;
}

const KINDS = ["microphone", "camera"] as const;

/** The buttons of a call: camera, microphone, sharing, layout, menu and leaving. */
export class Controls {
  readonly element: HTMLElement;
  private readonly inputs: Record<InputKind, InputButton>;
  private readonly layout: HTMLButtonElement;
  private readonly shareButton: HTMLButtonElement;
  /** Shown instead of the buttons of camera and microphone after a moderator stopped sending. */
  private readonly again = make("button", { class: "control again", type: "button", hidden: true }, words("again"));

  constructor(
    room: Room,
    private readonly sending: Sending,
    private readonly host: ControlsHost,
    { loopback, rung, layers, panels }: { loopback: boolean; rung: Rung; layers: Layers; panels: HTMLElement[] },
  ) {
    const input = (kind: InputKind) => new InputButton(kind, () => sending.set(kind, !sending.on(kind)));
    this.inputs = { microphone: input("microphone"), camera: input("camera") };
    this.layout = this.button("speaker", words("layout.speaker"), () => host.toggleLayout(), "layout");
    this.shareButton = this.button("screen", words("share"), () => host.share(), "share");
    this.shareButton.setAttribute("aria-pressed", "false");
    this.shareButton.hidden = !room.may("publish") || navigator.mediaDevices?.getDisplayMedia === undefined;
    this.again.onclick = () => host.sendAgain();
    const leave = this.button("leave", words("leave"), () => room.leave(), "leave");
    this.element = make(
      "nav",
      { class: "controls", "aria-label": words("controls") },
      this.inputs.microphone.element,
      this.inputs.camera.element,
      loopback ? this.rungChoice(layers, rung) : this.shareButton,
      this.again,
      loopback ? null : this.layout,
      ...(loopback ? [] : panels),
      new Menu(this.items()).element,
      leave,
    );
  }

  /** Shows what is on and off. */
  dress(): void {
    const { sending, inputs } = this;
    for (const kind of KINDS) {
      inputs[kind].element.hidden = !sending.has(kind);
      inputs[kind].show(sending.on(kind));
    }
  }

  /** Offers the other layout. */
  showLayout(layout: Layout): void {
    const to = layout === "grid" ? "speaker" : "grid";
    if (this.layout.dataset["to"] === to) return;
    this.layout.dataset["to"] = to;
    this.layout.querySelector("svg")?.replaceWith(icon(to));
    relabel(this.layout, words(`layout.${to}`));
  }

  /** Shows whether a screen is shared; `busy`: the person chooses one. */
  showShare(shares: boolean, busy: boolean): void {
    this.shareButton.disabled = busy;
    this.shareButton.setAttribute("aria-pressed", String(shares));
    relabel(this.shareButton, words(shares ? "share.stop" : "share"));
  }

  /** Offers to send again what a moderator had stopped. */
  offerAgain(offer: boolean): void {
    this.again.hidden = !offer;
  }

  private items(): MenuItem[] {
    const { host } = this;
    return [
      { look: "settings", label: () => words("settings"), press: () => host.settings() },
      {
        look: "info",
        label: () => words(host.figuresShown() ? "figures.hide" : "figures.show"),
        press: () => host.toggleFigures(),
      },
      {
        look: "expand",
        label: () => words(document.fullscreenElement === null ? "whole" : "whole.end"),
        offered: () => document.fullscreenEnabled,
        press: () => void toggleWhole().catch(() => undefined),
      },
    ];
  }

  private rungChoice(layers: Layers, rung: Rung): HTMLElement {
    const choices: [Rung, Words][] = [["q+", words("rung.q")]];
    if (layers !== "q") choices.push(["h+", words("rung.h")]);
    return chooser(words("rung"), choices, rung, (value) => this.host.setRung(value));
  }

  private button(look: IconName, label: Words, press: () => void, style: string): HTMLButtonElement {
    const button = make("button", { class: `control ${style}`, type: "button" }, icon(look), make("span", {}, label));
    button.onclick = press;
    return button;
  }
}

/** The whole page in full screen, or no longer. */
async function toggleWhole(): Promise<void> {
  if (document.fullscreenElement !== null) await document.exitFullscreen();
  else await document.documentElement.requestFullscreen();
}
