/** The call screen: tiles of the others, the own preview, and the controls. */
import {
  EnhancedTrack,
  type Layers,
  type Participant,
  type Publication,
  type Room,
  type Rung,
  type ScreenShare,
  WindlassError,
} from "../sdk/index.js";
import { brand, type IconName, icon, make } from "./dom.js";
import { ModerationPanel } from "./moderation.js";
import { type PageOptions, roomLink } from "./options.js";
import type { Choice } from "./start.js";
import { Tile } from "./tile.js";

/** Interval of checks whether stills are sent, milliseconds. */
const STILLS_CHECK_MS = 500;
/** Time for which a sent still is indicated, milliseconds. */
const STILL_SHOWN_MS = 3000;

/** Media query of phones. */
const PHONE = "(max-width: 600px)";

/** See the module's head. */
export class CallScreen {
  readonly element: HTMLElement;
  private readonly tiles = new Map<Participant, Tile>();
  /** Of those who share a screen. */
  private readonly screens = new Map<Participant, Tile>();
  /** What this participant shares. */
  private share: ScreenShare | null = null;
  private readonly grid = make("div", { class: "grid" });
  private readonly empty: HTMLElement;
  private readonly banner = make("div", { class: "banner", role: "status", hidden: true });
  private readonly count = make("span", { class: "count" });
  private readonly stills = make("div", { class: "stills", role: "status", hidden: true });
  private stillsTimer: ReturnType<typeof setInterval> | undefined;
  private regions = { sent: 0, at: Number.NEGATIVE_INFINITY };
  private readonly own: HTMLElement;
  private publications: Publication[] = [];
  private readonly moderation: ModerationPanel;
  /** Shown instead of the mute buttons after a moderator stopped sending. */
  private readonly again = make("button", { class: "control again", type: "button", hidden: true }, "Send again");
  private away = false;
  /** Cap on received tracks; in a loopback call, the low layer to show. */
  private maxRung: Rung | null;

  constructor(
    private readonly room: Room,
    private readonly choice: Choice,
    private readonly options: PageOptions,
    ended: (reason: WindlassError) => void,
  ) {
    this.maxRung = options.maxRung ?? (choice.loopback ? "q+" : null);
    this.empty = make(
      "div",
      { class: "empty" },
      icon("people"),
      make("h2", {}, choice.loopback ? "Your picture is on its way…" : "You are the only one here"),
      make(
        "p",
        {},
        choice.loopback
          ? "In a moment you see your own low layer, plain beside rebuilt."
          : "Send the link to those who shall join.",
      ),
      choice.loopback ? null : this.copyButton("primary"),
    );
    this.own = this.makeOwn();
    this.moderation = new ModerationPanel(room, (text) => this.say(text, false, 6000));
    this.again.onclick = () => void this.publish().catch(() => undefined);
    this.element = make(
      "main",
      { class: "call" },
      make(
        "header",
        { class: "bar" },
        brand(),
        make("h1", { class: "room" }, choice.loopback ? "Just you" : choice.room),
        this.count,
        this.stills,
        choice.loopback ? null : this.copyButton("quiet"),
      ),
      this.banner,
      make("div", { class: "stage-area" }, this.grid, this.empty, this.own, this.moderation.element),
      this.makeControls(),
    );
    if (choice.stills) this.stillsTimer = setInterval(() => this.showStills(), STILLS_CHECK_MS);
    this.listen(ended);
    this.arrange();
  }

  /** Sends the chosen source. */
  async publish(): Promise<void> {
    const { source, layers, stills } = this.choice;
    if (source === null || !this.room.may("publish")) return;
    this.showSending(true);
    this.publications = await this.room.publish(source.stream, { layers, detail: stills ? "ask" : "off" });
  }

  /** Closes the screen and its tiles. */
  close(): void {
    clearInterval(this.stillsTimer);
    this.moderation.close();
    void this.share?.stop();
    for (const tile of [...this.tiles.values(), ...this.screens.values()]) tile.close();
    this.tiles.clear();
    this.screens.clear();
    this.element.remove();
  }

  private listen(ended: (reason: WindlassError) => void): void {
    const { room } = this;
    room.on("participant", (participant) => this.join(participant));
    room.on("participantLeft", (participant) => {
      this.tiles.get(participant)?.close();
      this.tiles.delete(participant);
      this.showScreen(participant);
      this.arrange();
    });
    room.on("trackAdded", (track) => {
      if (track instanceof EnhancedTrack && this.maxRung !== null) track.setMaxRung(this.maxRung);
    });
    room.on("reconnecting", ({ cause, attempt }) => {
      this.away = true;
      this.arrange();
      const tries = attempt > 1 ? ` (attempt ${attempt})` : "";
      this.say(`${cause.message} Reconnecting${tries}… Stay on this page; the call goes on by itself.`, true);
    });
    room.on("reconnected", () => {
      this.away = false;
      this.arrange();
      this.say("Connected again.", false, 3000);
    });
    room.on("grants", () => this.grantsChanged());
    room.on("locked", ({ locked }) =>
      this.say(locked ? "The call is locked: nobody new comes in." : "The call is open again.", false, 4000),
    );
    room.on("waiting", () => this.say("Waiting to be let in again…", true));
    room.on("refused", (error) => this.say(`${error.message} ${error.hint}`, false, 6000));
    room.on("disconnected", ({ reason }) => ended(reason));
  }

  /** A moderator has changed the grants: sending has ended, or is allowed again. */
  private grantsChanged(): void {
    const { source, loopback } = this.choice;
    if (source === null || loopback) return;
    const may = this.room.may("publish");
    if (!may && this.publications.length > 0) {
      this.publications = [];
      this.showSending(false);
      this.say("A moderator has stopped your camera and microphone: nothing of you is sent.", false);
    } else if (may && this.publications.length === 0) {
      this.again.hidden = false;
      this.say("You may send again.", false, 6000);
    }
  }

  /** Enables or disables camera and microphone. */
  private showSending(sending: boolean): void {
    this.element.classList.toggle("silenced", !sending);
    this.again.hidden = true;
    for (const track of this.choice.source?.stream.getTracks() ?? []) track.enabled = sending;
  }

  /** Indicates whether full-size pixels of the camera leave this page. */
  private showStills(): void {
    const now = performance.now();
    const sent = this.room.published.reduce((sum, { stills }) => sum + (stills?.regions.sent ?? 0), 0);
    if (sent > this.regions.sent) this.regions.at = now;
    this.regions.sent = sent;
    const recent = now - this.regions.at < STILL_SHOWN_MS;
    const label = recent ? "Sending full-size stills" : "";
    if (this.stills.dataset["said"] === label) return; // screen readers announce a change once
    this.stills.dataset["said"] = label;
    this.stills.hidden = label === "";
    this.stills.replaceChildren(icon("camera"), make("span", {}, label));
  }

  private join(participant: Participant): void {
    const name = participant.isSelf ? "You, as others receive you" : participant.name || "Guest";
    this.tiles.set(participant, this.makeTile(participant, "camera", name));
    participant.on("change", () => this.showScreen(participant));
    this.arrange();
  }

  /** Shows what somebody shares, or no longer. */
  private showScreen(participant: Participant): void {
    const shown = this.screens.get(participant);
    const shares = participant.screen !== null || (participant.away && shown !== undefined);
    if (shares === (shown !== undefined)) return;
    if (shown === undefined) {
      this.screens.set(participant, this.makeTile(participant, "screen", `${participant.name || "Guest"}’s screen`));
    } else {
      shown.close();
      this.screens.delete(participant);
    }
    this.arrange();
  }

  private makeTile(participant: Participant, source: "camera" | "screen", name: string): Tile {
    const view = this.options.view ?? (this.choice.loopback ? "split" : "enhanced");
    const { adaptive } = this.options;
    const tile = new Tile(participant, source, name, view, { adaptive, infoOpen: !matchMedia(PHONE).matches });
    this.grid.append(tile.element);
    return tile;
  }

  private arrange(): void {
    const count = this.tiles.size + this.screens.size;
    this.empty.hidden = count > 0 || this.away;
    this.grid.dataset["count"] = String(count);
    this.grid.style.setProperty("--columns", String(Math.ceil(Math.sqrt(count))));
    const people = [...this.tiles.keys()].filter(({ isSelf }) => !isSelf).length + 1;
    this.count.replaceChildren(icon("people"), `${people}`, make("span", { class: "sr" }, "in the call"));
  }

  private makeOwn(): HTMLElement {
    const { source } = this.choice;
    // In a loopback call the own picture is on the stage already.
    if (source === null || this.choice.loopback) return make("div", { class: "own", hidden: true });
    const video = make("video", { muted: true, playsInline: true, autoplay: true, "aria-label": "Your own picture" });
    video.srcObject = source.stream;
    return make("div", { class: "own" }, video, make("span", { class: "nameplate" }, "You"));
  }

  private makeControls(): HTMLElement {
    const { source, layers, loopback } = this.choice;
    const leave = make("button", { class: "control leave", type: "button" }, icon("leave"), make("span", {}, "Leave"));
    leave.onclick = () => this.room.leave();
    const has = (kind: "audio" | "video") => source?.stream.getTracks().some((track) => track.kind === kind) ?? false;
    return make(
      "nav",
      { class: "controls", "aria-label": "Call controls" },
      // A loopback call has no listeners, and shows the picture of one low layer.
      has("audio") && !loopback ? this.muteButton("audio", "Microphone", "mic", "mic-off") : null,
      has("video") ? this.muteButton("video", "Camera", "camera", "camera-off") : null,
      has("video") ? (loopback ? this.rungChoice(layers) : this.layersChoice(layers)) : null,
      loopback ? null : this.shareButton(),
      this.again,
      loopback ? null : this.moderation.button,
      leave,
    );
  }

  private muteButton(kind: "audio" | "video", label: string, on: IconName, off: IconName): HTMLElement {
    const button = make("button", { class: "control mute", type: "button" });
    const dress = (muted: boolean) => {
      button.setAttribute("aria-pressed", String(muted));
      button.setAttribute("aria-label", `${label}: ${muted ? "off; switch on" : "on; switch off"}`);
      button.replaceChildren(icon(muted ? off : on), make("span", {}, label));
    };
    dress(false);
    this.room.on("publicationMuted", ({ publication, muted }) => {
      if (publication.kind !== kind) return;
      dress(muted);
      if (kind === "video") this.own.classList.toggle("off", muted);
    });
    button.onclick = () => {
      const publication = this.publications.find((p) => p.kind === kind);
      if (publication === undefined) return;
      this.room.mute(publication, !publication.muted);
      dress(publication.muted);
      if (kind === "video") this.own.classList.toggle("off", publication.muted);
    };
    return button;
  }

  private shareButton(): HTMLElement {
    const label = make("span", {}, "Share screen");
    const button = make(
      "button",
      { class: "control share", type: "button", "aria-pressed": "false" },
      icon("screen"),
      label,
    );
    const dress = () => {
      const shares = this.share !== null;
      button.setAttribute("aria-pressed", String(shares));
      label.textContent = shares ? "Stop sharing" : "Share screen";
    };
    button.hidden = !this.room.may("publish") || navigator.mediaDevices?.getDisplayMedia === undefined;
    button.onclick = async () => {
      if (this.share !== null) {
        await this.share.stop();
        return;
      }
      button.disabled = true;
      try {
        const share = await this.room.shareScreen({ detail: this.choice.stills ? "ask" : "off" });
        this.share = share;
        share.on("ended", () => {
          this.share = null;
          dress();
        });
      } catch (error) {
        if (error instanceof WindlassError) this.say(`${error.message} ${error.hint}`, false, 6000);
      } finally {
        button.disabled = false;
        dress();
      }
    };
    return button;
  }

  private layersChoice(layers: Layers): HTMLElement {
    const choices: [Layers, string][] = [
      ["qhf", "Full"],
      ["qh", "Weak uplink"],
      ["q", "Very weak"],
    ];
    return chooser("Sending", choices, layers, (value) => {
      const video = this.publications.find((p) => p.kind === "video");
      void video?.setLayers(value);
    });
  }

  private rungChoice(layers: Layers): HTMLElement {
    const choices: [Rung, string][] = [["q+", "Quarter size"]];
    if (layers !== "q") choices.push(["h+", "Half size"]);
    return chooser("Low layer", choices, this.maxRung ?? "q+", (value) => {
      this.maxRung = value;
      for (const track of this.room.tracks) if (track.kind === "video") track.setMaxRung(value);
    });
  }

  private copyButton(style: string): HTMLElement {
    const label = make("span", {}, "Copy link");
    const button = make("button", { class: `${style} copy`, type: "button" }, icon("link"), label);
    button.onclick = async () => {
      const link = roomLink(new URL(location.href), this.choice.room);
      try {
        await navigator.clipboard.writeText(link);
        label.textContent = "Copied";
        setTimeout(() => {
          label.textContent = "Copy link";
        }, 2000);
      } catch {
        prompt("The link to this call:", link);
      }
    };
    return button;
  }

  private say(text: string, working: boolean, forMs?: number): void {
    this.banner.replaceChildren(working ? make("span", { class: "spinner", "aria-hidden": "true" }) : "", text);
    this.banner.hidden = false;
    if (forMs === undefined) return;
    setTimeout(() => {
      if (this.banner.textContent === text) this.banner.hidden = true;
    }, forMs);
  }
}

/** A labelled select element for the controls. */
function chooser<T extends string>(
  label: string,
  choices: readonly [T, string][],
  current: T,
  chosen: (value: T) => void,
): HTMLElement {
  const select = make("select", { "aria-label": label });
  for (const [value, text] of choices) select.append(make("option", { value, selected: value === current }, text));
  select.onchange = () => {
    const found = choices.find(([value]) => value === select.value);
    if (found !== undefined) chosen(found[0]);
  };
  return make("label", { class: "control send" }, make("span", {}, label), select);
}
