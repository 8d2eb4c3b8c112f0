/** The worker that rebuilds one track's pictures (`worker/worker.ts`), and the track that they come by. */
import type { FromWorker, NativeReason, TakeCopies, ToWorker } from "../worker/messages.js";
import { type Assets, compileDecoder, workerAddress } from "./assets.js";
import type { PictureOutput } from "./output.js";
import { WatchedWorker } from "./watched-worker.js";

/** Its picture lies above the native one, which moves on: what stands still must be found out soon. */
const PACE = { everyMs: 200, most: 3 };

/** See the module's head. */
export class Rebuilder {
  readonly track: MediaStreamTrack;
  private readonly worker: WatchedWorker<ToWorker | TakeCopies, FromWorker>;

  /** LR pictures of more than `maxPixels` are not rebuilt; `onEnd` is told why it makes no pictures any more. */
  constructor(
    assets: Assets,
    output: PictureOutput,
    scale: number,
    maxPixels: number,
    hear: (message: Exclude<FromWorker, { type: "frame" }>) => void,
    onEnd: (reason: NativeReason) => void,
  ) {
    this.track = output.track;
    this.worker = new WatchedWorker(
      workerAddress(assets.worker),
      "windlass decoder",
      PACE,
      (message) => {
        if (message.type === "frame") output.draw(message.frame);
        else hear(message);
      },
      (how) => onEnd(how === "silent" ? "stalled" : "worker"),
    );
    this.post({ type: "init", sink: output.sink, maxPixels, scale }, output.transfer);
    compileDecoder(assets.wasm).then(
      (module) => this.post({ type: "module", module }),
      () => onEnd("wasm"),
    );
  }

  post(message: ToWorker | TakeCopies, transfer: Transferable[] = []): void {
    this.worker.post(message, transfer);
  }

  /** Ends it. */
  close(): void {
    this.worker.end();
    this.track.stop();
  }
}
