/**
 * Warms the decoder up while a call is being set up, in a worker that lives no longer than that.
 *
 * It must be a worker of its own: when a room with people in it is joined, the first frame comes before a warm-up in the
 * track's worker is well under way, and would wait for it. The browser shares compiled code between workers.
 */
import type { ToWorker } from "../worker/messages.js";
import { type Assets, compileDecoder, copyWorker, keepWorker } from "./assets.js";

const begun = new Set<string>();

/** Fetches, compiles and warms up the decoder, and keeps the worker's script, once for each URL. Failures are left to the tracks to report. */
export async function warmUpDecoder(
  assets: Assets,
  compile: (url: string) => Promise<WebAssembly.Module> = compileDecoder,
  start = (url: string): Worker => new Worker(url, { type: "module" }),
  copy: (url: string) => Promise<string | null> = copyWorker,
): Promise<void> {
  if (begun.has(assets.wasm)) return;
  begun.add(assets.wasm);
  try {
    const [module, script] = await Promise.all([compile(assets.wasm), copy(assets.worker)]);
    // A page's policy may allow no workers of its own making.
    if (script !== null && (await runs(() => start(script), module))) keepWorker(assets.worker, script);
    else await runs(() => start(assets.worker), module);
  } catch {
    begun.delete(assets.wasm); // the next call tries again
  }
}

/** Warms a module up in a worker, which it ends; whether that worked. */
async function runs(start: () => Worker, module: WebAssembly.Module): Promise<boolean> {
  let worker: Worker;
  try {
    worker = start();
  } catch {
    return false;
  }
  const done = new Promise<boolean>((resolve) => {
    worker.onmessage = () => resolve(true);
    worker.onerror = () => resolve(false);
  });
  worker.postMessage({ type: "warmUp", module } satisfies ToWorker);
  const worked = await done;
  worker.terminate();
  return worked;
}
