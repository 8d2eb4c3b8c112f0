/**
 * Warms the decoder up while a call is being set up, in a worker that lives no longer than that.
 *
 * It must be a worker of its own: when a room with people in it is joined, the first frame comes before a warm-up in the
 * track's worker is well under way, and would wait for it. The browser shares compiled code between workers.
 */
import type { ToWorker } from "../worker/messages.js";
import { type Assets, compileDecoder, workerAddress } from "./assets.js";
import type { Relay } from "./relay.js";

const begun = new Set<string>();

/** Fetches, compiles and warms up the decoder, once for each URL, where workers run. Failures are left to the tracks to report. */
export async function warmUpDecoder(
  assets: Assets,
  relay: Pick<Relay, "ready">,
  compile: (url: string) => Promise<WebAssembly.Module> = compileDecoder,
  start = (url: string): Worker => new Worker(url, { type: "module", name: "windlass warm-up" }),
): Promise<void> {
  if (begun.has(assets.wasm)) return;
  begun.add(assets.wasm);
  try {
    const [module, runs] = await Promise.all([compile(assets.wasm), relay.ready()]);
    if (!runs) throw new Error("no worker runs");
    const worker = start(workerAddress(assets.worker));
    await new Promise((resolve) => {
      worker.onmessage = resolve;
      worker.onerror = resolve;
      worker.postMessage({ type: "warmUp", module } satisfies ToWorker);
    });
    worker.terminate();
  } catch {
    begun.delete(assets.wasm); // the next call tries again
  }
}
