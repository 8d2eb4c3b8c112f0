// Bundles the components into dist/, or with --tests the unit tests into dist-test/. The SDK and React stay imports.
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const common = {
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  packages: "external",
  logLevel: "warning",
  absWorkingDir: here,
};

async function tests() {
  const all = await readdir(path.join(here, "src"));
  const entryPoints = all.filter((file) => /\.test\.tsx?$/.test(file)).map((file) => `src/${file}`);
  await rm(path.join(here, "dist-test"), { recursive: true, force: true });
  await build({ ...common, outdir: "dist-test", platform: "node", sourcemap: "inline", entryPoints });
}

async function library() {
  const dist = path.join(here, "dist");
  // Files of former builds would be packed.
  await rm(dist, { recursive: true, force: true });
  await mkdir(dist);
  // Frameworks that render on a server must know that these run in the browser.
  const banner = { js: '"use client";' };
  await build({ ...common, banner, entryPoints: { "windlass-react": "src/index.ts" }, outdir: "dist" });
  await cp(path.join(here, "src/styles.css"), path.join(dist, "styles.css"));
  // npm packs no file from outside the package.
  for (const file of ["LICENSE-APACHE", "LICENSE-MIT"]) await cp(path.join(here, "../..", file), path.join(here, file));
}

await (process.argv.includes("--tests") ? tests() : library());
