// A page of files on this machine, for what is measured or checked in a browser without the server.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";

const TYPES = { ".html": "text/html", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };

/** Serves `files`, the path of each address or its bytes, on a free port; `url`, and `close` to end it. */
export async function serveFiles(files) {
  const server = createServer((request, response) => {
    const file = files[request.url];
    if (file === undefined) return response.writeHead(404).end();
    const name = typeof file === "string" ? file : request.url;
    response.setHeader("content-type", TYPES[path.extname(name)] ?? "application/octet-stream");
    response.setHeader("cache-control", "no-store");
    // An isolated page has a clock of 5 µs instead of 100.
    response.setHeader("cross-origin-opener-policy", "same-origin");
    response.setHeader("cross-origin-embedder-policy", "require-corp");
    return response.end(typeof file === "string" ? readFileSync(file) : file);
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return { url: `http://localhost:${server.address().port}/`, close: () => server.close() };
}
