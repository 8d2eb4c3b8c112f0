import assert from "node:assert/strict";
import { test } from "node:test";
import { reportText } from "./report.js";

test("the report has every part with its advice, and where and when it was made", () => {
  const part = { title: "", detail: "Nothing comes back." } as const;
  const text = reportText(
    [
      { ...part, name: "udp", outcome: "failed", advice: "Open the port." },
      { ...part, name: "tcp", outcome: "ok", advice: "" },
    ],
    { server: "https://calls.example", browser: "A browser", at: new Date(0) },
  );
  assert.deepEqual(text.split("\n"), [
    "Windlass check of https://calls.example",
    "1970-01-01T00:00:00.000Z",
    "A browser",
    "",
    "failed   udp         Nothing comes back.",
    "                     → Open the port.",
    "ok       tcp         Nothing comes back.",
    "",
  ]);
});
