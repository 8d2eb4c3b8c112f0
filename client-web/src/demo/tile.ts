/** The tile of a participant, or of a screen: its `<windlass-video>`, name, buttons, and the figures of engineers. */
import type { NativeReason, Participant, RemoteVideoTrack, TrackStats, View } from "../sdk/index.js";
import { WindlassVideo } from "../sdk/index.js";
import { QualityBars } from "./bars.js";
import { type IconName, icon, make, sign } from "./dom.js";
import { figureRows, madeOf, size } from "./figures.js";
import { canFloat, followFloating, toggleFloating } from "./floating.js";
import { say, type Words, words, write } from "./language.js";
import { barsOf } from "./quality.js";
import { raisesHand } from "./reactions.js";

const VIEWS: readonly View[] = ["enhanced", "split", "plain"];

/** What a tile shows. */
export interface Shown {
  readonly participant: Participant;
  readonly source: "camera" | "screen";
  readonly name: Words | string;
}

/** A tile: the picture of a participant or of a screen, with its name, buttons and figures. */
export class Tile {
  readonly element: HTMLElement;
  readonly screen: boolean;
  /** When who it shows began to speak last, milliseconds; 0: never. */
  spokeAt = 0;
  private readonly video: WindlassVideo;
  private readonly bars = new QualityBars();
  private readonly notice = make("p", { class: "notice" });
  private readonly badge = make("span", { class: "badge" });
  private readonly facts = make("dl", { class: "facts" });
  private readonly sides = {
    left: make("span", { slot: "left", class: "side" }),
    right: make("span", { slot: "right", class: "side" }),
  };
  private readonly views = new Map<View, HTMLButtonElement>();
  private readonly silent = sign("silent", "mic-off", words("tile.muted"));
  private readonly hand = sign("raised-hand", "hand", words("tile.hand"));
  private readonly pin: HTMLButtonElement;
  private readonly endings: (() => void)[] = [];
  private track: RemoteVideoTrack | null = null;
  private endTrack: (() => void)[] = [];

  /**
   * `adaptive`: the server learns how large the tile is. `pinned` is called when the tile is to be large, or no longer.
   */
  constructor(
    readonly shown: Shown,
    view: View,
    adaptive: boolean,
    pinned: () => void,
  ) {
    const { participant, source, name } = shown;
    this.screen = source === "screen";
    this.video = source === "camera" ? participant.element : new WindlassVideo();
    this.video.setAttribute("source", source);
    this.video.participant = participant;
    this.video.setAttribute("name", String(name));
    this.video.toggleAttribute("fixed-size", !adaptive);
    write(this.video, words("tile.divider"), "divider-label");
    this.video.append(this.sides.left, this.sides.right);
    this.pin = this.button("pin", words("tile.pin", { name }), pinned);
    this.pin.setAttribute("aria-pressed", "false");
    const float = this.button("float", words("tile.float", { name }), () => void this.float());
    float.hidden = !canFloat();
    const whole = this.button("expand", words("tile.whole", { name }), () => void this.toggleFullScreen());
    whole.hidden = !document.fullscreenEnabled;
    const nameplate = make("span", { class: "nameplate" }, this.silent, make("span", { class: "name" }, name));
    nameplate.append(this.bars.element);
    const element = make("section", { class: "tile" }, this.video);
    element.append(
      make("div", { class: "tile-top" }, this.switcher(name), this.pin, float, whole),
      this.hand,
      this.facts,
      this.notice,
      make("div", { class: "tile-bottom" }, nameplate, this.badge),
    );
    if (typeof name === "string") element.setAttribute("aria-label", name);
    else write(element, name, "aria-label");
    this.element = element;
    const dress = () => this.dress();
    const state = () => {
      dress();
      void followFloating(this.video).catch(() => undefined);
    };
    this.video.addEventListener("state", state);
    this.endings.push(participant.on("change", dress), () => this.video.removeEventListener("state", state));
    this.setView(view);
  }

  /** Shows the enhanced picture, the plain one, or both side by side. */
  setView(view: View): void {
    this.video.view = view;
    for (const [value, button] of this.views) button.setAttribute("aria-pressed", String(value === view));
    this.dress();
  }

  /** Shows whether it is pinned. */
  setPinned(pinned: boolean): void {
    this.pin.setAttribute("aria-pressed", String(pinned));
    const { name } = this.shown;
    for (const attribute of ["aria-label", "title"]) {
      write(this.pin, words(pinned ? "tile.unpin" : "tile.pin", { name }), attribute);
    }
  }

  /** Removes the tile. */
  close(): void {
    for (const end of [...this.endings.splice(0), ...this.endTrack.splice(0)]) end();
    if (this.screen) this.video.participant = null;
    this.element.remove();
  }

  /** Shows the tile in full screen, or ends that. The browser may refuse; then nothing changes. */
  async toggleFullScreen(): Promise<void> {
    const change =
      document.fullscreenElement === this.element ? document.exitFullscreen() : this.element.requestFullscreen();
    await change.catch(() => undefined);
  }

  private async float(): Promise<void> {
    await toggleFloating(this.video).catch(() => undefined);
  }

  private button(look: IconName, label: Words, press: () => void): HTMLButtonElement {
    const button = make("button", { class: "chip", type: "button", title: label, "aria-label": label }, icon(look));
    button.onclick = press;
    return button;
  }

  /** The choice of the view, for engineers, and where one sees oneself as others do. */
  private switcher(name: Words | string): HTMLElement {
    const switcher = make("div", { class: "switch", role: "group", "aria-label": words("tile.views", { name }) });
    for (const view of VIEWS) {
      const button = make("button", { type: "button" }, words(`view.${view}`));
      button.onclick = () => this.setView(view);
      this.views.set(view, button);
      switcher.append(button);
    }
    return switcher;
  }

  private dress(): void {
    const { participant } = this.shown;
    this.take(this.screen ? participant.screen : participant.camera);
    const { track } = this;
    const state = track?.state ?? "native";
    const off = track === null || track.muted;
    this.element.classList.toggle("speaking", !this.screen && participant.speaking);
    this.element.dataset["video"] = off ? "off" : "on";
    this.hand.hidden = this.screen || !raisesHand(participant);
    this.silent.hidden = this.screen || participant.microphone?.muted !== true;
    this.bars.show(barsOf(participant));
    const paused = track?.paused === true;
    const wanted = this.video.view !== "plain" && !off && state === "native";
    const reason: NativeReason = track?.reason ?? "starting";
    this.notice.classList.toggle("why", !paused);
    this.notice.textContent = paused ? say("tile.paused") : wanted ? say(`native.${reason}`) : "";
    const rung = track?.rung;
    this.badge.textContent = rung?.rung ?? "";
    this.badge.classList.toggle("plus", rung?.rung.endsWith("+") ?? false);
    this.badge.classList.toggle("rebuilt", state === "rebuilt");
    this.badge.dataset["rebuilt"] = say("badge.rebuilt");
    this.badge.title = rung === null || rung === undefined ? "" : say(`badge.${state}.title`, { rung: rung.rung });
  }

  /** Listens to the track that is shown now. */
  private take(track: RemoteVideoTrack | null): void {
    if (track === this.track) return;
    for (const end of this.endTrack.splice(0)) end();
    this.track = track;
    if (track === null) return;
    this.endTrack.push(
      track.on("paused", () => this.dress()),
      track.on("rung", () => this.dress()),
      track.on("stats", (stats) => this.fill(stats)),
    );
  }

  private fill(stats: TrackStats): void {
    // The two sides of the divider.
    const label = (what: Words, how: string) => [make("strong", {}, what), make("span", {}, how)];
    const plain = say("side.enlarged", { size: size(this.video.pictureSize) });
    this.sides.left.replaceChildren(...label(words("view.plain"), plain));
    this.sides.right.replaceChildren(...label(madeOf(stats), size(stats.hr)));
    this.facts.replaceChildren(...figureRows(stats));
  }
}
