// The check of stills (`support/stills.mjs`) sees one that was made over another frame's low picture.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { framesOf } from "../../../client-web/wasm/vp9-timer.mjs";
import { makeScene } from "../support/scene.mjs";
import { StillReader, turns } from "../support/stills.mjs";

const WASM = "../../client-web/dist/windlass.wasm";

/** The message of a still of the whole picture, made of a camera frame over the low picture of frame `at`. */
function message(module, low, camera, at, { width, height }) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const handle = wasm.stills_new();
  const give = (bytes, use) => {
    const place = wasm.alloc(bytes.length);
    new Uint8Array(wasm.memory.buffer, place, bytes.length).set(bytes);
    return use(place, bytes.length);
  };
  for (let n = 0; n <= at; n++) assert.equal(give(low[n], (p, length) => wasm.stills_follow(handle, n * 3000, p, length)), 0);
  const place = wasm.stills_camera(handle, width, height);
  new Uint8Array(wasm.memory.buffer, place, width * height).set(camera);
  const tiles = Uint8Array.of(0xff, 0x7f); // all of 320 × 180
  const length = give(tiles, (p, n) => wasm.stills_make(handle, at * 3000, 2, p, n, 6000));
  assert.ok(length > 0, `${length}`);
  const out = Buffer.alloc(24 + length);
  out.set([1, 2, 1, 2]);
  out.writeUInt16BE(1, 12);
  out.writeUInt32BE(at * 3000, 16);
  out.writeUInt16BE(width, 20);
  out.writeUInt16BE(height, 22);
  out.set(new Uint8Array(wasm.memory.buffer, wasm.stills_payload(handle), length), 24);
  return out;
}

test("a still of its own frame turns no cell over, one of another frame does", { only: true }, () => {
  const scene = makeScene({ clip: "d13" });
  const { width, height } = scene;
  mkdirSync("output", { recursive: true });
  const ivf = "output/still-check.ivf";
  const args = ["-v", "error", "-i", scene.file, "-frames:v", "12", "-vf", "scale=320:180:flags=area", "-c:v", "libvpx-vp9"];
  const run = spawnSync("ffmpeg", [...args, "-deadline", "realtime", "-cpu-used", "7", "-b:v", "200k", "-f", "ivf", "-y", ivf]);
  assert.equal(run.status, 0, `${run.stderr}`);
  const low = framesOf(new Uint8Array(readFileSync(ivf)));
  const raw = spawnSync("ffmpeg", ["-v", "error", "-i", scene.file, "-frames:v", "12", "-f", "rawvideo", "-"], { maxBuffer: 1 << 28 }).stdout;
  const camera = (n) => raw.subarray((n * width * height * 3) / 2).subarray(0, width * height);
  const module = new WebAssembly.Module(readFileSync(WASM));
  const reader = new StillReader(WASM);
  const turned = (of, over) => turns(reader.added([message(module, low, camera(of), over, scene)], 2), scene);
  for (const at of [5, 10]) {
    const [own, before, after] = [turned(at, at), turned(at - 1, at), turned(at + 1, at)];
    console.log(`a still over frame ${at} turns cells by ${own.toFixed(1)}, of the frames beside it by ${before.toFixed(1)} and ${after.toFixed(1)}`);
    assert.ok(own < 40 && before > 120 && after > 120);
  }
});
