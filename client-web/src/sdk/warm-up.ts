/**
 * Warms the decoder up while a call is being set up, in a short-lived worker of its own: in the worker of a track, the
 * first frame would wait for the warm-up. The browser shares compiled code between workers.
 */
import type { ToWorker } from "../worker/messages.js";
import { type Assets, compileDecoder, workerAddress } from "./assets.js";
import type { Relay } from "./relay.js";

const started = new Set<string>();

/** Fetches, compiles and warms up the decoder, once per URL, where workers run. Failures are reported by the tracks. */
export async function warmUpDecoder(
  assets: Assets,
  relay: Pick<Relay, "ready">,
  compile: (url: string) => Promise<WebAssembly.Module> = compileDecoder,
  start = (url: string): Worker => new Worker(url, { type: "module", name: "windlass warm-up" }),
): Promise<void> {
  if (started.has(assets.wasm)) return;
  started.add(assets.wasm);
  try {
    const [module, runs] = await Promise.all([compile(assets.wasm), relay.ready()]);
    if (!runs) throw new Error("no worker can be started");
    const worker = start(workerAddress(assets.worker));
    await new Promise((resolve) => {
      worker.onmessage = resolve;
      worker.onerror = resolve;
      worker.postMessage({ type: "warmUp", module } satisfies ToWorker);
    });
    worker.terminate();
  } catch {
    started.delete(assets.wasm); // the next call tries again
  }
}
