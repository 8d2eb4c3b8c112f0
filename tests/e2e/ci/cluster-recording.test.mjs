// A room on two servers is recorded: an order to either is one to both, and each writes what its own participants send.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { publish, sleep, until } from "../support/call.mjs";
import { startNats } from "../support/nats.mjs";
import { decode, manifest, order, probe, recordTo, webhooks } from "../support/recording.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const CAMERA = { layers: "q", browser: { args: ["--use-fake-device-for-media-stream"] } };
const TOKEN = "a-cluster-of-these-tests";

const folder = mkdtempSync(path.join(tmpdir(), "windlass-cluster-recording-"));
let nats;
let hooks;
let servers;
const tabs = [];

before(async () => {
  nats = await startNats();
  hooks = await webhooks(folder);
  servers = await Promise.all(
    ["one", "other"].map((name) => {
      mkdirSync(path.join(folder, name));
      const cluster = (ports) => ["--nats", nats.url, "--cluster-token", TOKEN, "--node-url", `ws://localhost:${ports.http}/ws`, "--node-listen", "127.0.0.1:0", "--node-max-participants", "1"];
      return startServer({ args: (ports) => ["--device=off", ...cluster(ports), ...recordTo(path.join(folder, name), hooks)] });
    }),
  );
  const nodes = async () => Promise.all(servers.map(async (server) => (await server.metrics()).windlass_cluster_nodes));
  await until(async () => (await nodes()).every((n) => n === 2), "each knows two servers", 10_000);
});

after(async () => {
  for (const tab of tabs) await tab.close();
  for (const server of servers ?? []) await server.stop();
  hooks?.close();
  nats?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const NAME = "a room on two servers is recorded by both, and ended by an order to the other one";
const why = !existsSync("/usr/bin/ffprobe") && "no ffprobe to read recordings with";

test(NAME, { skip: skipped(NAME, why) }, async () => {
  const badge = (tab) => tab.page.locator(".recorded").isVisible();
  tabs.push(await publish(servers[0], {}, CAMERA));
  tabs.push(await publish(servers[0], {}, CAMERA));
  const at = async () => Promise.all(servers.map(async (server) => (await server.metrics()).windlass_sfu_participants));
  await until(async () => (await at()).every((n) => n === 1), "each server has one participant", 20_000, at);
  const answer = await order(servers[0], "POST");
  assert.equal(answer.status, 200, await answer.clone().text());
  const { recording } = await answer.json();
  for (const tab of tabs) await until(() => badge(tab), "each page says that it is recorded");
  await sleep(3000);
  assert.equal((await order(servers[1], "DELETE")).status, 204);
  for (const tab of tabs) await until(async () => !(await badge(tab)), "nobody is recorded any more");
  const ended = () => hooks.told.filter(({ type }) => type === "recording_ended");
  await until(() => ended().length === 2, "both servers say that it has ended", 20_000, () => hooks.told);
  assert.deepEqual(ended().map((hook) => hook.recording.id), [recording, recording]);
  const participants = [];
  for (const name of ["one", "other"]) {
    assert.deepEqual(readdirSync(path.join(folder, name)), [recording]);
    const made = path.join(folder, name, recording);
    const { files } = manifest(made);
    assert.equal(files.length, 1, `${JSON.stringify(files)}: what its own participant sends`);
    const [file] = files;
    assert.ok(file.complete && file.duration > 2, JSON.stringify(file));
    const { streams } = await probe(path.join(made, file.file));
    assert.deepEqual(streams.map(({ codec_name }) => codec_name), ["vp9", "opus"]);
    await decode(path.join(made, file.file));
    participants.push(file.participant);
  }
  assert.notEqual(participants[0], participants[1]);
});
