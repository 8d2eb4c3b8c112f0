/**
 * The tile of a participant: the native picture, the enhanced one above it, a divider between them in split view, and
 * statistics. The native video always plays beneath, so that a fallback never shows black.
 */
import type { AnchorSource, EnhancedTrack, NativeReason, PictureState, Refusal, TrackStats } from "../sdk/index.js";
import { icon, make } from "./dom.js";
import type { View } from "./options.js";

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

const STEP = 5;

/** See the module's head. */
export class Tile {
  readonly element: HTMLElement;
  private readonly plain = make("video", { class: "picture", muted: true, playsInline: true, autoplay: true });
  private readonly enhanced = make("video", {
    class: "picture enhanced",
    muted: true,
    playsInline: true,
    autoplay: true,
    "aria-hidden": "true",
  });
  private readonly sound = make("audio", { autoplay: true });
  private readonly stage: HTMLElement;
  private readonly divider: HTMLElement;
  private readonly notice = make("p", { class: "notice", role: "status" });
  private readonly badge = make("span", { class: "badge" });
  private readonly facts = make("dl", { class: "facts" });
  private readonly infoButton: HTMLButtonElement;
  private readonly sides = {
    left: make("span", { class: "side left", "aria-hidden": "true" }, "Plain"),
    right: make("span", { class: "side right", "aria-hidden": "true" }, "Rebuilt"),
  };
  private readonly buttons = new Map<View, HTMLButtonElement>();
  private readonly silent = make("span", { class: "silent", hidden: true }, icon("mic-off"));
  private track: EnhancedTrack | null = null;
  private endings: (() => void)[] = [];
  private view: View;
  private at = 50;

  constructor(
    readonly participant: string,
    name: string,
    view: View,
    infoOpen: boolean,
  ) {
    this.view = view;
    this.divider = this.makeDivider();
    this.silent.append(make("span", { class: "sr" }, "microphone muted"));
    const { left, right } = this.sides;
    const avatar = make("div", { class: "avatar", "aria-hidden": "true" }, initials(name));
    this.stage = make("div", { class: "stage" }, avatar, this.plain, this.enhanced, left, right, this.divider);
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
    this.element = make(
      "section",
      { class: "tile", "aria-label": name },
      this.stage,
      make("div", { class: "tile-top" }, this.infoButton, whole, switcher),
      this.facts,
      this.notice,
      make("div", { class: "tile-bottom" }, nameplate, this.badge),
      this.sound,
    );
    this.plain.onresize = () => this.fit();
    this.showInfo(infoOpen);
    this.setView(view);
    this.place(this.at);
    this.dress();
  }

  /** Stops showing a video track that has ended. */
  endVideo(track: EnhancedTrack): void {
    if (this.track === track) this.setVideo(null);
  }

  /**
   * Shows a video track, or (null) none. `follow` follows the stage that shows it, and returns a function that ends
   * that.
   */
  setVideo(track: EnhancedTrack | null, follow: ((stage: Element) => () => void) | null = null): void {
    for (const end of this.endings.splice(0)) end();
    const replaces = this.track !== null && track?.replaces === this.track;
    this.track = track;
    show(this.plain, track?.plain ?? null, replaces);
    show(this.enhanced, track?.enhanced ?? null, replaces);
    this.stage.classList.toggle("live", replaces && this.stage.classList.contains("live"));
    if (track !== null) {
      track.holdPlain(this.view === "split");
      if (follow !== null) this.endings.push(follow(this.stage));
      this.endings.push(
        track.keepStepWith(this.plain),
        track.on("state", () => this.dress()),
        track.on("muted", () => this.dress()),
        track.on("paused", () => this.dress()),
        track.on("rung", () => this.dress()),
        track.on("stats", (stats) => this.fill(stats)),
      );
      this.plain.requestVideoFrameCallback?.(() => this.stage.classList.add("live"));
    }
    this.dress();
  }

  /** Stops playing an audio track that has ended. */
  endAudio(track: MediaStreamTrack): void {
    const heard = this.sound.srcObject;
    if (heard instanceof MediaStream && heard.getTracks().includes(track)) this.setAudio(null);
  }

  /** Plays an audio track, or (null) none. */
  setAudio(track: MediaStreamTrack | null): void {
    this.sound.srcObject = track === null ? null : new MediaStream([track]);
    // Browsers play sound only after an interaction with the page.
    const retry = () => document.addEventListener("pointerdown", () => void this.sound.play(), { once: true });
    if (track !== null) this.sound.play().catch(retry);
  }

  /** Shows whether the participant speaks. */
  setSpeaking(speaking: boolean): void {
    this.element.classList.toggle("speaking", speaking);
  }

  /** Shows whether the participant's microphone is muted. */
  setSilent(silent: boolean): void {
    this.silent.hidden = !silent;
  }

  /** Shows the enhanced picture, the plain one, or both side by side. */
  setView(view: View): void {
    this.view = view;
    this.element.dataset["view"] = view;
    this.track?.holdPlain(view === "split");
    for (const [value, button] of this.buttons) button.setAttribute("aria-pressed", String(value === view));
    this.dress();
  }

  /** Removes the tile. */
  close(): void {
    this.setVideo(null);
    this.setAudio(null);
    this.element.remove();
  }

  /** Gives the stage the aspect ratio of the picture. */
  private fit(): void {
    const { videoWidth, videoHeight } = this.plain;
    if (videoHeight > 0) this.stage.style.setProperty("--aspect", `${videoWidth} / ${videoHeight}`);
  }

  private showInfo(open: boolean): void {
    this.facts.hidden = !open;
    this.infoButton.setAttribute("aria-expanded", String(open));
  }

  private dress(): void {
    const { track } = this;
    const state = track?.state ?? "native";
    // The enhanced track changes when its worker is restarted.
    if (track !== null && shown(this.enhanced) !== track.enhanced) show(this.enhanced, track.enhanced, false);
    this.element.dataset["state"] = state;
    this.element.dataset["video"] = track === null || track.muted ? "off" : "on";
    const paused = track?.paused ?? false;
    const wanted = this.view !== "plain" && track !== null && !track.muted && state === "native";
    if (paused) this.notice.textContent = PAUSED;
    else this.notice.textContent = wanted ? REASONS[track.reason ?? "starting"] : "";
    const rung = track?.rung;
    this.badge.textContent = rung?.rung ?? "";
    this.badge.classList.toggle("plus", rung?.rung.endsWith("+") ?? false);
    this.badge.classList.toggle("rebuilt", state === "rebuilt");
    this.badge.title = rung === null || rung === undefined ? "" : `Rung ${rung.rung}, ${STATES[state]}`;
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
    const { videoWidth, videoHeight } = this.plain;
    const label = (what: string, how: string) => [make("strong", {}, what), make("span", {}, how)];
    this.sides.left.replaceChildren(...label("Plain", `${videoWidth}×${videoHeight}, enlarged by the browser`));
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

  private makeDivider(): HTMLElement {
    const divider = make(
      "div",
      {
        class: "divider",
        role: "slider",
        tabIndex: 0,
        "aria-label": "Divider between the plain and the enhanced picture",
        "aria-orientation": "horizontal",
        "aria-valuemin": 0,
        "aria-valuemax": 100,
      },
      make("span", { class: "grip" }, icon("handle")),
    );
    divider.onpointerdown = (event) => {
      divider.setPointerCapture(event.pointerId);
      event.preventDefault();
      divider.focus({ preventScroll: true });
    };
    divider.onpointermove = (event) => {
      if (!divider.hasPointerCapture(event.pointerId)) return;
      const box = this.stage.getBoundingClientRect();
      this.place(((event.clientX - box.left) / box.width) * 100);
    };
    divider.onkeydown = (event) => {
      const moves: Record<string, number> = {
        ArrowLeft: this.at - STEP,
        ArrowDown: this.at - STEP,
        ArrowRight: this.at + STEP,
        ArrowUp: this.at + STEP,
        Home: 0,
        End: 100,
      };
      const to = moves[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.place(to);
    };
    return divider;
  }

  /** Moves the divider to a share of the width, percent. */
  private place(percent: number): void {
    this.at = Math.min(100, Math.max(0, percent));
    this.stage.style.setProperty("--at", `${this.at}%`);
    this.divider.setAttribute("aria-valuenow", String(Math.round(this.at)));
    this.divider.setAttribute("aria-valuetext", `${Math.round(this.at)} % plain`);
  }
}

/** The video track of an element. */
function shown(video: HTMLVideoElement): MediaStreamTrack | null {
  return video.srcObject instanceof MediaStream ? (video.srcObject.getVideoTracks()[0] ?? null) : null;
}

/** Plays a track. A successor goes into the same stream, so that the last picture stays until the next comes. */
function show(video: HTMLVideoElement, track: MediaStreamTrack | null, replaces: boolean): void {
  const stream = video.srcObject;
  if (!replaces || track === null || !(stream instanceof MediaStream)) {
    video.srcObject = track === null ? null : new MediaStream([track]);
    return;
  }
  const former = stream.getTracks();
  stream.addTrack(track);
  for (const other of former) stream.removeTrack(other);
}

/** The network that runs on every frame, and where. */
function network({ network, networkBackend, networkMs }: TrackStats): string {
  if (networkBackend !== "webgpu") return network;
  return networkMs === null ? `${network}, WebGPU` : `${network}, WebGPU in ${networkMs.toFixed(1)} ms`;
}

function size(of: { width: number; height: number } | null): string {
  return of === null ? "–" : `${of.width}×${of.height}`;
}

function initials(name: string): string {
  const words = name.split(/\s+/).filter((word) => word !== "");
  return words
    .slice(0, 2)
    .map((word) => [...word][0]?.toUpperCase() ?? "")
    .join("");
}
