/** The call screen: bar, stage, controls, and what is said of the call. */
import type { Room, Rung, WindlassError } from "../sdk/index.js";
import { Announcements } from "./announcements.js";
import { Announcer } from "./announcer.js";
import { Banner } from "./banner.js";
import { bar, emptyStage } from "./call-frame.js";
import { Chat } from "./chat.js";
import { Controls } from "./controls.js";
import { icon, make } from "./dom.js";
import { encryptedBadge } from "./encrypted.js";
import { lineOf, saidOf } from "./failure.js";
import { HearButton } from "./hear.js";
import { type Key, listenForKeys } from "./keys.js";
import { say, words } from "./language.js";
import { ModerationPanel } from "./moderation.js";
import type { PageOptions } from "./options.js";
import { OwnTile } from "./own.js";
import { preferences } from "./preferences.js";
import { barsOf } from "./quality.js";
import { Reactions } from "./reactions.js";
import { RecordedBadge } from "./recorded.js";
import { Sending } from "./sending.js";
import { openSettings } from "./settings.js";
import { Sharing } from "./sharing.js";
import { Stage } from "./stage.js";
import type { Choice } from "./start.js";
import { StillLight } from "./still-light.js";
import { Tiles } from "./tiles.js";

/** Time for which most of what is said stays, milliseconds. */
const SAID_MS = 6000;

/** The screen of a call, from joining to leaving. */
export class CallScreen {
  readonly element: HTMLElement;
  private readonly banner = new Banner();
  private readonly announcer = new Announcer();
  private readonly stills = new StillLight();
  private readonly count = make("span", { class: "count" });
  private readonly empty: HTMLElement;
  private readonly own: OwnTile | null;
  private readonly sending: Sending;
  private readonly sharing: Sharing;
  private readonly stage: Stage;
  private readonly tiles: Tiles;
  private readonly controls: Controls;
  private readonly hear: HearButton;
  private readonly recorded: RecordedBadge;
  private readonly moderation: ModerationPanel;
  private readonly chat: Chat;
  private readonly reactions: Reactions;
  private readonly endings: (() => void)[] = [];
  private away = false;
  private figures = false;

  constructor(
    private readonly room: Room,
    private readonly choice: Choice,
    options: PageOptions,
    ended: (reason: WindlassError) => void,
  ) {
    const { loopback, stills } = choice;
    const failed = (error: unknown) => this.tell(lineOf(error));
    this.sending = new Sending(room, choice, { changed: () => this.dress(), failed });
    this.sharing = new Sharing(room, stills, {
      show: (shares, busy) => this.controls.showShare(shares, busy),
      failed,
    });
    // In a call with oneself the own picture is on the stage already; who only watches has none.
    this.own = loopback || !this.sending.wanted ? null : new OwnTile(choice.name);
    this.moderation = new ModerationPanel(room, (text) => this.tell(text));
    this.chat = new Chat(room, this.announcer, (text) => this.tell(text));
    this.reactions = new Reactions(room, this.announcer, {
      tileOf: (who) => (who === null ? this.own?.element : this.tiles.tileOf(who)?.element) ?? null,
      showOwnHand: (raised) => this.own?.showHand(raised),
      failed: (text) => this.tell(text),
    });
    this.stage = new Stage(this.own, () => this.arranged());
    const view = options.view ?? (loopback ? "split" : "enhanced");
    const maxRung = options.maxRung ?? (loopback ? "q+" : null);
    this.tiles = new Tiles(room, this.stage, { view, adaptive: options.adaptive }, maxRung);
    this.controls = this.makeControls(maxRung ?? "q+");
    const named = { room: choice.room, loopback, closed: room.identity !== "" };
    this.empty = emptyStage(named);
    this.hear = new HearButton(room);
    this.recorded = new RecordedBadge(room);
    this.stage.element.append(this.empty, this.hear.element, this.moderation.element);
    this.element = make(
      "main",
      { class: loopback ? "call alone" : "call" },
      bar(named, ...encryptedBadge(room), this.recorded.element, this.count, this.stills.element),
      this.banner.element,
      this.stage.element,
      this.chat.element,
      this.controls.element,
      this.announcer.element,
    );
    if (stills) this.stills.watch(room);
    this.listen(ended);
    this.showFigures(options.figures);
    this.arranged();
    this.dress();
  }

  /** Sends what was chosen, and plays on the chosen loudspeaker. */
  async begin(): Promise<void> {
    const { speaker } = preferences;
    if (speaker !== "") this.room.devices.setSpeaker(speaker).catch(() => undefined);
    await this.sending.begin();
  }

  /** Says that a newer invitation is kept. */
  renewed(): void {
    this.banner.say(words("token.renewed"), { forMs: SAID_MS });
  }

  /** Closes the screen and what is on it. */
  close(): void {
    for (const end of this.endings.splice(0)) end();
    const { stills, moderation, chat, reactions, announcer, sharing, tiles, stage, sending, hear, recorded } = this;
    for (const part of [stills, moderation, chat, reactions, announcer, sharing, tiles, stage, sending, hear, recorded])
      part.close();
    for (const dialog of document.querySelectorAll("dialog")) dialog.close();
    this.element.remove();
  }

  private listen(ended: (reason: WindlassError) => void): void {
    const { room, banner } = this;
    const announcements = new Announcements(room, this.announcer);
    this.endings.push(
      () => announcements.close(),
      listenForKeys((key) => this.press(key)),
      room.on("reconnecting", ({ cause, attempt }) => {
        this.setAway(true);
        this.showQuality();
        const text = words(attempt > 1 ? "reconnecting.again" : "reconnecting", {
          cause: saidOf(cause).message,
          attempt,
        });
        banner.say(text, { working: true });
      }),
      room.on("reconnected", () => {
        this.setAway(false);
        this.showQuality();
        banner.say(words("reconnected"), { forMs: 3000 });
      }),
      room.on("quality", () => this.showQuality()),
      room.on("grants", () => this.grantsChanged()),
      room.on("locked", ({ locked }) => banner.say(words(locked ? "locked" : "opened"), { forMs: SAID_MS })),
      room.on("recording", ({ on }) => banner.say(words(on ? "recorded.begins" : "recorded.ends"), { forMs: SAID_MS })),
      room.on("waiting", () => banner.say(words("waiting.again"), { working: true })),
      room.on("refused", (error) => this.tell(lineOf(error))),
      room.on("disconnected", ({ reason }) => ended(reason)),
    );
    for (const input of [room.camera, room.microphone]) {
      const { kind } = input;
      this.endings.push(
        input.on("ended", ({ replacedBy }) => {
          const device = replacedBy?.label ?? "";
          banner.say(words(replacedBy === null ? `gone.${kind}` : "gone.replaced", { device }), { forMs: SAID_MS });
        }),
      );
    }
  }

  /** A moderator has changed the grants: sending has ended, or is allowed again. */
  private grantsChanged(): void {
    const { room, sending, choice } = this;
    if (!sending.wanted || choice.loopback) return;
    const may = room.may("publish");
    if (!may && sending.begun) {
      sending.ended();
      this.element.classList.add("silenced");
      this.controls.offerAgain(false);
      this.banner.say(words("silenced"));
    } else if (may && !sending.begun) {
      this.controls.offerAgain(true);
      this.banner.say(words("silenced.no_more"), { forMs: SAID_MS });
    }
  }

  private sendAgain(): void {
    this.element.classList.remove("silenced");
    this.controls.offerAgain(false);
    void this.sending.begin();
  }

  private setAway(away: boolean): void {
    this.away = away;
    this.arranged();
  }

  /** Shows what the layout leaves to show. */
  private arranged(): void {
    this.empty.hidden = this.stage.count > 0 || this.away;
    const { people } = this.tiles;
    this.count.replaceChildren(icon("people"), `${people}`, make("span", { class: "sr" }, words("count")));
    this.controls.showLayout(this.stage.layout);
  }

  /** Shows what is sent. */
  private dress(): void {
    this.controls.dress();
    this.own?.show(this.sending);
  }

  /** Shows how well this participant's own connection works. */
  private showQuality(): void {
    const { away, room } = this;
    this.own?.bars.show(barsOf({ away, quality: room.quality }));
  }

  private showFigures(shown: boolean): void {
    this.figures = shown;
    this.element.classList.toggle("figures", shown);
  }

  private tell(text: string): void {
    this.banner.say(text, { forMs: SAID_MS });
  }

  private press(key: Key): void {
    const { sending, stage } = this;
    const toggle = (kind: "camera" | "microphone") => {
      if (!sending.has(kind) || !sending.begun) return;
      const on = !sending.on(kind);
      void sending.set(kind, on);
      this.announcer.say(say(`said.own.${kind}.${on ? "on" : "off"}`), kind);
    };
    const acts: Record<Key, () => void> = {
      m: () => toggle("microphone"),
      c: () => toggle("camera"),
      s: () => void this.sharing.toggle(),
      t: () => this.choice.loopback || this.chat.toggle(),
      h: () => this.choice.loopback || this.reactions.toggleHand(),
      g: () => stage.toggleLayout(),
      p: () => stage.pin(stage.current),
      f: () => void stage.current?.toggleFullScreen(),
      i: () => this.showFigures(!this.figures),
      PageDown: () => stage.turn(1),
      PageUp: () => stage.turn(-1),
    };
    acts[key]();
  }

  private makeControls(rung: Rung): Controls {
    const { room, sending } = this;
    const { loopback, layers } = this.choice;
    return new Controls(
      room,
      sending,
      {
        share: () => void this.sharing.toggle(),
        toggleLayout: () => this.stage.toggleLayout(),
        toggleFigures: () => this.showFigures(!this.figures),
        figuresShown: () => this.figures,
        settings: () => openSettings(room, sending, (error) => this.tell(lineOf(error))),
        setRung: (chosen) => this.tiles.setMaxRung(chosen),
        sendAgain: () => this.sendAgain(),
      },
      { loopback, rung, layers, panels: [this.chat.button, this.reactions.element, this.moderation.button] },
    );
  }
}
