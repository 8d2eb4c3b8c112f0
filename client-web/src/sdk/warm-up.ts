/**
 * Warms the decoder up while a call is being set up, in a short-lived worker of its own: in the worker of a track, the
 * first frame would wait for the warm-up. The browser shares compiled code between workers.
 */

import type { ToWorker } from "../worker/messages.js";
import type { SoughtFile } from "../worker/places.js";
import type { Files } from "./assets.js";
import { compileDecoder, placesOf } from "./decoder.js";
import type { Relay } from "./relay.js";

const started = new Set<string>();

/**
 * Fetches, compiles and warms up the decoder, once for the same places, where workers run. Failures are reported by the
 * tracks.
 */
export async function warmUpDecoder(
  files: Pick<Files, "worker" | "decoder">,
  relay: Pick<Relay, "ready">,
  compile: (file: SoughtFile) => Promise<WebAssembly.Module> = compileDecoder,
  start = (url: string): Worker => new Worker(url, { type: "module", name: "windlass warm-up" }),
): Promise<void> {
  const places = placesOf(files.decoder);
  if (started.has(places)) return;
  started.add(places);
  try {
    const [module, runs] = await Promise.all([compile(files.decoder), relay.ready()]);
    if (!runs) throw new Error("no worker can be started");
    const worker = start(files.worker.address);
    await new Promise((resolve) => {
      worker.onmessage = resolve;
      worker.onerror = resolve;
      worker.postMessage({ type: "warmUp", module } satisfies ToWorker);
    });
    worker.terminate();
  } catch {
    started.delete(places); // the next call tries again
  }
}
