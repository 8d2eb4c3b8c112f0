import assert from "node:assert/strict";
import { test } from "node:test";
import { workerAddress } from "./assets.js";
import { warmUpDecoder } from "./warm-up.js";

const module = new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));

/** The script cannot be copied. */
const none = () => Promise.resolve(null);
/** What has been begun goes as far as it can. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Workers that note what is done with them. */
function bench() {
  const workers: { url: string; posted: unknown[]; ended: boolean; onmessage?: () => void; onerror?: () => void }[] =
    [];
  const start = (url: string) => {
    const worker = {
      url,
      posted: [] as unknown[],
      ended: false,
      postMessage: (message: unknown) => void worker.posted.push(message),
      terminate: () => {
        worker.ended = true;
      },
    };
    workers.push(worker);
    return worker as unknown as Worker;
  };
  return { workers, start, compile: () => Promise.resolve(module) };
}

test("one worker warms a module up, for all rooms, and ends when it says so", async () => {
  const { workers, start, compile } = bench();
  const assets = { worker: "w.js", wasm: "once.wasm" };
  const first = warmUpDecoder(assets, compile, start, none);
  await warmUpDecoder(assets, compile, start, none);
  await settled();
  assert.equal(workers.length, 1);
  assert.deepEqual(workers[0]?.posted, [{ type: "warmUp", module }]);
  assert.equal(workers[0]?.ended, false);
  workers[0]?.onmessage?.();
  await first;
  assert.equal(workers[0]?.ended, true);
});

test("a worker that fails is ended too", async () => {
  const { workers, start, compile } = bench();
  const warming = warmUpDecoder({ worker: "w.js", wasm: "fails.wasm" }, compile, start, none);
  await settled();
  workers[0]?.onerror?.();
  await warming;
  assert.equal(workers[0]?.ended, true);
});

test("a module that could not be loaded is tried again by the next room", async () => {
  const { workers, start, compile } = bench();
  const assets = { worker: "w.js", wasm: "missing.wasm" };
  await warmUpDecoder(assets, () => Promise.reject(new Error("status 404")), start, none);
  assert.equal(workers.length, 0);
  void warmUpDecoder(assets, compile, start, none);
  await settled();
  assert.equal(workers.length, 1);
});

test("workers are started from a copy of their script once one has run from it", async () => {
  const { workers, start, compile } = bench();
  const copy = () => Promise.resolve("blob:copy");
  const warming = warmUpDecoder({ worker: "gone.js", wasm: "kept.wasm" }, compile, start, copy);
  await settled();
  assert.equal(workerAddress("gone.js"), "gone.js");
  assert.equal(workers[0]?.url, "blob:copy");
  workers[0]?.onmessage?.();
  await warming;
  assert.equal(workerAddress("gone.js"), "blob:copy");
});

test("where no worker may be started from a copy, the script is used", async () => {
  const { workers, start, compile } = bench();
  const copy = () => Promise.resolve("blob:forbidden");
  const warming = warmUpDecoder({ worker: "strict.js", wasm: "strict.wasm" }, compile, start, copy);
  await settled();
  workers[0]?.onerror?.();
  await settled();
  assert.equal(workers[1]?.url, "strict.js");
  workers[1]?.onmessage?.();
  await warming;
  assert.equal(workerAddress("strict.js"), "strict.js");
});
