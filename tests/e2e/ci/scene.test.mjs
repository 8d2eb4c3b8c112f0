// Files that run at the same time may show the same clip at the same size: each must read its own camera.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { makeScene } from "../support/scene.mjs";

const out = mkdtempSync(path.join(tmpdir(), "windlass-scene-"));
after(() => rmSync(out, { recursive: true }));

test("another rate or number of frames is another file", () => {
  const ten = makeScene({ fps: 10, frames: 4, out });
  const before = readFileSync(ten.file);
  makeScene({ fps: 10, frames: 6, out });
  makeScene({ fps: 5, frames: 4, out });
  assert.deepEqual(readFileSync(ten.file), before);
});

test("made again, it is another file: who has it open goes on with the former", () => {
  const { file } = makeScene({ frames: 4, out });
  const open = openSync(file);
  makeScene({ frames: 4, out });
  assert.notEqual(statSync(file).ino, fstatSync(open).ino);
  assert.deepEqual(readFileSync(open), readFileSync(file));
  closeSync(open);
});
