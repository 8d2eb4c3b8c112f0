import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "./testing/clock.js";
import { warmUpDecoder } from "./warm-up.js";
import { WorkerScript } from "./worker-script.js";

const module = new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));

/** The files of a page whose decoder is there. */
const filesAt = (url: string) => ({
  worker: new WorkerScript(null, () => "blob:w"),
  decoder: { urls: [url], version: "" },
});

/** A relay that is ready, or (false) cannot run. */
const relay = (runs: boolean) => ({ ready: () => Promise.resolve(runs) });

/** Workers that record the calls of their methods. */
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
  const files = filesAt("once.wasm");
  const first = warmUpDecoder(files, relay(true), compile, start);
  await warmUpDecoder(files, relay(true), compile, start);
  await settle();
  assert.equal(workers.length, 1);
  assert.deepEqual(workers[0]?.posted, [{ type: "warmUp", module }]);
  assert.equal(workers[0]?.ended, false);
  workers[0]?.onmessage?.();
  await first;
  assert.equal(workers[0]?.ended, true);
});

test("a worker that fails is ended too", async () => {
  const { workers, start, compile } = bench();
  const warming = warmUpDecoder(filesAt("fails.wasm"), relay(true), compile, start);
  await settle();
  workers[0]?.onerror?.();
  await warming;
  assert.equal(workers[0]?.ended, true);
});

test("a module that could not be loaded is tried again by the next room", async () => {
  const { workers, start, compile } = bench();
  const files = filesAt("missing.wasm");
  await warmUpDecoder(files, relay(true), () => Promise.reject(new Error("status 404")), start);
  assert.equal(workers.length, 0);
  void warmUpDecoder(files, relay(true), compile, start);
  await settle();
  assert.equal(workers.length, 1);
});

test("where no worker runs none is started, and the next room tries again", async () => {
  const { workers, start, compile } = bench();
  const files = filesAt("idle.wasm");
  await warmUpDecoder(files, relay(false), compile, start);
  assert.equal(workers.length, 0);
  void warmUpDecoder(files, relay(true), compile, start);
  await settle();
  assert.equal(workers.length, 1);
});
