// What the page in this folder needs, by address.
import path from "node:path";

const here = (file) => path.join(import.meta.dirname, file);
const wasm = (file) => here(`../../../client-web/wasm/${file}`);

/** The module as `cargo xtask wasm` builds it. */
export const MODULE = here("../../../client-web/dist/windlass.wasm");

/** The page, its worker and `module`; `more` are streams and cases. */
export const pageFiles = (module, more) => ({
  "/": here("page.html"),
  "/worker.mjs": here("worker.mjs"),
  ...Object.fromEntries(["hybrid-timer.mjs", "twin-check.mjs", "md5.mjs", "vp9-timer.mjs"].map((f) => [`/${f}`, wasm(f)])),
  "/windlass.wasm": module,
  ...more,
});
