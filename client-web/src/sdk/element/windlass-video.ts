/**
 * `<windlass-video>`: shows a participant, or a track alone. The enhanced picture lies above the native one, which
 * always plays beneath, so that a fallback never shows black and a change never flickers. With a divider it shows both.
 */
import type { NativeReason, PictureState } from "../../worker/messages.js";
import { playSound } from "../devices/playback.js";
import type { Participant } from "../participant.js";
import { RemoteVideoTrack } from "../tracks.js";
import { Divider } from "./divider.js";
import { STYLE } from "./style.js";

/** What `<windlass-video>` shows: the better picture, both with a divider between them, or the native one alone. */
export type View = "enhanced" | "split" | "plain";

/**
 * An element that has been out of the page for so long, milliseconds, has counted as hidden: it is not observed any
 * longer.
 */
const REMOVED_MS = 5000;

const VIEWS: readonly View[] = ["enhanced", "split", "plain"];

/** The events of `<windlass-video>`, none of which bubbles. */
export interface WindlassVideoEvents {
  /** The element's attributes `state` and `reason` have changed. */
  state: CustomEvent<{ state: PictureState; reason: NativeReason | null }>;
  /** The browser plays no sound before a gesture. The element shows a button, and any click on the page is enough. */
  soundblocked: CustomEvent<undefined>;
  /** The sound plays after all. */
  soundplaying: CustomEvent<undefined>;
}

// A module of an SDK may be loaded on a server, where there are no elements.
const Base: typeof HTMLElement = globalThis.HTMLElement ?? (class {} as typeof HTMLElement);

const sheets = new WeakMap<Document, CSSStyleSheet>();

/**
 * The style of all elements of a document. A sheet of its own, as a `<style>` may be forbidden by the page's policy.
 */
function styleSheet(of: Document): CSSStyleSheet {
  let sheet = sheets.get(of);
  if (sheet === undefined) {
    sheet = new (of.defaultView ?? window).CSSStyleSheet();
    sheet.replaceSync(STYLE);
    sheets.set(of, sheet);
  }
  return sheet;
}

/**
 * `<windlass-video>`: shows a participant, or a track alone. The enhanced picture lies above the native one, which
 * always plays beneath, so that a fallback never shows black and a change never flickers. Out of the page it is silent,
 * as browsers have it, and counts as hidden after some seconds. It may be moved into another document, such as a
 * floating window's.
 *
 * - Attributes to set: `view` (`enhanced`, `split`, `plain`), `name` (its initials are shown where there is no
 *   picture), `source` (`camera`, or `screen` for what the participant shares), `mirror`, `fixed-size` (its shown size
 *   is not reported to the server), `silent` (no sound), `divider-label` (what a screen reader calls the divider;
 *   English by default).
 * - Attributes to read: `state`, `reason`, `video` (`on` or `off`), `speaking`, `paused`, `away`, `sound` (`on`, `off`,
 *   `blocked`).
 * - Slots: `left` and `right` (labels of the two sides), `captions`, `unblock` (text of the button), and what lies
 *   above the picture.
 * - Parts: `plain`, `enhanced`, `divider`, `unblock`, `avatar`.
 */
export class WindlassVideo extends Base {
  /** @internal */
  static readonly observedAttributes = ["view", "name", "source", "fixed-size", "silent", "divider-label"];

  private readonly plain = picture("plain");
  private readonly enhanced = picture("enhanced");
  private readonly audio = document.createElement("audio");
  private readonly stage = document.createElement("div");
  private readonly avatar = document.createElement("div");
  private readonly unblock = document.createElement("button");
  private readonly divider: Divider;
  private who: Participant | null = null;
  private shown: RemoteVideoTrack | MediaStreamTrack | null = null;
  private heard: readonly MediaStreamTrack[] = [];
  private endParticipant: (() => void)[] = [];
  private endTrack: (() => void)[] = [];
  private readonly endSound: (() => void)[] = [];
  private endFollowing: (() => void) | null = null;
  private lastState = "";
  private removed: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    this.divider = new Divider(this.stage);
    this.build();
    this.plain.onresize = () => this.fit();
  }

  /** The participant that it shows, its camera and its microphone; null: none. */
  get participant(): Participant | null {
    return this.who;
  }

  set participant(participant: Participant | null) {
    for (const end of this.endParticipant.splice(0)) end();
    this.who = participant;
    if (participant === null) {
      this.track = null;
      this.sound = null;
      return;
    }
    this.endParticipant.push(participant.on("change", () => this.update()));
    this.update();
  }

  /**
   * The video track that it shows: a remote one, or one of this page such as the own camera; null: none. Set it where
   * there is no {@link participant}.
   */
  get track(): RemoteVideoTrack | MediaStreamTrack | null {
    return this.shown;
  }

  set track(track: RemoteVideoTrack | MediaStreamTrack | null) {
    if (track === this.shown) return;
    for (const end of this.endTrack.splice(0)) end();
    const former = this.shown;
    this.shown = track;
    const remote = track instanceof RemoteVideoTrack ? track : null;
    const replaces = remote !== null && remote.replaces !== null && remote.replaces === former;
    play(this.plain, remote?.plain ?? (track as MediaStreamTrack | null), replaces);
    play(this.enhanced, remote?.enhanced ?? null, replaces);
    this.stage.classList.toggle("live", replaces && this.stage.classList.contains("live"));
    if (track !== null) this.plain.requestVideoFrameCallback?.(() => this.stage.classList.add("live"));
    if (track !== null && this.plain.requestVideoFrameCallback === undefined) this.stage.classList.add("live");
    if (remote !== null) {
      remote.holdPlain(this.view === "split");
      this.endTrack.push(
        remote.keepStepWith(this.plain),
        remote.on("state", () => this.dress()),
        remote.on("muted", () => this.dress()),
        remote.on("paused", () => this.dress()),
      );
    }
    this.follow();
    this.dress();
  }

  /** The audio track that it plays, the first of several; null: none. Set it where there is no {@link participant}. */
  get sound(): MediaStreamTrack | null {
    return this.heard[0] ?? null;
  }

  set sound(track: MediaStreamTrack | null) {
    this.hear(track === null ? [] : [track]);
  }

  /** What it shows. Default: `enhanced`. */
  get view(): View {
    return VIEWS.find((view) => view === this.getAttribute("view")) ?? "enhanced";
  }

  set view(view: View) {
    this.setAttribute("view", view);
  }

  /** The place of the divider, percent of the width. */
  get split(): number {
    return this.divider.position;
  }

  set split(percent: number) {
    this.divider.place(percent);
  }

  /** Width and height of the native picture, pixels; 0 without one. */
  get pictureSize(): { width: number; height: number } {
    return { width: this.plain.videoWidth, height: this.plain.videoHeight };
  }

  /** @internal */
  attributeChangedCallback(name: string): void {
    if (name === "view" && this.shown instanceof RemoteVideoTrack) this.shown.holdPlain(this.view === "split");
    if (name === "fixed-size") this.follow();
    if (name === "divider-label") this.divider.label = this.getAttribute(name);
    if (name === "silent" || name === "source") this.update();
    this.dress();
  }

  /** @internal */
  connectedCallback(): void {
    clearTimeout(this.removed);
    this.follow();
    // A video that was taken out of the page and put back stands still.
    for (const element of [this.plain, this.enhanced])
      if (element.srcObject !== null) element.play().catch(() => undefined);
    this.playSound();
  }

  /** @internal */
  disconnectedCallback(): void {
    // Following goes on: out of the page it has no size, and so the server learns that nobody sees the picture.
    clearTimeout(this.removed);
    this.removed = setTimeout(() => this.endFollowing?.(), REMOVED_MS);
  }

  /** @internal */
  adoptedCallback(): void {
    // A sheet belongs to one document.
    if (this.shadowRoot !== null) this.shadowRoot.adoptedStyleSheets = [styleSheet(this.ownerDocument)];
  }

  private build(): void {
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [styleSheet(document)];
    this.stage.className = "stage";
    this.avatar.className = "avatar";
    this.avatar.setAttribute("part", "avatar");
    this.avatar.setAttribute("aria-hidden", "true");
    this.enhanced.setAttribute("aria-hidden", "true");
    const side = (name: string, text: string) => {
      const label = document.createElement("div");
      label.className = `side ${name}`;
      label.setAttribute("aria-hidden", "true");
      label.append(slot(name, text));
      return label;
    };
    const captions = document.createElement("div");
    captions.className = "captions";
    captions.append(slot("captions", ""));
    this.unblock.className = "unblock";
    this.unblock.setAttribute("part", "unblock");
    this.unblock.type = "button";
    this.unblock.hidden = true;
    this.unblock.append(slot("unblock", "Click to hear"));
    const [left, right] = [side("left", "Plain"), side("right", "Enhanced")];
    this.stage.append(this.avatar, this.plain, this.enhanced, left, right, this.divider.element, captions);
    root.append(this.stage, slot("", ""), this.unblock, this.audio);
  }

  /** Shows the participant as it is now. */
  private update(): void {
    const { who } = this;
    if (who !== null) {
      this.toggleAttribute("speaking", who.speaking && !who.left);
      this.toggleAttribute("away", who.away);
      // Who is away keeps the last picture until it is back or gone.
      if (!who.away) {
        const screen = this.getAttribute("source") === "screen";
        this.track = screen ? who.screen : who.camera;
        const sounds = screen ? [who.screenAudio] : who.sounds;
        const silent = who.isSelf || this.hasAttribute("silent");
        this.hear(silent ? [] : sounds.flatMap((sound) => sound?.track ?? []));
      }
    }
    this.dress();
  }

  /** Tells the server how large the track is shown, while it is in the page. */
  private follow(): void {
    this.endFollowing?.();
    const follows = this.isConnected && !this.hasAttribute("fixed-size");
    this.endFollowing = follows && this.shown instanceof RemoteVideoTrack ? this.shown.follow(this.stage) : null;
  }

  private dress(): void {
    const { shown, who } = this;
    const remote = shown instanceof RemoteVideoTrack ? shown : null;
    // The enhanced track changes when its worker is restarted.
    if (remote !== null && playing(this.enhanced) !== remote.enhanced) play(this.enhanced, remote.enhanced, false);
    const state = remote?.state ?? "native";
    const reason = remote?.reason ?? null;
    this.setAttribute("state", state);
    if (reason === null) this.removeAttribute("reason");
    else this.setAttribute("reason", reason);
    this.setAttribute("video", shown === null || remote?.muted === true ? "off" : "on");
    this.toggleAttribute("paused", remote?.paused ?? false);
    this.avatar.textContent = initials(this.getAttribute("name") ?? who?.name ?? "");
    if (this.lastState === `${state} ${reason}`) return;
    this.lastState = `${state} ${reason}`;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, reason } }));
  }

  /** Gives the stage the aspect ratio of the picture. */
  private fit(): void {
    const { videoWidth, videoHeight } = this.plain;
    if (videoHeight > 0) this.stage.style.setProperty("--aspect", `${videoWidth} / ${videoHeight}`);
  }

  /** Plays these tracks from now on, together. */
  private hear(tracks: readonly MediaStreamTrack[]): void {
    if (tracks.length === this.heard.length && tracks.every((track, at) => track === this.heard[at])) return;
    this.heard = tracks;
    this.audio.srcObject = tracks.length === 0 ? null : new MediaStream([...tracks]);
    this.playSound();
  }

  /** Plays the sound, on the room's loudspeaker. Browsers refuse until somebody has clicked on the page. */
  private playSound(): void {
    for (const end of this.endSound.splice(0)) end();
    if (this.heard.length === 0) {
      this.soundIs("off");
      return;
    }
    this.soundIs("on");
    const onBlocked = (blocked: boolean) => this.soundIs(blocked ? "blocked" : "on");
    const outlet = this.who?.outlet;
    if (outlet === undefined) {
      this.endSound.push(playSound(this.audio, onBlocked).end);
    } else {
      this.endSound.push(outlet.devices.followSpeaker(this.audio), outlet.sound.play(this.audio, onBlocked));
    }
  }

  private soundIs(sound: "on" | "off" | "blocked"): void {
    const before = this.getAttribute("sound");
    this.setAttribute("sound", sound);
    this.unblock.hidden = sound !== "blocked";
    if (sound === "blocked" && before !== sound) this.dispatchEvent(new CustomEvent("soundblocked"));
    if (sound === "on" && before === "blocked") this.dispatchEvent(new CustomEvent("soundplaying"));
  }
}

if (globalThis.customElements !== undefined) {
  // Another copy of the SDK on the page may have the name: then `participant.element` must work all the same.
  let name = "windlass-video";
  while (customElements.get(name) !== undefined) name += "-copy";
  customElements.define(name, WindlassVideo);
}

declare global {
  interface HTMLElementTagNameMap {
    "windlass-video": WindlassVideo;
  }
}

function picture(name: string): HTMLVideoElement {
  const video = document.createElement("video");
  video.className = name;
  video.setAttribute("part", name);
  video.muted = true;
  video.playsInline = true;
  video.autoplay = true;
  return video;
}

function slot(name: string, text: string): HTMLSlotElement {
  const made = document.createElement("slot");
  if (name !== "") made.name = name;
  made.append(text);
  return made;
}

/** The video track that an element plays. */
function playing(video: HTMLVideoElement): MediaStreamTrack | null {
  return video.srcObject instanceof MediaStream ? (video.srcObject.getVideoTracks()[0] ?? null) : null;
}

/** Plays a track. A successor goes into the same stream, so that the last picture stays until the next comes. */
function play(video: HTMLVideoElement, track: MediaStreamTrack | null, replaces: boolean): void {
  const stream = video.srcObject;
  if (!replaces || track === null || !(stream instanceof MediaStream)) {
    video.srcObject = track === null ? null : new MediaStream([track]);
    return;
  }
  const former = stream.getTracks();
  stream.addTrack(track);
  for (const other of former) stream.removeTrack(other);
}

/** The initials of a name. */
function initials(name: string): string {
  const words = name.split(/\s+/).filter((word) => word !== "");
  return words
    .slice(0, 2)
    .map((word) => [...word][0]?.toUpperCase() ?? "")
    .join("");
}
