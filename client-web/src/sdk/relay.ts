/**
 * The page's end of the relay, the worker through which all encoded frames of a room pass (`worker/relay.ts`).
 *
 * A browser hands frames to the worker of their transform only, even if that worker has ended. So transforms are set
 * only once the relay runs. Where it ends or hangs, all transforms are set again with a new worker. (In Chromium,
 * frames do not pass after a transform was removed, and a transform that is set later than its transceiver is ignored;
 * one that replaces another works at any time.)
 */
import type { TakeCopies, ToRelay, TransformOptions, TransformRole } from "../worker/messages.js";
import { type Encryption, giveKeys } from "./encryption.js";
import { WatchedWorker, type WorkerEnd } from "./watched-worker.js";
import type { WorkerScript } from "./worker-script.js";

/** Max wait for the first relay, milliseconds: joining a room waits for it. */
const START_TIMEOUT_MS = 2000;
/** Max wait for the first relay where frames are encrypted, milliseconds: no call is possible without it. */
const MAX_START_MS = 10_000;
/** Max wait for a replacement, milliseconds. */
const REPLACE_TIMEOUT_MS = 3000;
/**
 * The relay has no long tasks, but a busy machine delays it: after two replacements each next one gets twice the
 * patience.
 */
const PING_RATE = { intervalMs: 100, maxUnanswered: 4 };
/** Max replacements in a row; the count is reset after {@link FORGIVEN_MS} without one. */
const MAX_REPLACEMENTS = 5;
/** Milliseconds. */
const FORGIVEN_MS = 60_000;

type RelayWorker = WatchedWorker<ToRelay, never>;

/** A worker that takes copies of frames. */
interface CopyReceiver {
  post(message: TakeCopies, transfer: Transferable[]): void;
}

/** Runs the relay's worker, and replaces it where it ends or hangs. */
export class Relay {
  /** Called when no relay can be started any more: tracks need new connections, without a relay. */
  readonly onLost = new Set<() => void>();
  private current: RelayWorker | null = null;
  private starting: Promise<void> | null = null;
  /** Workers that hang. */
  private readonly silent = new Set<RelayWorker>();
  private readonly passages = new Set<Passage>();
  /** Gives the current worker no more keys. */
  private stopKeys = (): void => undefined;
  private replacements = 0;
  private replacedAt = 0;
  private lastId = 0;
  private unavailable = typeof RTCRtpScriptTransform === "undefined";

  /** `encryption`: null where frames are not encrypted end to end. */
  constructor(
    private readonly script: WorkerScript,
    readonly encryption: Encryption | null = null,
  ) {}

  /** Whether frames are encrypted end to end. */
  get encrypts(): boolean {
    return this.encryption !== null;
  }

  /** Whether frames can pass through the relay. */
  get works(): boolean {
    return this.current !== null;
  }

  /**
   * Starts the relay, unless it runs or cannot run. Resolves to {@link works} when that is known, or after two seconds
   * (ten where frames are encrypted).
   */
  async ready(): Promise<boolean> {
    const max = this.encrypts ? MAX_START_MS : START_TIMEOUT_MS;
    if (this.current === null && !this.unavailable) await this.replaceWorker(max);
    return this.works;
  }

  /**
   * Leads the frames of a receiver or sender, just made, through the relay; null: it does not work. Then nothing may be
   * sent or received that is encrypted: the connection is given up.
   */
  pass(end: RTCRtpReceiver | RTCRtpSender): Passage | null {
    const { current } = this;
    if (current === null) {
      if (this.encrypts) for (const lost of [...this.onLost]) queueMicrotask(lost);
      return null;
    }
    const passage = new Passage(end, ++this.lastId, this.encrypts, (ended) => this.passages.delete(ended));
    this.passages.add(passage);
    passage.route(current, false);
    return passage;
  }

  /** Terminates the relay. */
  close(): void {
    this.unavailable = true;
    this.stopKeys();
    this.current?.end();
    this.current = null;
    for (const worker of this.silent) worker.end();
  }

  /** Starts another worker. Resolves when it is the current one, or cannot be started, or after `maxMs`. */
  private async replaceWorker(maxMs: number): Promise<void> {
    this.starting ??= this.start().finally(() => {
      this.starting = null;
    });
    await Promise.race([this.starting, new Promise((resolve) => setTimeout(resolve, maxMs))]);
  }

  private async start(): Promise<void> {
    const patience = PING_RATE.maxUnanswered * 2 ** Math.max(0, this.replacements - 1);
    const { addresses } = this.script;
    for (const address of addresses) {
      if (this.unavailable) return;
      const worker: RelayWorker = new WatchedWorker(
        address,
        "windlass relay",
        { ...PING_RATE, maxUnanswered: patience },
        () => undefined,
        (how) => void this.replace(worker, how),
      );
      if (!(await worker.runs)) continue;
      if (this.unavailable) return worker.end();
      this.script.keep(address);
      this.stopKeys();
      this.stopKeys = giveKeys(this.encryption, worker);
      this.current = worker;
      return;
    }
    if (!this.unavailable)
      console.warn(`Windlass: pictures stay plain, no worker starts from ${addresses.join(" or ")}`);
  }

  /**
   * A worker has ended. It stays the current one until the next runs: new passages are then rerouted with the others.
   */
  private async replace(worker: RelayWorker, how: WorkerEnd): Promise<void> {
    if (this.current !== worker) return worker.end();
    // Chromium kills a hanging worker two seconds after `terminate`, and with it the transforms that replaced its own.
    if (how === "silent") {
      this.silent.add(worker);
      worker.endOnceItAnswers();
    }
    const now = performance.now();
    if (now - this.replacedAt > FORGIVEN_MS) this.replacements = 0;
    this.replacedAt = now;
    if (this.replacements++ < MAX_REPLACEMENTS) await this.replaceWorker(REPLACE_TIMEOUT_MS);
    if (how === "failed") setTimeout(() => worker.end());
    const { current } = this;
    if (current === null) return; // closed meanwhile
    if (current !== worker) {
      for (const passage of this.passages) passage.route(current, true);
      return;
    }
    this.current = null;
    if (this.passages.size === 0) return;
    // An encrypted call cannot go on without: the next connection tries again.
    this.unavailable = !this.encrypts;
    for (const lost of [...this.onLost]) lost();
  }
}

/** The path of one receiver's or sender's frames through the relay. */
export class Passage {
  private worker: RelayWorker | null = null;
  private receiver: CopyReceiver | null = null;
  /** The kind of frames that are encrypted end to end; null: they are not. */
  private readonly encrypted: TransformOptions["encrypted"];

  constructor(
    private readonly end: RTCRtpReceiver | RTCRtpSender,
    private readonly id: number,
    encrypts: boolean,
    private readonly onClose: (passage: Passage) => void,
  ) {
    const kind = end.track?.kind === "audio" ? "audio" : "video";
    this.encrypted = encrypts ? kind : null;
  }

  /** Copies the frames to a worker, instead of the one before; null: to none. */
  copyTo(receiver: CopyReceiver | null): void {
    this.receiver = receiver;
    if (receiver === null || this.worker === null) return;
    const { port1, port2 } = new MessageChannel();
    this.worker.post({ type: "handCopies", id: this.id, port: port1 }, [port1]);
    receiver.post({ type: "takeCopies", port: port2 }, [port2]);
  }

  /** Leads the frames through that worker from now on. `isReplacement`: some were lost in the one before. */
  route(through: RelayWorker, isReplacement: boolean): void {
    this.worker = through;
    const { end, id, encrypted } = this;
    const role: TransformRole = end instanceof RTCRtpReceiver ? "received" : "sent";
    const options: TransformOptions = { role, id, keyFrame: isReplacement && role === "received", encrypted };
    if (through.worker === null) return;
    end.transform = new RTCRtpScriptTransform(through.worker, options);
    this.copyTo(this.receiver);
    if (isReplacement && end instanceof RTCRtpSender) requestKeyFrames(end);
  }

  /** Forgets a receiver or sender that has ended. */
  close(): void {
    this.onClose(this);
  }
}

/** Makes a sender encode key frames. */
function requestKeyFrames(sender: RTCRtpSender): void {
  const parameters = sender.getParameters();
  const encodingOptions = parameters.encodings.map(() => ({ keyFrame: true }));
  sender.setParameters(parameters, { encodingOptions }).catch(() => undefined);
}
