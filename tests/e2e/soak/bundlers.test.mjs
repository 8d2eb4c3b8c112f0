// The packed SDK in what bundlers make of a page, without configuration: a remote picture must be rebuilt.
//
// Runs first, beside any file.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { publish, until } from "../support/call.mjs";
import { noBundlers, packSdk, serveFolder } from "../support/packed.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

/** A page up to its scripts. */
const HEAD = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body>';

const skip = skipped("the SDK in bundlers", noBundlers());

describe("the packed SDK", { only: true, skip }, () => {
  let sdk;
  let server;
  let publisher;
  let viewer;

  before(async () => {
    sdk = packSdk();
    server = await startServer({ args: ["--no-congestion-control"] });
    const scene = makeScene({ clip: "d13", frames: 120 });
    [publisher, viewer] = await Promise.all([publish(server, scene, { layers: "q" }), openPage()]);
  });

  after(async () => {
    await Promise.all([publisher?.close(), viewer?.close()]);
    await server?.stop();
    sdk?.remove();
  });

  /** Opens a page in which the picture must be rebuilt, twice as wide as it is sent; gives the addresses of the files of the SDK that it asked for, by their names. */
  async function rebuilds(page) {
    const tab = await viewer.newPage();
    const loaded = [];
    tab.page.on("response", (response) => {
      if (response.ok() && /\.wasm\b|worker|network-webgpu/.test(response.url())) loaded.push(response.url());
    });
    const warnings = [];
    tab.page.on("console", (message) => message.type() === "warning" && /windlass/i.test(message.text()) && warnings.push(message.text()));
    const at = new URL(page);
    at.searchParams.set("server", `${server.url.replace("http", "ws")}/ws`);
    await tab.page.goto(at.href);
    const seen = () =>
      tab.page.evaluate(() => {
        const { videos, failure } = window.call ?? {};
        const [{ track, video } = {}] = videos ?? [];
        return { failure, state: track?.state, reason: track?.reason, width: video?.videoWidth, frames: video?.getVideoPlaybackQuality().totalVideoFrames };
      });
    const better = async () => {
      const { state, width, frames } = await seen();
      return ["rebuilt", "enhanced"].includes(state) && width >= 640 && frames > 10;
    };
    await until(better, "the picture is rebuilt", 30_000, async () => ({ ...(await seen()), warnings, errors: tab.errors }));
    assert.deepEqual(warnings, []);
    assert.deepEqual(tab.errors.filter((error) => error.startsWith("uncaught")), []);
    await tab.closePage();
    return loaded;
  }

  /** Whether the decoder came from the call's own server. */
  const fromServer = (loaded) => loaded.some((url) => url === `${server.url}/windlass.wasm`);

  test("its types are found by TypeScript's node10, node16 and bundler", { only: true }, () => {
    const app = sdk.app("types");
    const common = { noEmit: true, strict: true, target: "es2022", lib: ["es2022", "dom", "dom.iterable"], types: [] };
    for (const [moduleResolution, module] of [["node10", "es2022"], ["node16", "node16"], ["bundler", "es2022"]]) {
      writeFileSync(path.join(app.at, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...common, moduleResolution, module }, files: ["types.ts"] }));
      app.run("tsc", "--project", ".");
    }
  });

  test("vite dev", async () => {
    const page = await sdk.app("vite dev").serve("vite", "--port", "0", "--host", "localhost");
    try {
      assert.ok(fromServer(await rebuilds(page.url)), "pre-bundling has left the decoder behind");
    } finally {
      page.close();
    }
  });

  test("vite build", { only: true }, async () => {
    const app = sdk.app("vite build");
    app.run("vite", "build", "--logLevel", "warn");
    const page = await app.serve("vite", "preview", "--port", "0", "--host", "localhost");
    try {
      const loaded = await rebuilds(page.url);
      assert.ok(!fromServer(loaded), `the decoder is a file of the page: ${loaded}`);
    } finally {
      page.close();
    }
  });

  test("webpack", async () => {
    const app = sdk.app("webpack");
    app.run("webpack", "--mode", "production", "--entry", "./main.js", "--output-path", "dist");
    const loaded = await inPage(app, "script");
    assert.ok(!fromServer(loaded), `the decoder is a file of the page: ${loaded}`);
  });

  test("esbuild, as a module", async () => {
    const app = sdk.app("esbuild module");
    app.run("esbuild", "main.js", "--bundle", "--format=esm", "--minify", "--outfile=dist/main.js");
    assert.ok(fromServer(await inPage(app, "module")), "esbuild has left the decoder behind");
  });

  test("esbuild, as a script that is no module", async () => {
    const app = sdk.app("esbuild script");
    app.run("esbuild", "main.js", "--bundle", "--minify", "--outfile=dist/main.js");
    assert.ok(fromServer(await inPage(app, "script")), "esbuild has left the decoder behind");
  });

  /** What {@link rebuilds} gives for a page with what a bundler has put into `dist/main.js`. */
  async function inPage(app, kind) {
    const dist = path.join(app.at, "dist");
    const tag = kind === "module" ? '<script type="module" src="/main.js"></script>' : '<script src="/main.js"></script>';
    writeFileSync(path.join(dist, "index.html"), `${HEAD}${tag}`);
    const page = await serveFolder(dist);
    try {
      return await rebuilds(`${page.url}/index.html`);
    } finally {
      page.close();
    }
  }

  test("Next.js, built", async () => {
    const app = sdk.app("next");
    app.run("next", "build");
    const page = await app.serve("next", "start", "--port", "0");
    try {
      await rebuilds(page.url);
    } finally {
      page.close();
    }
  });

  test("no bundler: a script of another origin", { only: true }, async () => {
    const app = sdk.app("plain");
    const map = { imports: { "windlass-client": `${server.url}/windlass-client.js` } };
    writeFileSync(path.join(app.at, "plain.html"), `${HEAD}<script type="importmap">${JSON.stringify(map)}</script><script type="module" src="/main.js"></script></body>`);
    const page = await serveFolder(app.at);
    try {
      const loaded = await rebuilds(`${page.url}/plain.html`);
      assert.ok(fromServer(loaded), `${loaded}`);
    } finally {
      page.close();
    }
  });
});
