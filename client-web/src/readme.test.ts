import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const ROOT = new URL("../", import.meta.url);
const read = (file: string) => readFile(new URL(file, ROOT), "utf8");

/** The lines of a text, without what they are indented by. */
const lines = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

// `npm run typecheck` checks the files.
for (const example of ["messages", "devices"]) {
  test(`the README's sample of ${example} is in its file, line by line`, async () => {
    const file = `examples/${example}.ts`;
    const [, after = ""] = (await read("README.md")).split(`[\`${file}\`](${file})`);
    const [, sample = ""] = after.match(/```ts\n([\s\S]*?)```/) ?? [];
    assert.notEqual(sample, "", `the README names ${file}, and a sample follows`);
    assert.ok(
      lines(await read(file))
        .join("\n")
        .includes(lines(sample).join("\n")),
      sample,
    );
  });
}
