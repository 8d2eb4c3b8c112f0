// What tests that cannot run leave for the end of a run of all.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { skipped } from "../support/skips.mjs";

test("a skipped test adds a line to the file of skipped ones, and one that runs adds none", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "windlass-skips-"));
  const before = process.env.WINDLASS_SKIPPED;
  const file = path.join(folder, "skipped");
  process.env.WINDLASS_SKIPPED = file;
  try {
    assert.equal(skipped("a", false), false);
    assert.equal(skipped("a call", "no Firefox;\n  install it"), "no Firefox;\n  install it");
    assert.equal(skipped("another", "no GPU"), "no GPU");
    assert.equal(readFileSync(file, "utf8"), "a call: no Firefox; install it\nanother: no GPU\n");
  } finally {
    if (before === undefined) delete process.env.WINDLASS_SKIPPED;
    else process.env.WINDLASS_SKIPPED = before;
    rmSync(folder, { recursive: true });
  }
});
