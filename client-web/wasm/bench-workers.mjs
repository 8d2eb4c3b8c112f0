// Times a frame network whose rows two workers share, in Node: how many times faster a picture is ready than by one.
//   node bench-workers.mjs MODULE.wasm [--scale 2] [--network xs] [--workers 2] [--passes N] FILE.ivf
// Each worker gets its rows of the low picture and those that they depend on, with as many high samples as the decoder
// would hand over, and answers with its rows of the high picture. It rebuilds them in a decoder of its own, by the same
// calls with and without the network: the difference is the network's time. The second ratio is of all of it, with
// copies and messages.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { framesOf } from "./vp9-timer.mjs";

/** Low rows beyond its own on which a worker's rows depend: as many as a network has convolutions. */
const REACH = 5;
const NETWORKS = ["none", "xxs", "xs"];

const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

if (isMainThread) await main();
else serve(workerData);

/** Answers each part of a picture with its high rows. */
function serve({ module, scale }) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const decoders = NETWORKS.map((_, tier) => {
    const decoder = wasm.decoder_new(scale);
    wasm.set_network(decoder, tier);
    return decoder;
  });
  let [at, length] = [0, 0];
  parentPort.on("message", ({ tier, width, height, rtp, bytes }) => {
    const low = new Uint8Array(bytes, 0, (width * height * 3) / 2);
    if (length < low.length) [at, length] = [wasm.alloc(low.length), low.length];
    new Uint8Array(wasm.memory.buffer, at, low.length).set(low);
    if (wasm.push_picture(decoders[tier], rtp, at, low.length, width, height) < 0) throw new Error("refused");
    const high = new Uint8Array(wasm.memory.buffer, wasm.hr_ptr(decoders[tier], 0), width * height * scale * scale);
    new Uint8Array(bytes, low.length).set(high);
    parentPort.postMessage(bytes, [bytes]);
  });
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      scale: { type: "string", default: "2" },
      network: { type: "string", default: "xs" },
      workers: { type: "string", default: "2" },
      passes: { type: "string", default: "5" },
    },
  });
  const [modulePath, file] = positionals;
  const tier = NETWORKS.indexOf(values.network);
  if (file === undefined || tier < 0) {
    console.error("usage: node bench-workers.mjs MODULE.wasm [--scale 2] [--network xs] [--workers 2] [--passes N] FILE.ivf");
    process.exit(2);
  }
  const [scale, count] = [Number(values.scale), Number(values.workers)];
  const module = await WebAssembly.compile(readFileSync(modulePath));
  const pictures = lowPictures(module, readFileSync(file));
  const workers = Array.from({ length: count }, () => new Worker(new URL(import.meta.url), { workerData: { module, scale } }));
  const ms = {};
  for (const parts of [1, count]) {
    const [without, with_] = [[], []];
    // One pass more, in which the engine optimises the code.
    for (let pass = 0; pass <= Number(values.passes); pass++) {
      for (const [tierOfPass, times] of [
        [0, without],
        [tier, with_],
      ]) {
        for (const [i, picture] of pictures.entries()) {
          const from = performance.now();
          await Promise.all(partsOf(picture, parts, scale).map((part, n) => ask(workers[n], { ...part, tier: tierOfPass, rtp: i * 3000 })));
          if (pass > 0) times[i] = Math.min(times[i] ?? Number.POSITIVE_INFINITY, performance.now() - from);
        }
      }
    }
    ms[parts] = mean(with_.map((t, i) => t - without[i]));
    ms[`${parts} whole`] = mean(with_);
  }
  const { width, height } = pictures[0];
  const ratio = (a, b) => (a / b).toFixed(2);
  console.log(`${width}x${height} x${scale} ${values.network}: one worker ${ms[1].toFixed(1)} ms, ${count} workers ${ms[count].toFixed(1)} ms: ${ratio(ms[1], ms[count])} times; with copies and messages ${ratio(ms["1 whole"], ms[`${count} whole`])} times`);
  for (const worker of workers) worker.terminate();
}

function ask(worker, { bytes, ...part }) {
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.removeAllListeners("error").once("error", reject);
    worker.postMessage({ ...part, bytes }, [bytes]);
  });
}

/** The pictures of a low layer, as packed I420 with an even number of rows. */
function lowPictures(module, ivf) {
  const wasm = new WebAssembly.Instance(module, {}).exports;
  const decoder = wasm.decoder_new(2);
  return framesOf(ivf).map((data, i) => {
    const at = wasm.alloc(data.length);
    new Uint8Array(wasm.memory.buffer, at, data.length).set(data);
    if (wasm.push_frame(decoder, i * 3000, at, data.length) < 0) throw new Error("the decoder refuses a frame");
    wasm.dealloc(at, data.length);
    const [width, height] = [wasm.lr_width(decoder), wasm.lr_height(decoder)];
    const planes = [0, 1, 2].map((plane) => {
      const [w, h] = plane === 0 ? [width, height] : [width / 2, height / 2];
      const [from, stride] = [wasm.lr_ptr(decoder, plane), wasm.stride(decoder, 1, plane)];
      const rows = Array.from({ length: h }, (_, y) => new Uint8Array(wasm.memory.buffer, from + y * stride, w));
      return Uint8Array.from(rows.flatMap((row) => [...row]));
    });
    return { width, height, planes };
  });
}

/** The rows of each worker with those around them, and room for the high rows. */
function partsOf({ width, height, planes }, count, scale) {
  return Array.from({ length: count }, (_, n) => {
    const around = count === 1 ? 0 : REACH + 1;
    const even = (row) => Math.min(height, Math.max(0, 2 * Math.round(row / 2)));
    const [from, to] = [even((n * height) / count - around), even(((n + 1) * height) / count + around)];
    const rows = to - from;
    const bytes = new Uint8Array((width * rows * 3) / 2 + width * rows * scale * scale);
    bytes.set(planes[0].subarray(width * from, width * to));
    for (const plane of [1, 2]) {
      const [w, at] = [width / 2, width * rows + (plane - 1) * ((width * rows) / 4)];
      bytes.set(planes[plane].subarray((w * from) / 2, (w * to) / 2), at);
    }
    return { width, height: rows, bytes: bytes.buffer };
  });
}
