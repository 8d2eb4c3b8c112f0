/** What the build puts into the SDK's script (`build.mjs`). */
declare module "windlass:built" {
  /** The text of `worker.js`. */
  export const WORKER: string;
  /** Digest of `windlass.wasm`, hexadecimal. */
  export const DECODER_SHA256: string;
  /** Digest of `network-webgpu.js`, hexadecimal. */
  export const NETWORKS_SHA256: string;
}
