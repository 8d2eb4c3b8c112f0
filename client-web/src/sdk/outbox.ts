/**
 * Messages to other participants on their way to the server: sent in order and no faster than the server takes them. A
 * reliable one waits for a connection, and is sent again where the connection was lost before the server took it;
 * receivers know it by its number.
 */
import { connectionLost, ended, WindlassError } from "./errors.js";
import type { Draft, Receiver } from "./message.js";
import type { SendData } from "./protocol.gen.js";
import type { Outcome } from "./socket.js";

/** Max number of messages that wait, or are not answered yet. */
export const MAX_WAITING = 256;
/** Max size of them together, bytes. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** What may be sent at once, and a second: a little less than what the server takes, which counts as they arrive. */
const MESSAGES = { burst: 30, perSecond: 19 };
/** Bytes of messages that may be sent at once, and a second, likewise below the server's limit. */
const BYTES = { burst: 96 * 1024, perSecond: 60 * 1024 };

/** A session, by which messages are sent. */
export interface MessagePath {
  sendData(message: SendData): Promise<Outcome>;
}

/** What it needs of its call. */
export interface OutboxHost {
  /** The session by which messages are sent now; null: there is none. */
  path(): MessagePath | null;
  /** The present id of a receiver; null: it is not in the room. */
  idOf(receiver: Receiver): string | null;
}

interface Entry extends Draft {
  readonly number: number;
  resolve(): void;
  reject(error: WindlassError): void;
  /** The session that it was sent by, and that has not answered; null: it is to be sent. */
  path: MessagePath | null;
  /** Whether that session did not take it because its server ends: the next one is to send it. */
  turnedAway: boolean;
}

/** The queue of messages that wait to be sent, or for the server's answer. */
export class Outbox {
  /** In the order in which they were given. */
  private readonly entries = new Set<Entry>();
  private bytes = 0;
  private lastNumber = 0;
  private messageRate = new Allowance(MESSAGES);
  private byteRate = new Allowance(BYTES);
  /** The session by which the last message was sent. */
  private lastPath: MessagePath | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private over = false;

  constructor(private readonly host: OutboxHost) {}

  /** Sends a message. Resolves when the server has taken it; rejects with a {@link WindlassError}. */
  send(draft: Draft): Promise<void> {
    if (this.over) return Promise.reject(ended());
    if (draft.to?.some((receiver) => this.isGone(receiver))) return Promise.reject(unknownReceiver());
    if (this.entries.size >= MAX_WAITING || this.bytes + draft.bytes > MAX_WAITING_BYTES) {
      return Promise.reject(tooMany());
    }
    return new Promise((resolve, reject) => {
      const entry: Entry = { ...draft, number: ++this.lastNumber, resolve, reject, path: null, turnedAway: false };
      this.entries.add(entry);
      this.bytes += draft.bytes;
      this.flush();
    });
  }

  /** Sends what can be sent now. Called when the session has changed. */
  flush(): void {
    const path = this.host.path();
    if (path === null || this.over) return;
    if (path !== this.lastPath) {
      this.lastPath = path;
      this.messageRate = new Allowance(MESSAGES);
      this.byteRate = new Allowance(BYTES);
    }
    for (const entry of [...this.entries]) {
      if (entry.path === path) continue;
      if (entry.turnedAway) this.takeBack(entry);
      // It is on its way by the former session: what comes after it must not arrive before it.
      if (entry.path !== null) return;
      const now = performance.now();
      const wait = Math.max(this.messageRate.wait(1, now), this.byteRate.wait(entry.bytes, now));
      if (wait > 0) {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.flush(), wait);
        return;
      }
      this.sendBy(path, entry);
    }
  }

  /** The connection is lost: what is not reliable and was not sent is of no use any more. */
  interrupted(): void {
    for (const entry of [...this.entries]) {
      if (entry.path === null && entry.message.reliable === false) this.settle(entry, connectionLost());
    }
  }

  /** The call is over. */
  end(reason: WindlassError): void {
    this.over = true;
    clearTimeout(this.timer);
    for (const entry of [...this.entries]) this.settle(entry, reason);
  }

  private sendBy(path: MessagePath, entry: Entry): void {
    const ids = entry.to?.map((receiver) => this.host.idOf(receiver)).filter((id) => id !== null);
    if (ids?.length === 0 && entry.to?.length !== 0) {
      this.settle(entry, unknownReceiver());
      return;
    }
    this.messageRate.spend(1);
    this.byteRate.spend(entry.bytes);
    entry.path = path;
    const { message, number } = entry;
    void path.sendData({ ...message, number, ...(ids === undefined ? {} : { to: ids }) }).then((outcome) => {
      this.answered(entry, outcome);
      this.flush();
    });
  }

  private answered(entry: Entry, outcome: Outcome): void {
    if (outcome.type === "done") this.settle(entry, null);
    else if (entry.message.reliable === false) this.settle(entry, outcome.error);
    else if (outcome.type === "lost") this.takeBack(entry);
    else if (outcome.error.code === "shutting_down" || outcome.error.code === "not_joined") entry.turnedAway = true;
    else this.settle(entry, outcome.error);
  }

  private takeBack(entry: Entry): void {
    entry.path = null;
    entry.turnedAway = false;
  }

  private settle(entry: Entry, error: WindlassError | null): void {
    if (!this.entries.delete(entry)) return;
    this.bytes -= entry.bytes;
    if (error === null) entry.resolve();
    else entry.reject(error);
  }

  private isGone(receiver: Receiver): boolean {
    // While there is no connection nobody is known to have left.
    return typeof receiver === "string"
      ? this.host.path() !== null && this.host.idOf(receiver) === null
      : receiver.left;
  }
}

/** A token bucket. Times are milliseconds and arguments. */
class Allowance {
  private tokens: number;
  private at = 0;

  constructor(private readonly limit: { readonly burst: number; readonly perSecond: number }) {
    this.tokens = limit.burst;
  }

  /** The time until there are `count`. */
  wait(count: number, now: number): number {
    const { burst, perSecond } = this.limit;
    this.tokens = Math.min(burst, this.tokens + ((now - this.at) * perSecond) / 1000);
    this.at = now;
    return this.tokens >= count ? 0 : Math.ceil(((count - this.tokens) * 1000) / perSecond);
  }

  /** Takes them. */
  spend(count: number): void {
    this.tokens -= count;
  }
}

function unknownReceiver(): WindlassError {
  return new WindlassError(
    "unknown_participant",
    "Who should get the message is not in the call.",
    "Send it to somebody of `participants`.",
  );
}

function tooMany(): WindlassError {
  return new WindlassError(
    "rate_limited",
    `${MAX_WAITING} messages, or 1 MiB, wait to be sent.`,
    "Send less often: wait until a former `send` has resolved.",
  );
}
