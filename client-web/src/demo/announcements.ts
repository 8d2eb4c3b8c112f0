/** What is announced of a call: who comes and goes, who is muted, what is shared, and whose picture is enhanced. */
import type { Participant, Room } from "../sdk/index.js";
import type { Announcer } from "./announcer.js";
import { type MessageKey, say } from "./language.js";
import { raisesHand } from "./reactions.js";

/** Participants from which on only those who come, go and share are announced: the rest would never end. */
const MAX_TOLD = 6;
/** A picture's state is announced when it has lasted for this time, milliseconds. */
const SETTLE_MS = 3000;

/** What was known of a participant. */
interface Known {
  muted: boolean;
  shares: boolean;
  raised: boolean;
  enhanced: boolean | null;
  settle: ReturnType<typeof setTimeout> | undefined;
}

/** Announces to screen readers who comes and goes, who is muted, and what is shared. */
export class Announcements {
  private readonly known = new Map<Participant, Known>();
  private readonly ends: (() => void)[];
  /** Whether who comes now is new: who was there already is reported right after the join, in a task before. */
  private settled = false;

  constructor(
    room: Room,
    private readonly announcer: Announcer,
  ) {
    setTimeout(() => {
      this.settled = true;
    }, 0);
    this.ends = [room.on("participant", (who) => this.came(who)), room.on("participantLeft", (who) => this.left(who))];
  }

  /** Ends them. */
  close(): void {
    for (const end of this.ends.splice(0)) end();
    for (const { settle } of this.known.values()) clearTimeout(settle);
    this.known.clear();
  }

  private came(who: Participant): void {
    if (who.isSelf) return;
    const known: Known = {
      muted: who.microphone?.muted ?? false,
      shares: false,
      raised: raisesHand(who),
      enhanced: null,
      settle: undefined,
    };
    this.known.set(who, known);
    if (this.settled) this.tell(who, "said.joined", "there");
    this.ends.push(
      who.on("change", () => this.look(who, known)),
      // The element tells of its picture, whichever track it shows.
      listen(who.element, "state", () => this.picture(who, known)),
    );
  }

  private left(who: Participant): void {
    const known = this.known.get(who);
    if (known === undefined) return;
    clearTimeout(known.settle);
    this.known.delete(who);
    this.tell(who, "said.left", "there");
  }

  private look(who: Participant, known: Known): void {
    // Who is away or gone changes nothing itself.
    if (who.away || who.left || !this.known.has(who)) return;
    const shares = who.screen !== null;
    if (shares !== known.shares) this.tell(who, shares ? "said.shares" : "said.shares_no_more", "screen");
    known.shares = shares;
    const raised = raisesHand(who);
    if (raised !== known.raised) this.tell(who, raised ? "said.hand.up" : "said.hand.down", "hand");
    known.raised = raised;
    const muted = who.microphone?.muted ?? known.muted;
    if (muted !== known.muted && this.few) this.tell(who, muted ? "said.muted" : "said.unmuted", "sound");
    known.muted = muted;
  }

  private picture(who: Participant, known: Known): void {
    clearTimeout(known.settle);
    known.settle = setTimeout(() => {
      if (who.camera === null || who.camera.muted || !this.few) return;
      const enhanced = who.camera.state !== "native";
      // A picture begins plain: that is no news.
      const news = known.enhanced === null ? enhanced : enhanced !== known.enhanced;
      known.enhanced = enhanced;
      if (news) this.tell(who, enhanced ? "said.enhanced" : "said.plain", "picture");
    }, SETTLE_MS);
  }

  private get few(): boolean {
    return this.known.size <= MAX_TOLD;
  }

  private tell(who: Participant, key: MessageKey, subject: string): void {
    const name = who.name || say("guest");
    this.announcer.say(say(key, { name }), `${subject} of ${who.id}`);
  }
}

/** Listens to an element; the returned function ends that. */
function listen(element: Element, event: string, listener: () => void): () => void {
  element.addEventListener(event, listener);
  return () => element.removeEventListener(event, listener);
}
