/**
 * The worker that all encoded frames of a room pass through (`worker/relay.ts`), as the page sees it.
 *
 * A browser gives a frame to its transform's worker and to nobody else, whatever becomes of that worker. So a transform
 * is set only once the relay is known to run; where it ends or falls silent under way, all transforms are set again with
 * a new one. (Taking a transform off does not let frames pass in Chromium, and one that comes later than its
 * transceiver is passed by; one that replaces another works at any time.)
 */
import type { TakeCopies, ToRelay, TransformOptions, TransformRole } from "../worker/messages.js";
import { type Assets, copyWorker, keepWorker, workerAddress } from "./assets.js";
import { WatchedWorker, type WorkerEnd } from "./watched-worker.js";

/** Who enters a room waits no longer for it. */
const START_MS = 2000;
/** A new one must run after this time, or none will. */
const REPLACE_MS = 3000;
/** It has nothing to do that takes time; but a busy machine may let it wait, so after two each next one is given twice as long. */
const PACE = { everyMs: 100, most: 4 };
/** So many that ended are replaced, unless some time passes in between. */
const MOST_REPLACED = 5;
const FORGIVEN_MS = 60_000;

type RelayWorker = WatchedWorker<ToRelay, never>;

/** Who takes copies of frames. */
interface CopyTaker {
  post(message: TakeCopies, transfer: Transferable[]): void;
}

/** See the module's head. */
export class Relay {
  /** Called where frames that pass through it cannot go on: what they are of must be sent and received anew, without. */
  readonly onLost = new Set<() => void>();
  private current: RelayWorker | null = null;
  private starting: Promise<void> | null = null;
  /** What fell silent. */
  private readonly silent = new Set<RelayWorker>();
  private readonly passages = new Set<Passage>();
  private replaced = 0;
  private replacedAt = 0;
  private lastId = 0;
  private over = typeof RTCRtpScriptTransform === "undefined";

  constructor(private readonly assets: Assets) {}

  /** Whether frames can pass through it. */
  get works(): boolean {
    return this.current !== null;
  }

  /** Starts it, unless it runs or cannot; resolves when that is known, or after two seconds. */
  async ready(): Promise<boolean> {
    if (this.current === null && !this.over) await this.another(START_MS);
    return this.works;
  }

  /** Lets the frames of a receiver or sender pass through it; null: it does not work. Of one that has just been made only. */
  pass(end: RTCRtpReceiver | RTCRtpSender): Passage | null {
    const { current } = this;
    if (current === null) return null;
    const passage = new Passage(end, ++this.lastId, (ended) => this.passages.delete(ended));
    this.passages.add(passage);
    passage.lead(current, false);
    return passage;
  }

  /** Ends it. */
  close(): void {
    this.over = true;
    this.current?.end();
    this.current = null;
    for (const worker of this.silent) worker.end();
  }

  /** Has another worker be the current one; resolves when that is so, or cannot be, or after `mostMs`. */
  private async another(mostMs: number): Promise<void> {
    this.starting ??= this.start().finally(() => {
      this.starting = null;
    });
    await Promise.race([this.starting, new Promise((resolve) => setTimeout(resolve, mostMs))]);
  }

  private async start(): Promise<void> {
    const { worker: url } = this.assets;
    const known = workerAddress(url);
    // A page's policy may allow no workers of its own making.
    const addresses = known === url ? [await copyWorker(url), url] : [known, url];
    const pace = { ...PACE, most: PACE.most * 2 ** Math.max(0, this.replaced - 1) };
    for (const address of addresses) {
      if (address === null || this.over) continue;
      const worker: RelayWorker = new WatchedWorker(
        address,
        "windlass relay",
        pace,
        () => undefined,
        (how) => void this.replace(worker, how),
      );
      if (!(await worker.runs)) continue;
      if (this.over) return worker.end();
      keepWorker(url, address);
      this.current = worker;
      return;
    }
  }

  /** A worker has ended. Until the next one runs it stays the current one: what begins to pass meanwhile is led on with the rest. */
  private async replace(worker: RelayWorker, how: WorkerEnd): Promise<void> {
    if (this.current !== worker) return worker.end();
    // Chromium kills a worker that hangs two seconds after its end, and with it the transforms that took its transforms' places.
    if (how === "silent") {
      this.silent.add(worker);
      worker.endOnceItAnswers();
    }
    const now = performance.now();
    if (now - this.replacedAt > FORGIVEN_MS) this.replaced = 0;
    this.replacedAt = now;
    if (this.replaced++ < MOST_REPLACED) await this.another(REPLACE_MS);
    if (how === "failed") setTimeout(() => worker.end());
    const { current } = this;
    if (current === null) return; // closed meanwhile
    if (current !== worker) {
      for (const passage of this.passages) passage.lead(current, true);
      return;
    }
    this.current = null;
    if (this.passages.size === 0) return;
    this.over = true;
    for (const lost of [...this.onLost]) lost();
  }
}

/** The way of one receiver's or sender's frames through the relay. */
export class Passage {
  private worker: RelayWorker | null = null;
  private taker: CopyTaker | null = null;

  constructor(
    private readonly end: RTCRtpReceiver | RTCRtpSender,
    private readonly id: number,
    private readonly onClose: (passage: Passage) => void,
  ) {}

  /** Hands copies of the frames to a worker, and to no other any more; null: to nobody. */
  copyTo(taker: CopyTaker | null): void {
    this.taker = taker;
    if (taker === null || this.worker === null) return;
    const { port1, port2 } = new MessageChannel();
    this.worker.post({ type: "handCopies", id: this.id, port: port1 }, [port1]);
    taker.post({ type: "takeCopies", port: port2 }, [port2]);
  }

  /** Leads the frames through that worker from now on; `again`: some were lost in another. */
  lead(through: RelayWorker, again: boolean): void {
    this.worker = through;
    const { end, id } = this;
    const role: TransformRole = end instanceof RTCRtpReceiver ? "received" : "sent";
    const options: TransformOptions = { role, id, keyFrame: again && role === "received" };
    if (through.worker === null) return;
    end.transform = new RTCRtpScriptTransform(through.worker, options);
    this.copyTo(this.taker);
    if (again && end instanceof RTCRtpSender) askKeyFrames(end);
  }

  /** The receiver or sender has ended. */
  close(): void {
    this.onClose(this);
  }
}

/** Has a sender begin anew with key frames. */
function askKeyFrames(sender: RTCRtpSender): void {
  const parameters = sender.getParameters();
  const encodingOptions = parameters.encodings.map(() => ({ keyFrame: true }));
  sender.setParameters(parameters, { encodingOptions }).catch(() => undefined);
}
