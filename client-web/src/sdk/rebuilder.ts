/** The worker that rebuilds the pictures of one track (`worker/worker.ts`), and the track of these pictures. */
import type { FromWorker, NativeReason, TakeCopies, ToWorker } from "../worker/messages.js";
import type { Files } from "./assets.js";
import { compileDecoder } from "./decoder.js";
import { type Encryption, giveKeys } from "./encryption.js";
import type { PictureOutput } from "./output.js";
import { WatchedWorker } from "./watched-worker.js";

/** A hang must be detected soon: the rebuilt picture covers the native one. */
const PING_RATE = { intervalMs: 200, maxUnanswered: 3 };

/** Rebuilds the pictures of one track in a worker, and gives a track of them. */
export class Rebuilder {
  readonly track: MediaStreamTrack;
  private readonly worker: WatchedWorker<ToWorker | TakeCopies, FromWorker>;
  /** Gives the worker no more keys. */
  private readonly stopKeys: () => void;

  /**
   * `init`: what the worker's first message says. `encryption`: null where frames are not encrypted end to end. `onEnd`
   * is called with the reason when rebuilding ends.
   */
  constructor(
    files: Files,
    output: PictureOutput,
    init: Omit<Extract<ToWorker, { type: "init" }>, "type" | "encrypted">,
    encryption: Encryption | null,
    onMessage: (message: Exclude<FromWorker, { type: "frame" }>) => void,
    onEnd: (reason: NativeReason) => void,
  ) {
    this.track = output.track;
    this.worker = new WatchedWorker(
      files.worker.address,
      "windlass decoder",
      PING_RATE,
      (message) => {
        if (message.type === "frame") output.draw(message.frame);
        else onMessage(message);
      },
      (how) => onEnd(how === "silent" ? "stalled" : "worker"),
    );
    this.post({ type: "init", ...init, encrypted: encryption !== null }, output.transfer);
    this.stopKeys = giveKeys(encryption, this);
    compileDecoder(files.decoder).then(
      (module) => this.post({ type: "module", module }),
      () => onEnd("wasm"),
    );
  }

  post(message: ToWorker | TakeCopies, transfer: Transferable[] = []): void {
    this.worker.post(message, transfer);
  }

  /** Terminates the worker, and ends the track. */
  close(): void {
    this.stopKeys();
    this.worker.end();
    this.track.stop();
  }
}
