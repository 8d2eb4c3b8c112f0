import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkerScript } from "./worker-script.js";

const script = (file: string | null) => new WorkerScript(file, () => "blob:own");

test("workers start from the SDK's own copy, else from the file", () => {
  assert.deepEqual(script("/worker.js").addresses, ["blob:own", "/worker.js"]);
  assert.deepEqual(script(null).addresses, ["blob:own"]);
  assert.equal(script("/worker.js").address, "blob:own");
});

test("an address from which a worker has started comes first", () => {
  const used = script("/worker.js");
  used.keep("/worker.js");
  assert.equal(used.address, "/worker.js");
  assert.deepEqual(used.addresses, ["/worker.js", "blob:own"]);
});
