// Times the first 30 frames of a call in Chromium, in a module just compiled: cold, and after its warm-up.
//   node measure/cold.mjs [--module FILE] [--rounds N] [--decode] [--json] FILE.ivf…
// With `--decode` VP9 alone, else as in a call, with rebuilding. Every round is a browser of its own; cold and warm take turns. `client-web/wasm/cold.mjs` does the same in Node.
// The module is client-web/dist/windlass.wasm unless named (`cargo xtask wasm` builds it).
import { existsSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { report } from "../../../client-web/wasm/cold-report.mjs";
import { openPage } from "../support/browser.mjs";
import { serveFiles } from "../support/files.mjs";

const here = (file) => path.join(import.meta.dirname, file);
const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    module: { type: "string", default: here("../../../client-web/dist/windlass.wasm") },
    rounds: { type: "string", default: "3" },
    decode: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const what = options.decode ? "decode" : "rebuild";
const missing = [options.module, ...files].find((file) => !existsSync(file));
if (files.length === 0 || missing) {
  console.error(missing ? `${missing} is not there` : "usage: node measure/cold.mjs [--module FILE] [--rounds N] [--decode] [--json] FILE.ivf…");
  process.exit(2);
}

const served = {
  "/": here("cold/page.html"),
  "/worker.mjs": here("cold/worker.mjs"),
  "/cold-timer.mjs": here("../../../client-web/wasm/cold-timer.mjs"),
  "/vp9-timer.mjs": here("../../../client-web/wasm/vp9-timer.mjs"),
  "/windlass.wasm": options.module,
  ...Object.fromEntries(files.map((file, i) => [`/stream/${i}`, file])),
};
const server = await serveFiles(served);

async function time(stream, how) {
  const tab = await openPage();
  try {
    await tab.page.goto(server.url);
    const args = [`/stream/${stream}`, how === "warm", what];
    return await tab.page.evaluate((args) => window.timeFirst(...args), args);
  } finally {
    await tab.close();
  }
}

try {
  const streams = files.map((file, i) => [path.basename(file, ".ivf"), (how) => time(i, how)]);
  await report(`chromium ${what}`, streams, Number(options.rounds), options.json);
} finally {
  server.close();
}
