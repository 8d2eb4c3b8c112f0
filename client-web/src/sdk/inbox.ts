/**
 * Messages of other participants, each once. One arrives twice where this participant is on two servers for a while, as
 * the room migrates, and where its sender lost its connection and sent it again.
 */
import type { ReceivedMessage } from "./message.js";
import type { ParticipantInfo } from "./protocol.js";

/** Max number of senders that are remembered. */
const MAX_SENDERS = 2000;
/** How far a message may be behind the newest one of its sender. */
const WINDOW = 1024;

/** Filters received messages, so that each reaches the page once. */
export class Inbox {
  /** What was received, by the sender's id; of one with several ids, one after another, the same object. */
  private readonly senders = new Map<string, Sender>();

  /** Notes a participant, who may have had another id before. */
  met({ id, was }: Pick<ParticipantInfo, "id" | "was">): void {
    const former = was === undefined ? undefined : this.senders.get(was);
    const known = this.senders.get(id);
    const numbers = (known?.numbers.isEmpty === false ? known.numbers : former?.numbers) ?? known?.numbers;
    this.remember(id, { numbers: numbers ?? new Seen(), seqs: known?.seqs ?? new Seen() });
  }

  /** Whether a message is new. */
  takes({ from, was, number, seq }: Pick<ReceivedMessage, "from" | "was" | "number" | "seq">): boolean {
    if (!this.senders.has(from)) this.met({ id: from, ...(was === undefined ? {} : { was }) });
    const sender = this.senders.get(from);
    // The server counts from the start for each id; the sender itself does not.
    return (number === undefined ? sender?.seqs.add(seq) : sender?.numbers.add(number)) ?? true;
  }

  private remember(id: string, sender: Sender): void {
    this.senders.delete(id); // to the end of the order
    this.senders.set(id, sender);
    for (const oldest of this.senders.keys()) {
      if (this.senders.size <= MAX_SENDERS) return;
      this.senders.delete(oldest);
    }
  }
}

interface Sender {
  readonly numbers: Seen;
  readonly seqs: Seen;
}

/** The numbers that have come, within a window behind the largest. */
class Seen {
  private largest = 0;
  private readonly recent = new Set<number>();

  get isEmpty(): boolean {
    return this.recent.size === 0;
  }

  /** Adds a number; false where it was there, or is too old to tell. */
  add(number: number): boolean {
    if (number <= this.largest - WINDOW || this.recent.has(number)) return false;
    this.recent.add(number);
    this.largest = Math.max(this.largest, number);
    if (this.recent.size > 2 * WINDOW) {
      for (const old of this.recent) if (old <= this.largest - WINDOW) this.recent.delete(old);
    }
    return true;
  }
}
