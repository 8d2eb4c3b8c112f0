import assert from "node:assert/strict";
import { test } from "node:test";
import { networkScript } from "./assets.js";

const files = { worker: "/sdk/worker.js", wasm: "/sdk/windlass.wasm" };
const base = "https://app.example/call/";

test("the script of networks on WebGPU is named absolutely", () => {
  assert.equal(networkScript({ ...files, networkWebGpu: "../gpu.js" }, base), "https://app.example/gpu.js");
});

test("a page without that script, or with what is no URL, has no network on WebGPU", () => {
  assert.equal(networkScript(files, base), null);
  assert.equal(networkScript({ ...files, networkWebGpu: "https://" }, base), null);
});
