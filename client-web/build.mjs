// Bundles the page, the SDK, its worker and the script of networks on WebGPU into dist/, or with --tests the unit tests into dist-test/.
// `cargo xtask page` puts the WASM decoder into dist/ first: the SDK knows its digest.
import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

// `import.meta.dirname` came with Node 20.11; Debian 12 has 18.
const here = fileURLToPath(new URL(".", import.meta.url));
const dist = path.join(here, "dist");
const DECODER = "windlass.wasm";

const common = {
  bundle: true,
  format: "esm",
  target: "es2022",
  logLevel: "warning",
  loader: { ".bin": "binary" },
  absWorkingDir: here,
};

/** Gives scripts what `src/built.d.ts` declares. */
const built = (values) => ({
  name: "windlass:built",
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^windlass:built$/ }, ({ path }) => ({ path, namespace: "built" }));
    const lines = Object.entries(values).map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`);
    onLoad({ filter: /.*/, namespace: "built" }, () => ({ contents: lines.join("\n") }));
  },
});

async function tests() {
  const all = await readdir(path.join(here, "src"), { recursive: true });
  const entryPoints = all.filter((file) => file.endsWith(".test.ts")).map((file) => `src/${file}`);
  await rm(path.join(here, "dist-test"), { recursive: true, force: true });
  // What a unit test needs of these it gives itself: then it needs no decoder built.
  const values = { WORKER: "", DECODER_VERSION: "", NETWORKS_VERSION: "" };
  const options = { outdir: "dist-test", platform: "node", sourcemap: "inline", plugins: [built(values)] };
  await build({ ...common, ...options, entryPoints });
}

async function page() {
  const decoder = await readFile(path.join(dist, DECODER)).catch(() => {
    console.error("client-web/dist/windlass.wasm is missing: `cargo xtask page` builds it, and all of client-web/dist");
    process.exit(1);
  });
  // Files of former builds would be packed, and served.
  for (const file of await readdir(dist)) {
    if (file !== DECODER) await rm(path.join(dist, file), { recursive: true });
  }
  const scripts = { ...common, minify: true, outdir: "dist" };
  await build({ ...scripts, entryPoints: { worker: "src/worker/worker.ts" } });
  const values = {
    WORKER: await readFile(path.join(dist, "worker.js"), "utf8"),
    DECODER_VERSION: sha256(decoder),
    NETWORKS_VERSION: await networks(scripts),
  };
  const plugins = [built(values)];
  await build({ ...scripts, plugins, entryPoints: { "windlass-client": "src/sdk/index.ts" } });
  await build({
    ...scripts,
    plugins,
    sourcemap: true,
    entryPoints: {
      demo: "src/demo/main.ts",
      style: "src/demo/demo.css",
      check: "src/check/main.ts",
      "check-style": "src/check/check.css",
      show: "src/show/main.ts",
      "show-style": "src/show/show.css",
    },
  });
  await pages();
  for (const file of ["demo/icon.svg", "show/clips/signing.webm"]) {
    await cp(path.join(here, "src", file), path.join(dist, path.basename(file)));
  }
  // npm packs no file from outside the package.
  for (const file of ["LICENSE-APACHE", "LICENSE-MIT"]) await cp(path.join(here, "..", file), path.join(here, file));
}

/** Writes the HTML of the pages: with the head that all have, and their texts in English; calls say in every language that they need scripts. */
async function pages() {
  const from = path.join(here, "src");
  const text = (file) => readFile(path.join(from, file), "utf8");
  const folder = "demo/messages";
  const files = (await readdir(path.join(from, folder))).filter((file) => file.endsWith(".json")).sort();
  const messages = new Map();
  for (const file of files) messages.set(path.basename(file, ".json"), JSON.parse(await text(`${folder}/${file}`)));
  const noscript = [...messages].map(
    ([lang, of]) => `<p class="noscript" lang="${lang}">${of["product.noscript"]}</p>`,
  );
  const english = {
    ...messages.get("en"),
    head: (await text("demo/head.html")).trim(),
    "noscript.all": noscript.join(""),
  };
  for (const file of ["demo/index.html", "check/check.html", "show/show.html"]) {
    const html = (await text(file)).replace(/\{([a-z.]+)\}/g, (_, key) => english[key]);
    await writeFile(path.join(dist, path.basename(file)), html);
  }
}

/** Builds the script of networks, and gives the version that it exports: the digest of what it is without. */
async function networks(scripts) {
  const entryPoints = { "network-webgpu": "src/worker/network/built-in.ts" };
  const versioned = (NETWORKS_VERSION) => ({ ...scripts, entryPoints, plugins: [built({ NETWORKS_VERSION })] });
  const { outputFiles } = await build({ ...versioned(""), write: false });
  const version = sha256(outputFiles[0].contents);
  await build(versioned(version));
  return version;
}

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

await mkdir(dist, { recursive: true });
await (process.argv.includes("--tests") ? tests() : page());
