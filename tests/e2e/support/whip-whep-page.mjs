// A page of another origin with a public WHIP encoder and a public WHEP player in it, neither of them ours.
import { once } from "node:events";
import http from "node:http";
import { createRequire } from "node:module";
import { openPage } from "./browser.mjs";

/** The bundler that the client's own page is built with. */
const { build } = createRequire(new URL("../../../client-web/package.json", import.meta.url))("esbuild");

const SOURCE = `
import { WHIPClient } from "@eyevinn/whip-web-client";
import { WebRTCPlayer } from "@eyevinn/webrtc-player";
Object.assign(window, { WHIPClient, WebRTCPlayer });
`;

/** Serves the page; `open` gives a browser that shows it. */
export async function startWhipWhepPage() {
  const bundle = await build({
    stdin: { contents: SOURCE, resolveDir: new URL("..", import.meta.url).pathname },
    bundle: true,
    format: "iife",
    define: { global: "window" },
    write: false,
    logLevel: "error",
  });
  const script = bundle.outputFiles[0].text;
  const page = http.createServer((request, response) => {
    const isScript = request.url === "/clients.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script : '<!doctype html><video autoplay playsinline></video><script src="/clients.js"></script>');
  });
  page.listen(0, "127.0.0.1");
  await once(page, "listening");
  const url = `http://localhost:${page.address().port}/`;
  return {
    async open(options) {
      const tab = await openPage(options);
      await tab.page.goto(url);
      return tab;
    },
    close: () => page.close(),
  };
}
