import assert from "node:assert/strict";
import { test } from "node:test";
import type { BackendScript } from "./backend.js";
import { importNetworks } from "./script.js";

const script = (version: string) => ({ version }) as BackendScript;

test("a script of another version is not used", async () => {
  const load = async (url: string) => script(url === "old" ? "1" : "2");
  assert.equal((await importNetworks({ urls: ["old", "new"], version: "2" }, load)).version, "2");
  await assert.rejects(importNetworks({ urls: ["old"], version: "2" }, load), {
    message: "old: of the version 1, not 2",
  });
});
