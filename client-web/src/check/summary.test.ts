import assert from "node:assert/strict";
import { test } from "node:test";
import { MESSAGES } from "../demo/language.js";
import { CHECK_TITLES } from "../sdk/check/texts.js";
import { summaryOf } from "./summary.js";

const result = (name: "udp" | "tcp" | "turn" | "camera", outcome: "ok" | "failed") => ({ name, outcome });

test("the summary says how much fails, and whether one can call all the same", () => {
  const said = (...results: ReturnType<typeof result>[]) => String(summaryOf(results));
  assert.equal(said(result("udp", "ok")), "Everything that could be tried works.");
  assert.match(said(result("udp", "failed"), result("tcp", "ok")), /^One part does not work\. You can call/);
  assert.match(said(result("udp", "failed"), result("tcp", "failed")), /^2 parts do not work\. No call is possible/);
});

test("the parts have the SDK's titles", () => {
  for (const [name, title] of Object.entries(CHECK_TITLES)) {
    assert.equal(MESSAGES.en[`check.part.${name}` as keyof typeof MESSAGES.en], title);
  }
});
