// Figures of the hybrid decoder in Chromium for lab/notes/hybrid-decoder.md: ms per frame of VP9 alone, with rebuilding, and with
// an anchor once in 30 frames, each four frames late, whose cost counts for the frame that it comes after.
//   node measure/bench-hybrid.mjs [--scales 2,3] [--passes N] [--rounds N] [--module FILE] [--json] FILE.ivf…
// Every round is a browser of its own, with one pass for the engine to optimise the code; every frame counts with the least
// time it took. The module is client-web/dist/windlass.wasm unless named (`cargo xtask wasm` builds it); anchors are made by
// the `twin` example (`client-web/wasm/twin.mjs` says where from); `windlass-lab bench vp9` makes streams and keeps them
// (`--keep DIR`). `client-web/wasm/bench.mjs` does the same in Node.
import { existsSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { print, row } from "../../../client-web/wasm/hybrid-timer.mjs";
import { twin } from "../../../client-web/wasm/twin.mjs";
import { openPage } from "../support/browser.mjs";
import { serveFiles } from "../support/files.mjs";
import { MODULE, pageFiles } from "../wasm/files.mjs";

const { values: options, positionals: streams } = parseArgs({
  allowPositionals: true,
  options: {
    scales: { type: "string", default: "2,3" },
    passes: { type: "string", default: "3" },
    rounds: { type: "string", default: "2" },
    module: { type: "string", default: MODULE },
    json: { type: "boolean", default: false },
  },
});
const missing = [options.module, ...streams].find((file) => !existsSync(file));
if (streams.length === 0 || missing) {
  console.error(missing ? `${missing} is not there` : "usage: node measure/bench-hybrid.mjs [--scales 2,3] FILE.ivf…");
  process.exit(2);
}

const least = (a, b) => (a ? b.map((ms, i) => Math.min(ms, a[i])) : b);
const rows = [];
for (const stream of streams) {
  for (const scale of options.scales.split(",")) {
    const cases = twin([stream, "--call", scale]);
    const files = await serveFiles(pageFiles(options.module, { "/stream": stream, "/cases.json": Buffer.from(JSON.stringify(cases)) }));
    let best = {};
    try {
      for (let round = 0; round < Number(options.rounds); round++) {
        const tab = await openPage();
        try {
          await tab.page.goto(files.url);
          const what = { what: "time", stream: "/stream", cases: "/cases.json", passes: Number(options.passes) };
          const times = await tab.page.evaluate((what) => window.inWorker(what), what);
          const lists = ["decode", "plain", "full", "anchor"].map((key) => [key, least(best[key], times[key])]);
          best = { ...times, ...Object.fromEntries(lists) };
        } finally {
          await tab.close();
        }
      }
    } finally {
      files.close();
    }
    rows.push(row("chromium", path.basename(stream, ".ivf"), cases[0], best));
  }
}
print("bench-hybrid", rows, options.json);
