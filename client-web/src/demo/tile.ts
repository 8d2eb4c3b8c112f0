/** The tile of a participant: its `<windlass-video>`, name, buttons for the view, and figures. */
import type {
  AnchorSource,
  EnhancedTrack,
  NativeReason,
  Participant,
  PictureState,
  Refusal,
  TrackStats,
  View,
} from "../sdk/index.js";
import { WindlassVideo } from "../sdk/index.js";
import { icon, make } from "./dom.js";

const VIEWS: readonly { view: View; label: string }[] = [
  { view: "enhanced", label: "Enhanced" },
  { view: "split", label: "Split" },
  { view: "plain", label: "Plain" },
];

const REASONS: Record<NativeReason, string> = {
  starting: "Plain picture for now: the better one is starting",
  fills: "Plain picture: it is as large as it is shown",
  "too-slow": "Plain picture: this machine is busy; trying again soon",
  fault: "Plain picture: enhancement is restarting",
  gap: "Plain picture: mending a loss",
  "too-large": "Plain picture: it arrives in full size",
  unsupported: "Plain picture: enhancement cannot run here",
  worker: "Plain picture: the page's worker for enhancement does not run",
  wasm: "Plain picture: the decoder for enhancement did not load",
  stalled: "Plain picture: enhancement has stopped",
};

const PAUSED = "Paused: your connection does not carry this picture now";

/** In the place of the anchors' rate. */
const REFUSALS: Record<Refusal, string> = {
  promise: "none: the server keeps its promise to others",
  processor: "none: the server's processor is busy",
  memory: "none: the server's memory for enhancement is full",
  full: "none: the server enhances as many as it may",
  size: "none: the publisher's picture is too large to be enhanced",
  slow: "none: the server's processor is too slow for this picture",
  other: "none: refused by the server",
};

const STATES: Record<PictureState, string> = {
  native: "plain picture",
  rebuilt: "rebuilt from the plain picture by filters alone",
  enhanced: "rebuilt with detail from the server",
};

/** What the better picture is made with, by where its detail comes from. */
const DETAIL: Record<AnchorSource, string> = {
  captured: "Rebuilt, with the camera's stills",
  enhanced: "Rebuilt, with a network's detail",
};

/** See the module's head. */
export class Tile {
  readonly element: HTMLElement;
  private readonly video: WindlassVideo;
  private readonly notice = make("p", { class: "notice", role: "status" });
  private readonly badge = make("span", { class: "badge" });
  private readonly facts = make("dl", { class: "facts" });
  private readonly infoButton: HTMLButtonElement;
  private readonly sides = {
    left: make("span", { slot: "left", class: "side" }),
    right: make("span", { slot: "right", class: "side" }),
  };
  private readonly buttons = new Map<View, HTMLButtonElement>();
  private readonly silent = make("span", { class: "silent", hidden: true }, icon("mic-off"));
  private readonly endings: (() => void)[] = [];
  private track: EnhancedTrack | null = null;
  private endTrack: (() => void)[] = [];

  /** `name`: for people. `adaptive`: the server learns how large the tile is. */
  constructor(
    private readonly participant: Participant,
    private readonly source: "camera" | "screen",
    name: string,
    view: View,
    { adaptive, infoOpen }: { adaptive: boolean; infoOpen: boolean },
  ) {
    this.video = source === "camera" ? participant.element : new WindlassVideo();
    this.video.setAttribute("source", source);
    this.video.participant = participant;
    this.video.setAttribute("name", name);
    this.video.toggleAttribute("fixed-size", !adaptive);
    this.silent.append(make("span", { class: "sr" }, "microphone muted"));
    this.infoButton = make(
      "button",
      { class: "chip", type: "button", title: "Figures", "aria-label": `Figures of ${name}`, "aria-expanded": "false" },
      icon("info"),
    );
    this.infoButton.onclick = () => this.showInfo(this.facts.hidden === true);
    const whole = make(
      "button",
      { class: "chip", type: "button", title: "Full screen", "aria-label": `Full screen: ${name}` },
      icon("expand"),
    );
    whole.hidden = !document.fullscreenEnabled;
    whole.onclick = () => void this.toggleFullScreen();
    const switcher = make("div", { class: "switch", role: "group", "aria-label": `Picture of ${name}` });
    for (const { view: value, label } of VIEWS) {
      const button = make("button", { type: "button" }, label);
      button.onclick = () => this.setView(value);
      this.buttons.set(value, button);
      switcher.append(button);
    }
    const nameplate = make("span", { class: "nameplate" }, this.silent, make("span", { class: "name" }, name));
    this.video.append(this.sides.left, this.sides.right);
    this.element = make(
      "section",
      { class: "tile", "aria-label": name },
      this.video,
      make("div", { class: "tile-top" }, this.infoButton, whole, switcher),
      this.facts,
      this.notice,
      make("div", { class: "tile-bottom" }, nameplate, this.badge),
    );
    const dress = () => this.dress();
    this.video.addEventListener("state", dress);
    this.endings.push(participant.on("change", dress), () => this.video.removeEventListener("state", dress));
    this.showInfo(infoOpen);
    this.setView(view);
  }

  /** Shows the enhanced picture, the plain one, or both side by side. */
  setView(view: View): void {
    this.video.view = view;
    for (const [value, button] of this.buttons) button.setAttribute("aria-pressed", String(value === view));
    this.dress();
  }

  /** Removes the tile. */
  close(): void {
    for (const end of [...this.endings.splice(0), ...this.endTrack.splice(0)]) end();
    if (this.source === "screen") this.video.participant = null;
    this.element.remove();
  }

  private showInfo(open: boolean): void {
    this.facts.hidden = !open;
    this.infoButton.setAttribute("aria-expanded", String(open));
  }

  private dress(): void {
    const { participant, source } = this;
    this.take(source === "camera" ? participant.camera : participant.screen);
    const { track } = this;
    const state = track?.state ?? "native";
    const off = track === null || track.muted;
    this.element.classList.toggle("speaking", source === "camera" && participant.speaking);
    this.element.dataset["video"] = off ? "off" : "on";
    this.silent.hidden = source !== "camera" || participant.microphone?.muted !== true;
    const wanted = this.video.view !== "plain" && !off && state === "native";
    if (track?.paused === true) this.notice.textContent = PAUSED;
    else this.notice.textContent = wanted ? REASONS[track?.reason ?? "starting"] : "";
    const rung = track?.rung;
    this.badge.textContent = rung?.rung ?? "";
    this.badge.classList.toggle("plus", rung?.rung.endsWith("+") ?? false);
    this.badge.classList.toggle("rebuilt", state === "rebuilt");
    this.badge.title = rung === null || rung === undefined ? "" : `Rung ${rung.rung}, ${STATES[state]}`;
  }

  /** Listens to the track that is shown now. */
  private take(track: EnhancedTrack | null): void {
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

  /** Shows the tile in full screen, or ends that. */
  private async toggleFullScreen(): Promise<void> {
    // The browser may reject the request; then nothing changes.
    const change =
      document.fullscreenElement === this.element ? document.exitFullscreen() : this.element.requestFullscreen();
    await change.catch(() => undefined);
  }

  /** Labels the two sides of the divider. */
  private nameSides(stats: TrackStats): void {
    const label = (what: string, how: string) => [make("strong", {}, what), make("span", {}, how)];
    this.sides.left.replaceChildren(...label("Plain", `${size(this.video.pictureSize)}, enlarged by the browser`));
    const made = stats.state === "enhanced" && stats.detailFrom !== null ? DETAIL[stats.detailFrom] : "Rebuilt";
    this.sides.right.replaceChildren(...label(made, size(stats.hr)));
  }

  private fill(stats: TrackStats): void {
    this.nameSides(stats);
    const ms = (value: number | null) => (value === null ? "–" : value.toFixed(value < 10 ? 1 : 0));
    const rebuilt = stats.state !== "native";
    const rows: [string, string][] = [
      ["Rung", stats.rung ?? "–"],
      ["Size", rebuilt ? `${size(stats.lr)} → ${size(stats.hr)}` : size(stats.lr)],
      ["Shown / enhanced", `${stats.shownFps.toFixed(0)} / ${stats.enhancedFps.toFixed(0)} fps`],
      ["Video + anchors", `${stats.videoKbps.toFixed(0)} + ${stats.anchorKbps.toFixed(0)} kbit/s`],
      ["Anchors", stats.refused === null ? `${stats.anchorsPerSecond.toFixed(1)} /s` : REFUSALS[stats.refused]],
      ["Anchor p50 / p95", `${ms(stats.anchorP50Ms)} / ${ms(stats.anchorP95Ms)} ms`],
      ["Rebuild / anchor", `${ms(stats.decodeMs)} / ${ms(stats.anchorApplyMs)} ms`],
      ["Network", rebuilt ? network(stats) : "–"],
      ["Lost / late", `${stats.framesLost} frames / ${stats.anchorsLate + stats.anchorsLost} anchors`],
    ];
    this.facts.replaceChildren(...rows.flatMap(([term, value]) => [make("dt", {}, term), make("dd", {}, value)]));
  }
}

/** The network that runs on every frame, and where. */
function network({ network, networkBackend, networkMs }: TrackStats): string {
  if (networkBackend !== "webgpu") return network;
  return networkMs === null ? `${network}, WebGPU` : `${network}, WebGPU in ${networkMs.toFixed(1)} ms`;
}

function size(of: { width: number; height: number } | null): string {
  return of === null ? "–" : `${of.width}×${of.height}`;
}
