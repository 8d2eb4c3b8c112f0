// Files that run at the same time may show the same clip at the same size: each reads a whole camera file.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { makeScene, readNumber } from "../support/scene.mjs";

const out = mkdtempSync(path.join(tmpdir(), "windlass-scene-"));
after(() => rmSync(out, { recursive: true }));

test("another rate or number of frames is another file", () => {
  const ten = makeScene({ fps: 10, frames: 4, out });
  const before = readFileSync(ten.file);
  makeScene({ fps: 10, frames: 6, out });
  makeScene({ fps: 5, frames: 4, out });
  assert.deepEqual(readFileSync(ten.file), before);
});

test("asked for again, it is the same file, and nothing half written is beside it", () => {
  const made = makeScene({ frames: 4, out });
  const again = makeScene({ frames: 4, out });
  assert.equal(statSync(again.file).ino, statSync(made.file).ino);
  assert.ok(readdirSync(out).every((name) => name.endsWith(".y4m")), readdirSync(out).join());
});

test("its pictures carry their numbers", () => {
  const scene = makeScene({ frames: 4, out });
  const numbers = Array.from({ length: scene.frames }, (_, n) => readNumber(scene.luma(n), scene.width, scene.width));
  assert.deepEqual(numbers, [0, 1, 2, 3]);
});
