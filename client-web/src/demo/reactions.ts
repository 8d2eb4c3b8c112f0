/** The raised hand, which all see until it is taken down, and reactions, which pass over the tile of who gives them. */
import type { Participant, Room } from "../sdk/index.js";
import type { Announcer } from "./announcer.js";
import { icon, make } from "./dom.js";
import { lineOf } from "./failure.js";
import { say, words, write } from "./language.js";
import { Popover } from "./popover.js";

const TOPIC = "reaction";
const REACTIONS = ["👍", "👏", "😂", "❤️", "🎉"] as const;
type Reaction = (typeof REACTIONS)[number];
/** Time for which a reaction is seen, milliseconds. */
const SEEN_MS = 4000;
/** Max reactions over one tile at a time. */
const MAX_SEEN = 8;

/** The attribute of a participant whose hand is raised. */
const HAND = "hand";

/** Whether somebody has raised a hand. */
export const raisesHand = ({ attributes }: Pick<Participant, "attributes">): boolean => attributes[HAND] === "up";

/** Where reactions are seen, and the own hand. */
export interface ReactionsHost {
  /** The tile of somebody; `null`: of this participant. */
  tileOf(who: Participant | null): HTMLElement | null;
  showOwnHand(raised: boolean): void;
  failed(text: string): void;
}

/** The buttons that raise the hand and send reactions, and what they show on tiles. */
export class Reactions {
  private readonly button = make(
    "button",
    { class: "control react", type: "button" },
    icon("hand"),
    make("span", {}, words("react")),
  );
  private readonly hand = make(
    "button",
    { class: "hand", type: "button", "aria-pressed": "false" },
    icon("hand"),
    make("span", {}, words("hand")),
  );
  private readonly list = make("div", {
    class: "menu reactions",
    role: "group",
    "aria-label": words("react"),
  });
  readonly element = new Popover(this.button, this.list, () => this.hand.focus()).element;
  private readonly ends: (() => void)[];

  constructor(
    private readonly room: Room,
    private readonly announcer: Announcer,
    private readonly host: ReactionsHost,
  ) {
    this.hand.onclick = () => this.toggleHand();
    this.list.append(this.hand, ...REACTIONS.map((reaction) => this.choice(reaction)));
    const granted = () => {
      this.element.hidden = !room.may("data");
    };
    granted();
    this.ends = [
      room.on("grants", granted),
      room.on("message", ({ topic, from, text }) => {
        const reaction = REACTIONS.find((known) => known === text);
        if (topic !== TOPIC || reaction === undefined) return;
        this.show(reaction, host.tileOf(from));
        announcer.say(say("said.reaction", { name: from.name || say("guest"), reaction }), `reaction of ${from.id}`);
      }),
    ];
  }

  /** Raises the own hand, or takes it down. */
  toggleHand(): void {
    if (!this.room.may("data")) return;
    const raised = !this.raised;
    const told = this.room.setAttributes({ [HAND]: raised ? "up" : null });
    this.dress();
    this.announcer.say(say(raised ? "said.own.hand.up" : "said.own.hand.down"), "own hand");
    told.catch((error: unknown) => {
      this.dress();
      this.host.failed(lineOf(error));
    });
  }

  /** Removes the listeners. */
  close(): void {
    for (const end of this.ends) end();
  }

  private get raised(): boolean {
    return raisesHand(this.room);
  }

  private dress(): void {
    const { raised } = this;
    this.hand.setAttribute("aria-pressed", String(raised));
    this.button.classList.toggle("raised", raised);
    const label = this.hand.querySelector("span");
    if (label !== null) write(label, words(raised ? "hand.down" : "hand"));
    this.host.showOwnHand(raised);
  }

  private choice(reaction: Reaction): HTMLButtonElement {
    const button = make("button", { class: "reaction", type: "button" }, reaction);
    button.onclick = () => {
      this.show(reaction, this.host.tileOf(null));
      // A reaction that comes late is none.
      this.room.send(TOPIC, reaction, { reliable: false }).catch(() => undefined);
    };
    return button;
  }

  private show(reaction: Reaction, tile: HTMLElement | null): void {
    if (tile === null || tile.querySelectorAll(".passing").length >= MAX_SEEN) return;
    const passing = make("span", { class: "passing", "aria-hidden": "true" }, reaction);
    passing.style.left = `${20 + Math.random() * 60}%`;
    tile.append(passing);
    setTimeout(() => passing.remove(), SEEN_MS);
  }
}
