/** What the build puts into scripts (`build.mjs`). */
declare module "windlass:built" {
  /** The text of `worker.js`. */
  export const WORKER: string;
  /** Digest of `windlass.wasm`, SHA-256, hexadecimal. */
  export const DECODER_VERSION: string;
  /** What `network-webgpu.js` exports as its version: it changes with the script. */
  export const NETWORKS_VERSION: string;
}
