import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";
import { compileDecoder } from "./decoder.js";

const RIGHT = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
const version = createHash("sha256").update(RIGHT).digest("hex");
const ANSWERS: Record<string, () => Response> = {
  right: () => new Response(RIGHT),
  // A module too, with a section of its own.
  former: () => new Response(new Uint8Array([...RIGHT, 0, 2, 1, 65])),
  page: () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
  gone: () => new Response("", { status: 404 }),
};

const real = { fetch: globalThis.fetch, crypto: globalThis.crypto, warn: console.warn };
const set = (name: "fetch" | "crypto", value: unknown) =>
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
let asked: string[];
let warnings: string[];

beforeEach(() => {
  asked = [];
  warnings = [];
  set("fetch", async (url: string) => {
    asked.push(url);
    const answer = ANSWERS[url.replace(/#.*/, "")];
    if (answer === undefined) throw new TypeError("Failed to fetch");
    return answer();
  });
  console.warn = (warning: string) => void warnings.push(warning);
});

afterEach(() => {
  set("fetch", real.fetch);
  set("crypto", real.crypto);
  console.warn = real.warn;
});

test("a page or another version's decoder in its place, a status and no answer lead to the next place", async () => {
  const urls = ["page", "former", "gone", "nobody", "right", "never"];
  assert.ok((await compileDecoder({ urls, version })) instanceof WebAssembly.Module);
  assert.deepEqual(asked, urls.slice(0, -1));
  assert.deepEqual(warnings, []);
});

test("it is fetched once for all calls", async () => {
  const file = { urls: ["right#once"], version };
  assert.equal(await compileDecoder(file), await compileDecoder(file));
  assert.equal(asked.length, 1);
});

test("where no place has it the next call tries again; the page's developer is warned once", async () => {
  const file = { urls: ["page#told", "gone#told"], version };
  const message =
    "page#told: another file than this SDK was built with (15 bytes, text/html); gone#told: HTTP status 404";
  for (let i = 0; i < 2; i++) await assert.rejects(compileDecoder(file), { message });
  assert.equal(asked.length, 4);
  assert.deepEqual(warnings, [`Windlass: pictures stay plain, as the decoder cannot be loaded. ${message}`]);
});

test("in an insecure context, without digests, a page in its place is still no decoder", async () => {
  set("crypto", {});
  assert.ok(
    (await compileDecoder({ urls: ["page#insecure", "right#insecure"], version })) instanceof WebAssembly.Module,
  );
});
