/** The panel of a moderator: the lobby, the participants and their grants, and the lock of the room. */
import type { Participant, Room } from "../sdk/index.js";
import { icon, make } from "./dom.js";
import { lineOf } from "./failure.js";
import { type Words, words } from "./language.js";

/** The panel in which a moderator admits, silences and removes participants. Hidden without the grant `moderate`. */
export class ModerationPanel {
  readonly button = make("button", { class: "control moderate", type: "button", "aria-expanded": "false" });
  readonly element = make("aside", { class: "moderation", hidden: true, "aria-label": words("moderate.panel") });
  private readonly locked = make("input", { type: "checkbox", name: "locked" });
  private readonly lobby = make("input", { type: "checkbox", name: "lobby" });
  private readonly waiting = make("ul", { class: "waiting", "aria-live": "polite" });
  private readonly people = make("ul", { class: "people" });
  /** The ids of participants whom this panel has stopped from sending. */
  private readonly stopped = new Set<string>();
  private readonly ends: (() => void)[];

  constructor(
    private readonly room: Room,
    private readonly say: (text: string) => void,
  ) {
    this.locked.onchange = () => this.do(room.moderate.lock(this.locked.checked));
    this.lobby.onchange = () => this.do(room.moderate.setLobby(this.lobby.checked));
    this.button.onclick = () => this.open(this.element.hidden === true);
    const onKey = ({ key }: KeyboardEvent) => {
      if (key !== "Escape") return;
      this.open(false);
      this.button.focus();
    };
    this.button.onkeydown = onKey;
    this.element.onkeydown = onKey;
    this.element.append(
      make("label", {}, this.locked, words("moderate.lock")),
      make("label", {}, this.lobby, words("moderate.lobby")),
      this.waiting,
      make("h2", {}, words("moderate.people")),
      this.people,
    );
    const show = () => this.show();
    this.ends = [
      room.on("participant", show),
      room.on("participantLeft", show),
      room.on("reconnected", show),
      room.on("moved", show),
      room.on("grants", show),
      room.on("locked", show),
      room.on("lobby", () => {
        // The moderator must see that somebody waits.
        if (room.waiting.length > 0) this.open(true);
        this.show();
      }),
    ];
    this.show();
  }

  /** Removes the listeners. */
  close(): void {
    for (const end of this.ends) end();
  }

  private open(open: boolean): void {
    this.element.hidden = !open || !this.room.may("moderate");
    this.button.setAttribute("aria-expanded", String(!this.element.hidden));
  }

  private show(): void {
    const { room } = this;
    this.button.hidden = !room.may("moderate");
    if (this.button.hidden) this.open(false);
    this.locked.checked = room.entry.locked;
    this.lobby.checked = room.entry.lobby;
    const count = room.waiting.length;
    this.button.replaceChildren(
      icon("shield"),
      make("span", {}, count > 0 ? words("moderate.waiting", { count }) : words("moderate")),
    );
    this.waiting.replaceChildren(
      ...room.waiting.map((knock) =>
        make(
          "li",
          {},
          make("span", { class: "who" }, words("moderate.waits", { name: knock.name })),
          this.act(words("moderate.admit"), () => room.moderate.admit(knock)),
          this.act(words("moderate.refuse"), () => room.moderate.refuse(knock), "hard"),
        ),
      ),
    );
    this.people.replaceChildren(...room.participants.map((person) => this.person(person)));
  }

  private person(person: Participant): HTMLElement {
    const { moderate } = this.room;
    const stopped = this.stopped.has(person.id);
    const stop = async () => {
      const others = ["subscribe", "enhance", "data"] as const;
      await moderate.setGrants(person, stopped ? ["publish", ...others] : others);
      if (stopped) this.stopped.delete(person.id);
      else this.stopped.add(person.id);
      this.show();
    };
    return make(
      "li",
      {},
      make("span", { class: "who" }, person.name),
      this.act(words(stopped ? "moderate.allow" : "moderate.stop"), stop),
      this.act(words("moderate.remove"), () => moderate.remove(person), "hard"),
      // A ban is by identity.
      person.identity === undefined ? null : this.act(words("moderate.ban"), () => moderate.ban(person), "hard"),
    );
  }

  private act(label: Words, act: () => Promise<void>, style = ""): HTMLElement {
    const button = make("button", { type: "button", class: style }, label);
    button.onclick = () => this.do(act());
    return button;
  }

  private do(done: Promise<void>): void {
    done.catch((error: unknown) => {
      this.say(lineOf(error));
      this.show();
    });
  }
}
