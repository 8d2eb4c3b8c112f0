/**
 * Where the SDK's files are. No page needs to name them: the worker's script is a part of the SDK's own, and what is
 * not beside that (bundlers may leave it behind) comes from the call's server, which has the same files.
 */
import { DECODER_VERSION, NETWORKS_VERSION } from "windlass:built";
import type { SoughtFile } from "../worker/places.js";
import { WorkerScript } from "./worker-script.js";

/** URLs of the SDK's files, for pages that keep them elsewhere. Each is optional. */
export interface Assets {
  /**
   * URL of `worker.js`, of the page's own origin. It is used where the page's policy forbids workers of `blob:` URLs.
   * Default: beside the SDK's script.
   */
  worker?: string | undefined;
  /** URL of `windlass.wasm`. Default: beside the SDK's script. The next place is the call's server. */
  wasm?: string | undefined;
  /**
   * URL of `network-webgpu.js`, which workers load where they may run a network. Default: beside the SDK's script. The
   * next place is the call's server.
   */
  networkWebGpu?: string | undefined;
}

/** The SDK's files, and where each may be. */
export interface Files {
  worker: WorkerScript;
  decoder: SoughtFile;
  networks: SoughtFile;
}

// Bundlers find these by their form, and put the file's new place in.
const BESIDE = {
  worker: () => new URL("./worker.js", import.meta.url),
  wasm: () => new URL("./windlass.wasm", import.meta.url),
  networkWebGpu: () => new URL("./network-webgpu.js", import.meta.url),
};

/** `server`: URL of the call's WebSocket. `base`: what relative URLs are relative to. */
export function filesOf(assets: Assets, server: string, base: string): Files {
  const place = (file: keyof Assets): string | null => {
    const named = assets[file];
    return absolute(named === undefined ? BESIDE[file] : () => new URL(named, base));
  };
  const sought = (file: keyof Assets, name: string, version: string): SoughtFile => {
    const places = [place(file), absolute(() => atServer(server, name, base))];
    return { urls: [...new Set(places.filter((url) => url !== null))], version };
  };
  return {
    worker: new WorkerScript(place("worker")),
    decoder: sought("wasm", "windlass.wasm", DECODER_VERSION),
    networks: sought("networkWebGpu", "network-webgpu.js", NETWORKS_VERSION),
  };
}

/** Null where there is no such URL: scripts that are no modules have no `import.meta.url`. */
function absolute(url: () => URL): string | null {
  try {
    return url().href;
  } catch {
    return null;
  }
}

/** The server's file of that name, beside its WebSocket. */
function atServer(server: string, name: string, base: string): URL {
  const url = new URL(name, new URL(server, base));
  url.protocol = url.protocol.replace("ws", "http");
  return url;
}
