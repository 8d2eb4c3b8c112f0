// Bundles the page, the SDK, its worker and the script of networks on WebGPU into dist/, or with --tests the unit tests into dist-test/.
// The WASM decoder is put into dist/ by `cargo xtask wasm`; it is left where it is.
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

// `import.meta.dirname` came with Node 20.11; Debian 12 has 18.
const here = fileURLToPath(new URL(".", import.meta.url));

const common = {
  bundle: true,
  format: "esm",
  target: "es2022",
  sourcemap: true,
  logLevel: "warning",
  loader: { ".safetensors": "binary" },
  absWorkingDir: here,
};

async function tests() {
  const all = await readdir(path.join(here, "src"), { recursive: true });
  const entryPoints = all.filter((file) => file.endsWith(".test.ts")).map((file) => `src/${file}`);
  await rm(path.join(here, "dist-test"), { recursive: true, force: true });
  await build({ ...common, entryPoints, outdir: "dist-test", platform: "node", sourcemap: "inline" });
}

async function page() {
  const dist = path.join(here, "dist");
  await mkdir(dist, { recursive: true });
  await build({
    ...common,
    minify: true,
    outdir: "dist",
    entryPoints: {
      demo: "src/demo/main.ts",
      style: "src/demo/demo.css",
      worker: "src/worker/worker.ts",
      "network-webgpu": "src/worker/network/built-in.ts",
      "windlass-client": "src/sdk/index.ts",
    },
  });
  for (const file of ["index.html", "icon.svg"]) {
    await cp(path.join(here, "src/demo", file), path.join(dist, file));
  }
}

await (process.argv.includes("--tests") ? tests() : page());
