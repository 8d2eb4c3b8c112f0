// Scripts of the SDK's worker, as modules for a page of its own.
import { createRequire } from "node:module";
import path from "node:path";

const SDK = path.join(import.meta.dirname, "../../../client-web");

/** A module of all that these files of `client-web/src/worker` export. */
export function bundle(...files) {
  const { buildSync } = createRequire(path.join(SDK, "package.json"))("esbuild");
  const contents = files.map((file) => `export * from "./${file}";`).join("\n");
  const stdin = { contents, resolveDir: path.join(SDK, "src/worker") };
  const options = { bundle: true, format: "esm", target: "es2022", minify: true, write: false };
  return Buffer.from(buildSync({ stdin, ...options }).outputFiles[0].contents);
}
