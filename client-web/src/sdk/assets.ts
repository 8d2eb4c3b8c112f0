/** The worker script and the WASM decoder: where they lie, and the decoder compiled once for the whole page. */

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

const compiled = new Map<string, Promise<WebAssembly.Module>>();

/** Fetches and compiles the decoder, once for each URL; a failure is not kept. */
export function compileDecoder(url: string): Promise<WebAssembly.Module> {
  const known = compiled.get(url);
  if (known !== undefined) return known;
  const loading = (async () => {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: status ${response.status}`);
    return WebAssembly.compile(await response.arrayBuffer());
  })();
  compiled.set(url, loading);
  loading.catch(() => compiled.delete(url));
  return loading;
}
