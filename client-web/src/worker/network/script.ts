/** Imports the script of networks on WebGPU (`built-in.ts`) from the first of several places that has the right one. */
import { firstOf, type SoughtFile } from "../places.js";
import type { BackendScript } from "./backend.js";

/**
 * Another version's script is not used. A digest would not tell it: bundlers make scripts smaller. Rejects with an
 * error that names all places.
 */
export function importNetworks(
  { urls, version }: SoughtFile,
  load: (url: string) => Promise<BackendScript> = (url) => import(url),
): Promise<BackendScript> {
  return firstOf(urls, async (url) => {
    const script = await load(url);
    if (script.version !== version) throw new Error(`of the version ${script.version}, not ${version}`);
    return script;
  });
}
