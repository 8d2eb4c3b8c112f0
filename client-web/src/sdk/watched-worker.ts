/** A worker that is asked all the time whether it still runs. */
import type { Ping, Pong } from "../worker/messages.js";
import { Heartbeat } from "./heartbeat.js";

/** How a worker ended: with an error (or it could not be started), or it answers no longer. */
export type WorkerEnd = "failed" | "silent";

/** How often it is asked, and how many questions it may leave unanswered. */
export interface Pace {
  everyMs: number;
  most: number;
}

/** A script that has come may take so long to run for the first time. */
const START_MS = 10_000;
/** One that is to end later has so long for what it was asked before. */
const DONE_MS = 1000;

/** See the module's head. `To` and `From` are its messages. */
export class WatchedWorker<To, From> {
  /** Whether it has run at all: true with its first answer, false if it ends before that. */
  readonly runs: Promise<boolean>;
  /** Null where the browser refused to start it. */
  readonly worker: Worker | null;
  private settle: (runs: boolean) => void = () => undefined;
  private readonly heartbeat: Heartbeat;
  private starting: ReturnType<typeof setTimeout> | undefined;
  private asking: ReturnType<typeof setInterval> | undefined;
  private over = false;

  /** `name` is for developers' tools; `onEnd` is called at most once, and not after {@link end}. */
  constructor(
    address: string,
    name: string,
    pace: Pace,
    private readonly onMessage: (message: From) => void,
    private readonly onEnd: (how: WorkerEnd) => void,
  ) {
    this.heartbeat = new Heartbeat(pace.everyMs, pace.most);
    this.runs = new Promise((resolve) => {
      this.settle = resolve;
    });
    this.worker = start(address, name);
    const { worker } = this;
    if (worker === null) {
      queueMicrotask(() => this.fail("failed"));
      return;
    }
    worker.onmessage = ({ data }: MessageEvent<From | Pong>) => {
      if (isPong(data)) this.answered();
      else this.onMessage(data);
    };
    worker.onerror = () => this.fail("failed");
    worker.onmessageerror = () => this.fail("failed");
    this.starting = setTimeout(() => this.fail("silent"), START_MS);
    this.ping();
  }

  post(message: To, transfer: Transferable[] = []): void {
    this.worker?.postMessage(message, transfer);
  }

  /** Ends it; nothing is heard of it any more. */
  end(): void {
    this.forget();
    if (this.worker !== null) this.worker.onmessage = null;
    this.worker?.terminate();
  }

  /** Ends it when it has had time to do what it was asked; nothing is heard of it any more. */
  endLater(): void {
    this.forget();
    const { worker } = this;
    if (worker === null) return;
    worker.onmessage = null;
    setTimeout(() => worker.terminate(), DONE_MS);
  }

  /** Asks it nothing more, and ends it if it answers once again. */
  endOnceItAnswers(): void {
    this.forget();
    const { worker } = this;
    if (worker !== null) worker.onmessage = () => worker.terminate();
  }

  private ping(): void {
    this.worker?.postMessage({ type: "ping" } satisfies Ping);
  }

  private answered(): void {
    this.heartbeat.heard();
    if (this.asking !== undefined || this.over) return;
    clearTimeout(this.starting);
    this.settle(true);
    this.asking = setInterval(() => {
      if (this.heartbeat.asks(performance.now())) this.ping();
      else this.fail("silent");
    }, this.heartbeat.everyMs);
  }

  private fail(how: WorkerEnd): void {
    if (this.over) return;
    this.forget();
    this.onEnd(how);
  }

  private forget(): void {
    this.over = true;
    this.settle(false);
    clearTimeout(this.starting);
    clearInterval(this.asking);
  }
}

const isPong = (message: unknown): message is Pong => (message as { type?: unknown }).type === "pong";

/** Null where it comes from another origin, or no worker is allowed. */
function start(address: string, name: string): Worker | null {
  try {
    return new Worker(address, { type: "module", name });
  } catch {
    return null;
  }
}
