/** A worker that is pinged all the time, to detect that it hangs. */
import type { Ping, Pong } from "../worker/messages.js";
import { Heartbeat } from "./heartbeat.js";

/** How a worker ended: by an error, a failed start included, or because it no longer answers. */
export type WorkerEnd = "failed" | "silent";

/** How a worker is pinged. */
export interface PingRate {
  intervalMs: number;
  /** Max pings in a row without an answer. */
  maxUnanswered: number;
}

/** Max time until the first answer, milliseconds. */
const START_TIMEOUT_MS = 10_000;
/** Time to finish its tasks for a worker that ends later, from its last answer on, milliseconds. */
const GRACE_MS = 1000;
/** Max time for that answer, milliseconds. */
const LAST_ANSWER_MS = 10_000;

/** `To` and `From` are the messages to and from the worker. */
export class WatchedWorker<To, From> {
  /** Resolves to true with the first answer, to false if the worker ends before that. */
  readonly runs: Promise<boolean>;
  /** Null where the browser rejected the start. */
  readonly worker: Worker | null;
  private settle: (runs: boolean) => void = () => undefined;
  private readonly heartbeat: Heartbeat;
  private starting: ReturnType<typeof setTimeout> | undefined;
  private pings: ReturnType<typeof setInterval> | undefined;
  private unanswered = 0;
  private ended = false;

  /** `name` appears in developers' tools. `onEnd` is called at most once, and not after {@link end}. */
  constructor(
    address: string,
    name: string,
    rate: PingRate,
    private readonly onMessage: (message: From) => void,
    private readonly onEnd: (how: WorkerEnd) => void,
  ) {
    this.heartbeat = new Heartbeat(rate.intervalMs, rate.maxUnanswered);
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
      if (isPong(data)) this.pong();
      else this.onMessage(data);
    };
    worker.onerror = () => this.fail("failed");
    worker.onmessageerror = () => this.fail("failed");
    this.starting = setTimeout(() => this.fail("silent"), START_TIMEOUT_MS);
    this.ping();
  }

  post(message: To, transfer: Transferable[] = []): void {
    this.worker?.postMessage(message, transfer);
  }

  /** Terminates the worker. No callback is called any more. */
  end(): void {
    this.unwatch();
    if (this.worker !== null) this.worker.onmessage = null;
    this.worker?.terminate();
  }

  /**
   * Terminates the worker a while after it has taken all messages so far, however busy the machine is. No callback is
   * called any more.
   */
  endLater(): void {
    this.unwatch();
    const { worker } = this;
    if (worker === null) return;
    this.ping();
    const late = setTimeout(() => worker.terminate(), LAST_ANSWER_MS);
    worker.onmessage = ({ data }: MessageEvent<From | Pong>) => {
      if (!isPong(data) || --this.unanswered > 0) return;
      clearTimeout(late);
      setTimeout(() => worker.terminate(), GRACE_MS);
    };
  }

  /** Stops pinging a silent worker, and terminates it if it answers after all. */
  endOnceItAnswers(): void {
    this.unwatch();
    const { worker } = this;
    if (worker !== null) worker.onmessage = () => worker.terminate();
  }

  private ping(): void {
    this.unanswered++;
    this.worker?.postMessage({ type: "ping" } satisfies Ping);
  }

  private pong(): void {
    this.unanswered--;
    this.heartbeat.answered();
    if (this.pings !== undefined || this.ended) return;
    clearTimeout(this.starting);
    this.settle(true);
    this.pings = setInterval(() => {
      if (this.heartbeat.ping(performance.now())) this.ping();
      else this.fail("silent");
    }, this.heartbeat.intervalMs);
  }

  private fail(how: WorkerEnd): void {
    if (this.ended) return;
    this.unwatch();
    this.onEnd(how);
  }

  private unwatch(): void {
    this.ended = true;
    this.settle(false);
    clearTimeout(this.starting);
    clearInterval(this.pings);
  }
}

const isPong = (message: unknown): message is Pong => (message as { type?: unknown }).type === "pong";

/** Null where the script is of another origin, or the policy of the page allows no worker. */
function start(address: string, name: string): Worker | null {
  try {
    return new Worker(address, { type: "module", name });
  } catch {
    return null;
  }
}
