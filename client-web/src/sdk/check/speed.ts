/**
 * How fast this machine rebuilds pictures: the SDK's decoder, in a worker as in a call, decodes the stream that it
 * contains.
 */
import type { FromWorker, ToWorker } from "../../worker/messages.js";
import type { SoughtFile } from "../../worker/places.js";
import type { Files } from "../assets.js";
import { compileDecoder } from "../decoder.js";
import { bounded } from "./bounded.js";
import { type Finding, TEXTS } from "./texts.js";

/** Max time, fetching the decoder included, milliseconds. */
const SPEED_MS = 20_000;
/** The size for which the result is reported, pixels, … */
const SIZE = { width: 640, height: 360 };
/** … and the pictures a second that calls have. */
const FPS = 30;

/** Measures it. */
export function probeSpeed(
  files: Pick<Files, "worker" | "decoder">,
  canRebuild = typeof RTCRtpScriptTransform !== "undefined" && typeof VideoFrame !== "undefined",
  compile: (file: SoughtFile) => Promise<WebAssembly.Module> = compileDecoder,
  start = (url: string): Worker => new Worker(url, { type: "module", name: "windlass check" }),
): Promise<Finding> {
  let end = (): void => undefined;
  const probe = async (): Promise<Finding> => {
    if (!canRebuild) return TEXTS.cannotRebuild();
    const module = await compile(files.decoder).catch(() => null);
    if (module === null) return TEXTS.noDecoder();
    const worker = start(files.worker.address);
    end = () => worker.terminate();
    const measured = await new Promise<Extract<FromWorker, { type: "speed" }> | null>((resolve) => {
      worker.onmessage = ({ data }: MessageEvent<FromWorker>) => resolve(data.type === "speed" ? data : null);
      worker.onerror = () => resolve(null);
      worker.postMessage({ type: "speed", module } satisfies ToWorker);
    });
    if (measured === null || measured.pixelsPerSecond === 0) return TEXTS.noDecoder();
    const fps = measured.pixelsPerSecond / (SIZE.width * SIZE.height);
    const size = `${SIZE.width}×${SIZE.height}`;
    return fps >= FPS ? TEXTS.fast(fps, size) : TEXTS.slow(fps, size);
  };
  return bounded(probe, SPEED_MS).finally(() => end());
}
