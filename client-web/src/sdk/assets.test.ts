import assert from "node:assert/strict";
import { test } from "node:test";
import { type Assets, filesOf } from "./assets.js";

const base = "https://app.example/call/";
const server = "wss://calls.example/live/ws?node=2";
const files = (assets: Assets) => filesOf(assets, server, base);
/** Where this script's neighbours are. */
const beside = (name: string) => new URL(name, import.meta.url).href;

test("files that the page does not name are beside the script, then at the call's server", () => {
  const { decoder, networks } = files({});
  assert.deepEqual(decoder.urls, [beside("windlass.wasm"), "https://calls.example/live/windlass.wasm"]);
  assert.deepEqual(networks.urls, [beside("network-webgpu.js"), "https://calls.example/live/network-webgpu.js"]);
});

test("a file that the page names is sought there, the others as if none were named", () => {
  const { decoder, networks } = files({ wasm: "../static/w.wasm" });
  assert.deepEqual(decoder.urls, ["https://app.example/static/w.wasm", "https://calls.example/live/windlass.wasm"]);
  assert.equal(networks.urls[0], beside("network-webgpu.js"));
});

test("what is no URL is left out", () => {
  assert.deepEqual(files({ wasm: "https://" }).decoder.urls, ["https://calls.example/live/windlass.wasm"]);
  assert.deepEqual(filesOf({ wasm: "https://" }, "wss://", base).decoder.urls, []);
});

test("a place that is both is asked once", () => {
  const { decoder } = filesOf({ wasm: "/windlass.wasm" }, "ws://localhost:7880/ws", "http://localhost:7880/");
  assert.deepEqual(decoder.urls, ["http://localhost:7880/windlass.wasm"]);
});
