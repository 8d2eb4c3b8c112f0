/** Loads the WASM decoder. The page compiles it once, for all workers. */
import { fromFirstRight, type SoughtFile } from "../worker/first-right.js";

const compiled = new Map<string, Promise<WebAssembly.Module>>();
const told = new Set<string>();

/** The decoder's places as one text. */
export const placesOf = ({ urls }: SoughtFile): string => urls.join(" ");

/** Fetches and compiles the decoder, once for the same places. After a failure the next call tries again. */
export function compileDecoder(file: SoughtFile): Promise<WebAssembly.Module> {
  const places = placesOf(file);
  const cached = compiled.get(places);
  if (cached !== undefined) return cached;
  const loading = fromFirstRight(file, (bytes) => WebAssembly.compile(bytes));
  compiled.set(places, loading);
  loading.catch((error: Error) => {
    compiled.delete(places);
    if (told.has(places)) return;
    told.add(places);
    console.warn(`Windlass: pictures stay plain, the decoder cannot be loaded. ${error.message}`);
  });
  return loading;
}
