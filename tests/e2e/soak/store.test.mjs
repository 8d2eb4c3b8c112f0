// A recording in SeaweedFS, an S3 server that people run.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { publish, sleep, until } from "../support/call.mjs";
import { endAfterTests } from "../support/leftovers.mjs";
import { freePort } from "../support/ports.mjs";
import { decode, order, probe, recordTo, webhooks } from "../support/recording.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const weed = process.env.WINDLASS_WEED;
const name = "a recording is stored by SeaweedFS, and leaves the disk";
const missing = !weed && "no SeaweedFS; name its program in WINDLASS_WEED (`cargo xtask soak` does)";

test(name, { only: true, skip: skipped(name, missing) }, async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), "windlass-store-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [data, state] = ["data", "state"].map((part) => path.join(folder, part));
  mkdirSync(data);
  const credentials = [{ accessKey: "windlass", secretKey: "not much of a secret" }];
  const config = path.join(folder, "s3.json");
  writeFileSync(config, JSON.stringify({ identities: [{ name: "windlass", credentials, actions: ["Read", "Write", "List"] }] }));
  const [master, volume, filer, s3] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const parts = [`-master.port=${master}`, `-volume.port=${volume}`, "-volume.max=4", "-filer", `-filer.port=${filer}`];
  const args = ["server", `-dir=${data}`, "-ip=127.0.0.1", ...parts, "-s3", `-s3.port=${s3}`, `-s3.config=${config}`];
  const store = spawn(weed, args, { stdio: "ignore" });
  const ended = endAfterTests(() => store.kill("SIGKILL"));
  t.after(() => ended(store.kill("SIGKILL")));
  const made = () =>
    fetch(`http://127.0.0.1:${filer}/buckets/calls/`, { method: "POST", signal: AbortSignal.timeout(2000) }).then((answer) => answer.ok, () => false);
  await until(made, "the store has a bucket", 30_000);

  const hooks = await webhooks(folder);
  t.after(() => hooks.close());
  const env = {
    STATE_DIRECTORY: state,
    AWS_ENDPOINT_URL: `http://127.0.0.1:${s3}`,
    AWS_ACCESS_KEY_ID: "windlass",
    AWS_SECRET_ACCESS_KEY: "not much of a secret",
  };
  const server = await startServer({ env, args: ["--device=off", ...recordTo("s3://calls/ours", hooks)] });
  t.after(() => server.stop());
  const ana = await publish(server, {}, { layers: "qhf" });
  t.after(() => ana.close());
  const { recording } = await (await order(server, "POST")).json();
  await sleep(3000);
  assert.ok(existsSync(path.join(state, "recordings", recording)), "it is on the disk first");
  assert.equal((await order(server, "DELETE")).status, 204);
  const found = () => hooks.told.find(({ type }) => type === "recording_stored");
  const webhook = (await until(found, "the webhook tells where it is", 30_000)).recording;
  assert.equal(webhook.path, `s3://calls/ours/${recording}`);
  assert.ok(!readdirSync(path.join(state, "recordings")).includes(recording), "it has left the disk");

  const read = async (file) => {
    const answer = await fetch(`http://127.0.0.1:${filer}/buckets/calls/ours/${recording}/${file}`);
    assert.equal(answer.status, 200, file);
    return Buffer.from(await answer.arrayBuffer());
  };
  const { files, reason } = JSON.parse((await read(webhook.manifest)).toString());
  assert.deepEqual([reason, files.length], ["stopped", 1]);
  const copy = path.join(folder, files[0].file);
  writeFileSync(copy, await read(files[0].file));
  assert.ok((await probe(copy)).streams[0].nb_read_packets > 20);
  await decode(copy);
});
