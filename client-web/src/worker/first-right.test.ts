import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { afterEach, test } from "node:test";
import { fromFirstRight } from "./first-right.js";

const real = { fetch: globalThis.fetch, crypto: globalThis.crypto };
const set = (name: "fetch" | "crypto", value: unknown) =>
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
afterEach(() => {
  for (const [name, value] of Object.entries(real)) set(name as "fetch" | "crypto", value);
});

const RIGHT = "the file";
const sha256 = createHash("sha256").update(RIGHT).digest("hex");
const html = new Response("<!doctype html>", { headers: { "content-type": "text/html" } });

/** A web of these answers; returns the URLs that were asked for. */
function web(answers: Record<string, () => Response>): string[] {
  const asked: string[] = [];
  set("fetch", async (url: string) => {
    asked.push(url);
    const answer = answers[url];
    if (answer === undefined) throw new TypeError("Failed to fetch");
    return answer();
  });
  return asked;
}

/** What is used of a file: its text, and where it was. */
const used = async (bytes: ArrayBuffer, url: string) => `${new TextDecoder().decode(bytes)} at ${url}`;

test("the first place that has the file is used, and no other asked", async () => {
  const asked = web({ a: () => new Response(RIGHT), b: () => new Response(RIGHT) });
  assert.equal(await fromFirstRight({ urls: ["a", "b"], sha256 }, used), "the file at a");
  assert.deepEqual(asked, ["a"]);
});

test("a page in the place of the file, a status and no answer lead to the next place", async () => {
  web({ page: () => html.clone(), gone: () => new Response("", { status: 404 }), right: () => new Response(RIGHT) });
  const urls = ["page", "gone", "nobody", "right"];
  assert.equal(await fromFirstRight({ urls, sha256 }, used), "the file at right");
});

test("the error names every place and what was wrong there", async () => {
  web({ page: () => html.clone(), gone: () => new Response("", { status: 404 }) });
  await assert.rejects(fromFirstRight({ urls: ["page", "gone", "nobody"], sha256 }, used), {
    message:
      "page: another file than this SDK was built with (15 bytes, text/html); gone: HTTP status 404; nobody: Failed to fetch",
  });
});

test("in an insecure context, without digests, who uses the file decides", async () => {
  set("crypto", {});
  web({ page: () => html.clone(), right: () => new Response(RIGHT) });
  const picky = async (bytes: ArrayBuffer, url: string) => {
    if (bytes.byteLength !== RIGHT.length) throw new Error("not that");
    return url;
  };
  assert.equal(await fromFirstRight({ urls: ["page", "right"], sha256 }, picky), "right");
});
