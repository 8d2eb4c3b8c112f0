// Reads pictures and frame numbers from a subscriber's page.
import { CODE_ROWS, readNumber } from "./scene.mjs";
import { KERNELS, mean, psnr, upsample2 } from "./metrics.mjs";

/** How many pictures leave a page in one call. */
const BATCH = 20;

/** Keeps the luma of every frame of a page's `enhanced` and `plain` tracks for `seconds`. */
export async function capture(page, seconds) {
  await page.evaluate(async (seconds) => {
    const track = window.windlass.remoteVideos()[0];
    if (!track) throw new Error("no remote video");
    const kinds = { enhanced: track.enhanced, plain: track.plain };
    const frames = { enhanced: [], plain: [] };
    window.capturedFrames = frames;
    const end = performance.now() + seconds * 1000;
    const read = async (kind) => {
      const reader = new MediaStreamTrackProcessor({ track: kinds[kind].clone() }).readable.getReader();
      const over = new Promise((r) => setTimeout(() => r({ done: true }), seconds * 1000));
      while (performance.now() < end) {
        const next = reader.read();
        const { value: frame, done } = await Promise.race([next, over]);
        if (done) {
          // The picture asked for is ours to close; a stream cancelled while it makes one leaves it open.
          const last = await Promise.race([next, new Promise((r) => setTimeout(() => r({}), 1000))]);
          last.value?.close();
          break;
        }
        const { width, height } = frame.visibleRect;
        const all = new Uint8Array(frame.allocationSize());
        const [luma] = await frame.copyTo(all);
        const y = new Uint8Array(width * height);
        for (let row = 0; row < height; row++) {
          const at = luma.offset + row * luma.stride;
          y.set(all.subarray(at, at + width), row * width);
        }
        frames[kind].push({ at: performance.now(), timestamp: frame.timestamp, format: frame.format, width, height, y });
        frame.close();
      }
      await reader.cancel();
    };
    await Promise.all(Object.keys(kinds).filter((k) => kinds[k]).map(read));
  }, seconds);
  const out = {};
  for (const kind of ["enhanced", "plain"]) {
    const heads = await page.evaluate(
      (kind) => window.capturedFrames[kind].map(({ y, ...head }) => head),
      kind,
    );
    out[kind] = [];
    // Several at a time: each call takes a while, and all at once may be half a gigabyte.
    for (let from = 0; from < heads.length; from += BATCH) {
      const luma = await page.evaluate(
        ([kind, from, to]) =>
          window.capturedFrames[kind].slice(from, to).map(({ y }) => {
            let text = "";
            for (let at = 0; at < y.length; at += 0x8000) text += String.fromCharCode(...y.subarray(at, at + 0x8000));
            return btoa(text);
          }),
        [kind, from, from + BATCH],
      );
      luma.forEach((base64, i) => out[kind].push({ ...heads[from + i], y: Buffer.from(base64, "base64") }));
    }
  }
  await page.evaluate(() => delete window.capturedFrames);
  return out;
}

/** Frame numbers of captured frames, in the order shown; unreadable ones are -1. */
export function numbers(frames, scene) {
  return frames.map((f) => readNumber(f.y, f.width, scene.width));
}

/** How many frames lie in a span of numbers that may wrap around at the clip's end. */
export function span(list, total) {
  let count = 1;
  for (let i = 1; i < list.length; i++) count += (list[i] - list[i - 1] + total) % total;
  return count;
}

/** PSNR-Y against the source of every n-th enhanced picture, and of the same LR frame upsampled, by two or by two again and again. */
export function scored(captured, scene, everyNth = 4) {
  const lr = new Map(numbers(captured.plain, scene).map((n, i) => [n, captured.plain[i]]));
  const rows = [];
  captured.enhanced.forEach((frame, i) => {
    const n = readNumber(frame.y, frame.width, scene.width);
    const low = lr.get(n);
    if (i % everyNth || n < 0 || !low || frame.width !== scene.width) return;
    const doublings = Math.log2(scene.width / low.width);
    if (doublings < 1 || !Number.isInteger(doublings)) return;
    const score = (y) => psnr(y, scene.luma(n), scene.width, scene.height, CODE_ROWS * 2);
    const row = { n, enhanced: score(frame.y) };
    for (const kernel of ["bicubic", "lanczos"]) {
      let y = low.y;
      for (let d = 0; d < doublings; d++) y = upsample2(y, low.width << d, low.height << d, KERNELS[kernel]);
      row[kernel] = score(y);
    }
    rows.push(row);
  });
  return rows;
}

/** Means of such scores. */
export function means(rows) {
  const of = (key) => mean(rows.map((row) => row[key]));
  return { pairs: rows.length, enhanced: of("enhanced"), bicubic: of("bicubic"), lanczos: of("lanczos") };
}

/** Mean PSNR-Y of what was captured. */
export const quality = (captured, scene, everyNth = 4) => means(scored(captured, scene, everyNth));
