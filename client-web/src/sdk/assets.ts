/** The worker script and the WASM decoder: where they lie, the decoder compiled once for the whole page, and the script kept for as long as that. */

/** Where the SDK's files are. */
export interface Assets {
  /** URL of `worker.js`. */
  worker: string;
  /** URL of `windlass.wasm`. */
  wasm: string;
}

/** Beside this script. */
export const besideThisScript = (): Assets => ({
  worker: new URL("./worker.js", import.meta.url).href,
  wasm: new URL("./windlass.wasm", import.meta.url).href,
});

/** A server that takes longer to give a file is not waited for. */
const FETCH_MS = 20_000;

const compiled = new Map<string, Promise<WebAssembly.Module>>();

/** Fetches and compiles the decoder, once for each URL; a failure is not kept. */
export function compileDecoder(url: string): Promise<WebAssembly.Module> {
  const known = compiled.get(url);
  if (known !== undefined) return known;
  const loading = (async () => {
    const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS) });
    if (!response.ok) throw new Error(`${url}: status ${response.status}`);
    return WebAssembly.compile(await response.arrayBuffer());
  })();
  compiled.set(url, loading);
  loading.catch(() => compiled.delete(url));
  return loading;
}

const kept = new Map<string, string>();

/** Where to start a worker of a script from: its copy in the page, once there is one. The server that it lies on may be gone by then, which a call on another outlives. */
export const workerAddress = (url: string): string => kept.get(url) ?? url;

/** Copies a worker's script into the page; the copy's URL, or null where it cannot be had. */
export async function copyWorker(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS) });
    if (!response.ok) return null;
    return URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: "text/javascript" }));
  } catch {
    return null;
  }
}

/** The copy is one that workers can be started from. */
export function keepWorker(url: string, copy: string): void {
  kept.set(url, copy);
}
