/**
 * The files of the SDK: worker script, WASM decoder, and script of networks on WebGPU. The page compiles the decoder once,
 * and keeps a copy of the worker's script.
 */

/** URLs of the SDK's files. */
export interface Assets {
  /** URL of `worker.js`. */
  worker: string;
  /** URL of `windlass.wasm`. */
  wasm: string;
  /** URL of `network-webgpu.js`, which workers load where they may run a network. Without it none runs on WebGPU. */
  networkWebGpu?: string;
}

/** The files beside this script. */
export const besideThisScript = (): Assets => ({
  worker: new URL("./worker.js", import.meta.url).href,
  wasm: new URL("./windlass.wasm", import.meta.url).href,
  networkWebGpu: new URL("./network-webgpu.js", import.meta.url).href,
});

/** The absolute URL of the script of networks on WebGPU, for a worker; null where there is none, or no URL. */
export function networkScript({ networkWebGpu }: Assets, base: string): string | null {
  try {
    return networkWebGpu === undefined ? null : new URL(networkWebGpu, base).href;
  } catch {
    return null;
  }
}

/** Max time to fetch a file, milliseconds. */
const FETCH_TIMEOUT_MS = 20_000;

const compiled = new Map<string, Promise<WebAssembly.Module>>();

/** Fetches and compiles the decoder, once per URL. After a failure the next call tries again. */
export function compileDecoder(url: string): Promise<WebAssembly.Module> {
  const cached = compiled.get(url);
  if (cached !== undefined) return cached;
  const loading = (async () => {
    const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
    if (!response.ok) throw new Error(`${url} cannot be fetched: HTTP status ${response.status}`);
    return WebAssembly.compile(await response.arrayBuffer());
  })();
  compiled.set(url, loading);
  loading.catch(() => compiled.delete(url));
  return loading;
}

const copies = new Map<string, string>();

/**
 * The URL to start workers from: the copy in the page where there is one. A call may outlive the server of the script.
 */
export const workerAddress = (url: string): string => copies.get(url) ?? url;

/** Copies a worker's script into the page. Returns the URL of the copy; null where the script cannot be fetched. */
export async function copyWorker(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
    if (!response.ok) return null;
    return URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: "text/javascript" }));
  } catch {
    return null;
  }
}

/** Keeps a copy from which a worker has started. */
export function keepWorker(url: string, copy: string): void {
  copies.set(url, copy);
}
