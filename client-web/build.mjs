// Bundles the page, the SDK and its worker into dist/, or with --tests the unit tests into dist-test/.
// The WASM decoder is put into dist/ by `cargo xtask wasm`; it is left where it is.
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { build } from "esbuild";

const common = {
  bundle: true,
  format: "esm",
  target: "es2022",
  sourcemap: true,
  logLevel: "warning",
  absWorkingDir: import.meta.dirname,
};

async function tests() {
  const all = await readdir(path.join(import.meta.dirname, "src"), { recursive: true });
  const entryPoints = all.filter((file) => file.endsWith(".test.ts")).map((file) => `src/${file}`);
  await rm(path.join(import.meta.dirname, "dist-test"), { recursive: true, force: true });
  await build({ ...common, entryPoints, outdir: "dist-test", platform: "node", sourcemap: "inline" });
}

async function page() {
  const dist = path.join(import.meta.dirname, "dist");
  await mkdir(dist, { recursive: true });
  await build({
    ...common,
    minify: true,
    outdir: "dist",
    entryPoints: {
      demo: "src/demo/main.ts",
      style: "src/demo/demo.css",
      worker: "src/worker/worker.ts",
      "windlass-client": "src/sdk/index.ts",
    },
  });
  for (const file of ["index.html", "icon.svg"]) {
    await cp(path.join(import.meta.dirname, "src/demo", file), path.join(dist, file));
  }
}

await (process.argv.includes("--tests") ? tests() : page());
