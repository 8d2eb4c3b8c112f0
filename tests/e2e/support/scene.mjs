// What the publisher's camera shows: a real clip, or a moving scene where there are no clips, with
// a machine-readable frame number drawn in, as a Y4M file that Chromium plays as its camera.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, readSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import path from "node:path";

/** Size of one cell of the drawn frame number, in pixels of the full picture. */
export const CELL = 16;
/** Cells: two of sync, twelve of number, four of checksum. */
const NUMBER_BITS = 12;
export const CELLS = 2 + NUMBER_BITS + 4;
/** Rows at the top that the number covers; left out of quality figures. */
export const CODE_ROWS = CELL;

const DARK = 40;
const LIGHT = 210;

/** Clips by short name: file and ffmpeg crop (landscape around head and shoulders). */
export const CLIPS = {
  d13: { file: "LivePortrait__d13.mp4", crop: "720:405:0:300" },
  s18: { file: "LivePortrait__s18.mp4", crop: "1280:720:0:0" },
  d6: { file: "LivePortrait__d6.mp4", crop: "480:270:0:80" },
  demo1: { file: "LatentSync__assets_demo1_video.mp4", crop: "1080:608:0:480" },
  demo2: { file: "LatentSync__assets_demo2_video.mp4", crop: "1080:608:0:100" },
  notebook: { file: "gh-scoped-creds__screencast.mp4", crop: "1616:908:0:300" },
};

/**
 * For `makeScene`, in tests that do not ask how many frames come: at twelve a second, a slow machine has time for all
 * parts of a call.
 */
export const fewFrames = { clip: "d13", fps: 12, frames: 96 };

/** For `makeScene`, in tests that need anchors and are not of their quality: the slowest of our CPUs makes them in time. */
export const smallFrames = { ...fewFrames, width: 320, height: 180 };

/** The folder of the clips (docs/CONTRIBUTING.md, *Clips*); null where there is none. */
export function clipsFolder() {
  const folder = process.env.WINDLASS_CLIPS ?? path.resolve("../../../shared/clips");
  return existsSync(folder) ? folder : null;
}

/** Writes the first seconds of a clip as a low layer: IVF of real-time VP9 at 320×180. */
export function lowLayer(clip, seconds, to) {
  const { file, crop } = CLIPS[clip];
  const args = ["-v", "error", "-i", path.join(clipsFolder(), file), "-t", `${seconds}`, "-an"];
  args.push("-vf", `crop=${crop},scale=320:180:flags=area`, "-c:v", "libvpx-vp9", "-deadline", "realtime");
  args.push("-cpu-used", "7", "-b:v", "200k", "-pix_fmt", "yuv420p", "-f", "ivf", "-y", to);
  const run = spawnSync("ffmpeg", args, { encoding: "utf8" });
  if (run.status !== 0) throw new Error(`ffmpeg could not encode ${file}: ${run.stderr}`);
}

function checksum(number) {
  return ((number ^ (number >> 4) ^ (number >> 8)) & 15) ^ 0b0110;
}

/** The cells of a number, from the left. */
export function bits(number) {
  const word = (0b10 << (NUMBER_BITS + 4)) | (number << 4) | checksum(number);
  return Array.from({ length: CELLS }, (_, i) => (word >> (CELLS - 1 - i)) & 1);
}

/** Draws `number` into the top rows of a luma plane and greys the chroma below it. */
function drawNumber(frame, width, height, number) {
  const y = frame.subarray(0, width * height);
  bits(number).forEach((bit, cell) => {
    for (let row = 0; row < CELL; row++) {
      y.fill(bit ? LIGHT : DARK, row * width + cell * CELL, row * width + (cell + 1) * CELL);
    }
  });
  const chroma = (width / 2) * (height / 2);
  for (const plane of [0, 1]) {
    const at = width * height + plane * chroma;
    for (let row = 0; row < CELL / 2; row++) {
      frame.fill(128, at + (row * width) / 2, at + (row * width) / 2 + (CELLS * CELL) / 2);
    }
  }
}

/** Whether a cell is light that begins at column `x` of a luma plane in which cells are `side` wide. */
export function cellIsLight(y, width, x, side) {
  let sum = 0;
  let count = 0;
  for (let row = Math.round(side * 0.3); row < side * 0.7; row++) {
    for (let col = Math.round(x + 0.3 * side); col < x + 0.7 * side; col++) {
      sum += y[row * width + col];
      count++;
    }
  }
  return sum / count > (DARK + LIGHT) / 2;
}

/** Reads the frame number from a luma plane of any size; -1 where it cannot be read. */
export function readNumber(y, width, fullWidth) {
  const scale = width / fullWidth;
  let word = 0;
  for (let cell = 0; cell < CELLS; cell++) {
    word = (word << 1) | (cellIsLight(y, width, cell * CELL * scale, CELL * scale) ? 1 : 0);
  }
  const number = (word >> 4) & ((1 << NUMBER_BITS) - 1);
  return word >> (NUMBER_BITS + 4) === 0b10 && (word & 15) === checksum(number) ? number : -1;
}

function clipFrames(clips, clip, width, height, fps, frames) {
  const { file, crop } = CLIPS[clip];
  const args = ["-v", "error", "-i", path.join(clips, file), "-vf"];
  args.push(`crop=${crop},fps=${fps},scale=${width}:${height}:flags=area`, "-frames:v", `${frames}`);
  args.push("-pix_fmt", "yuv420p", "-f", "rawvideo", "-");
  const run = spawnSync("ffmpeg", args, { maxBuffer: 2 ** 31 - 1 });
  if (run.status !== 0) throw new Error(`ffmpeg could not read ${file}: ${run.stderr}`);
  return run.stdout;
}

/** A textured scene with a moving, rotating pattern, for machines without clips. */
function syntheticFrames(width, height, frames) {
  const size = (width * height * 3) / 2;
  const all = Buffer.alloc(size * frames, 128);
  for (let n = 0; n < frames; n++) {
    const frame = all.subarray(n * size);
    const [cx, cy] = [width / 2 + Math.sin(n / 20) * width * 0.2, height / 2 + Math.cos(n / 27) * height * 0.1];
    for (let row = 0; row < height; row++) {
      for (let col = 0; col < width; col++) {
        const back = 110 + 30 * Math.sin(col / 9) * Math.cos(row / 7) + ((col * 7 + row * 13) % 11);
        const inside = Math.hypot(col - cx, (row - cy) * 1.2) < height * 0.3;
        const face = 150 + 40 * Math.sin((col - cx) / 5) * Math.sin((row - cy) / 6);
        frame[row * width + col] = inside ? face : back;
      }
    }
  }
  return all;
}

/** Before each picture of a Y4M file. */
const FRAME = "FRAME\n";

/** Writes pictures as a Y4M file, which has that name only once it is whole. */
function writeY4m(file, header, pictures) {
  const made = `${file}.${process.pid}`;
  const fd = openSync(made, "w");
  writeSync(fd, header);
  for (const picture of pictures) {
    writeSync(fd, FRAME);
    writeSync(fd, picture);
  }
  closeSync(fd);
  renameSync(made, file);
}

/** The folder of camera files: in that of the build, so that each is made once. */
function scenesFolder() {
  const { WINDLASS_BIN } = process.env;
  return WINDLASS_BIN ? path.join(path.dirname(WINDLASS_BIN), "../scenes") : "output";
}

/**
 * Makes the camera file, unless an earlier run has made it, and reads luma planes for comparison; `clean`: also a file without the
 * numbers.
 * @returns {{file: string, clean: string | null, name: string, real: boolean, width: number, height: number, fps: number,
 *   frames: number, luma: (n: number) => Buffer}}
 */
export function makeScene({ clip = "d13", width = 640, height = 360, fps = 30, frames = 300, out = scenesFolder(), clean = false } = {}) {
  const clips = clipsFolder();
  const source = clips && path.join(clips, CLIPS[clip].file);
  const real = source !== null && existsSync(source);
  if (!real) console.log(`no clip ${CLIPS[clip].file}, set WINDLASS_CLIPS: using a drawn scene`);
  mkdirSync(out, { recursive: true });
  // Another clip of that name, and another way to draw, are another file.
  const made = createHash("sha256").update(readFileSync(new URL(import.meta.url))).update(real ? `${statSync(source).size}` : "drawn");
  const shown = `${clip}-${width}x${height}-${fps}fps-${frames}-`;
  const name = `${shown}${made.digest("hex").slice(0, 8)}`;
  const file = path.resolve(out, `${name}.y4m`);
  const cleanFile = clean ? path.resolve(out, `${name}-clean.y4m`) : null;
  const header = `YUV4MPEG2 W${width} H${height} F${fps}:1 Ip A1:1 C420mpeg2\n`;
  const size = (width * height * 3) / 2;
  if (!existsSync(file) || (cleanFile && !existsSync(cleanFile))) {
    const raw = real ? clipFrames(clips, clip, width, height, fps, frames) : syntheticFrames(width, height, frames);
    const pictures = Array.from({ length: Math.floor(raw.length / size) }, (_, n) => raw.subarray(n * size, (n + 1) * size));
    // What was drawn in another way. Who plays such a file goes on with it.
    const older = readdirSync(out).filter((other) => other.startsWith(shown) && !other.startsWith(name));
    for (const other of older) rmSync(path.join(out, other), { force: true });
    if (cleanFile) writeY4m(cleanFile, header, pictures);
    pictures.forEach((picture, n) => drawNumber(picture, width, height, n));
    writeY4m(file, header, pictures);
  }
  const fd = openSync(file);
  const luma = (n) => {
    const plane = Buffer.alloc(width * height);
    const read = readSync(fd, plane, 0, plane.length, header.length + n * (FRAME.length + size) + FRAME.length);
    if (read !== plane.length) throw new Error(`${file} has no picture ${n}`);
    return plane;
  };
  const count = (statSync(file).size - header.length) / (FRAME.length + size);
  return { file, clean: cleanFile, name: clip, real, width, height, fps, frames: count, luma };
}
