// A room is recorded: everybody sees it, the files play, and a killed server goes on where it was.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { nativeFrames, publish, sleep, subscribe, until } from "../support/call.mjs";
import { freePort } from "../support/ports.mjs";
import { decode, manifest, order, probe, recordTo, webhooks } from "../support/recording.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "windlass-recording-"));
let hooks;
let told;

before(async () => {
  hooks = await webhooks(folder);
  told = hooks.told;
});

after(() => {
  hooks.close();
  rmSync(folder, { recursive: true, force: true });
});

const start = (ports, to = folder, env = {}) =>
  startServer({ ports, env, args: ["--device=off", ...recordTo(to, hooks)] });

/** A disk of its own, with room for some seconds; none where that is not allowed. */
function smallDisk() {
  const disk = mkdtempSync(path.join(tmpdir(), "windlass-disk-"));
  const made = spawnSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", disk]).status === 0;
  if (!made) rmSync(disk, { recursive: true, force: true });
  return made ? disk : null;
}

/** A camera of 20 frames a second: what is recorded has as many. */
const CAMERA = { layers: "qhf", browser: { args: ["--use-fake-device-for-media-stream"] } };

const badge = (tab) => tab.page.locator(".recorded").isVisible();

const NAME = "a recorded room says so, and its files play, also after the server was killed";
const why = !existsSync("/usr/bin/ffprobe") && "no ffprobe to read recordings with";

test(NAME, { skip: skipped(NAME, why) }, async () => {
  let server = await start();
  const tabs = [];
  try {
    const ana = await publish(server, {}, CAMERA);
    tabs.push(ana);
    await sleep(1000);
    const answer = await order(server, "POST");
    assert.equal(answer.status, 200, await answer.clone().text());
    const { recording } = await answer.json();
    await until(() => badge(ana), "the page says that it is recorded");
    const bo = await subscribe(server);
    tabs.push(bo);
    await until(() => badge(bo), "a newcomer is told too");
    await sleep(4000);
    assert.equal((await order(server, "DELETE")).status, 204);
    await until(async () => !(await badge(ana)) && !(await badge(bo)), "nobody is recorded any more");
    const ended = await until(() => told.find(({ type }) => type === "recording_ended"), "the webhook comes");
    assert.equal(told.find(({ type }) => type === "recording_started").recording.id, recording);
    assert.equal(ended.recording.reason, "stopped");
    assert.deepEqual(ended.recording.files.map(({ tracks }) => tracks), [["video", "audio"]]);
    const [file] = manifest(path.join(folder, recording)).files;
    assert.ok(file.complete && file.duration > 3 && file.name === "Publisher", JSON.stringify(file));
    const found = await probe(path.join(folder, recording, file.file));
    const [video, audio] = found.streams;
    assert.deepEqual([video.codec_name, audio.codec_name], ["vp9", "opus"]);
    assert.ok(Math.abs(found.format.duration - file.duration) < 0.1, JSON.stringify(found));
    assert.ok(video.nb_read_packets > file.duration * 15, `${video.nb_read_packets} pictures`);
    assert.ok(Math.abs(audio.nb_read_packets - file.duration * 50) < 25, `${audio.nb_read_packets} packets of sound`);
    await decode(path.join(folder, recording, file.file));

    const second = await (await order(server, "POST")).json();
    await sleep(5000);
    process.kill(server.pid, "SIGKILL");
    await until(() => !server.alive(), "the server is dead");
    const made = path.join(folder, second.recording);
    const part = readdirSync(made).find((name) => name.endsWith(".webm.part"));
    assert.ok((await probe(path.join(made, part))).streams[0].nb_read_packets > 20, "what was written plays");
    server = await start(server.ports);
    const files = () => manifest(made).files;
    await until(() => files().length === 2, "the recording goes on in another file", 30_000);
    await until(() => badge(ana), "and says so", 10_000);
    await sleep(2500);
    assert.equal((await order(server, "DELETE")).status, 204);
    await until(() => manifest(made).ended, "it ends");
    const [first, next] = files();
    assert.ok(!first.complete && next.complete && next.offset > first.offset + 3, JSON.stringify(files()));
    for (const { file } of files()) await decode(path.join(made, file));
  } finally {
    for (const tab of tabs) await tab.close();
    await server.stop();
  }
});

const FULL = "a full disk ends the recording, with its reason, and no call";
const disk = smallDisk();
const noDisk = disk === null && "no right to mount a small disk";

test(FULL, { skip: skipped(FULL, noDisk) }, async () => {
  const server = await start(undefined, disk);
  let ana;
  let bo;
  try {
    ana = await publish(server, {}, CAMERA);
    bo = await subscribe(server);
    const before = told.length;
    assert.equal((await order(server, "POST")).status, 200);
    const find = () => told.slice(before).find(({ type }) => type === "recording_ended");
    const { recording } = await until(find, "the webhook tells of the full disk", 30_000);
    assert.equal(recording.reason, "write_failed");
    assert.match(recording.error, /No space left/);
    await until(async () => !(await badge(ana)), "nobody is told that the room is recorded");
    assert.equal((await server.metrics()).windlass_recordings_failed_total, 1);
    const shown = await nativeFrames(bo.page);
    await until(async () => (await nativeFrames(bo.page)) > shown + 20, "the call goes on");
  } finally {
    await ana?.close();
    await bo?.close();
    await server.stop();
    spawnSync("umount", [disk]);
    rmSync(disk, { recursive: true, force: true });
  }
});

const STORED = "a recording waits for a store that is away, and then leaves the disk";

test(STORED, { skip: skipped(STORED, why) }, async () => {
  const port = await freePort();
  const [state, bucket] = ["state", "store"].map((name) => path.join(folder, name));
  const env = {
    STATE_DIRECTORY: state,
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    AWS_ACCESS_KEY_ID: "windlass",
    AWS_SECRET_ACCESS_KEY: "not much of a secret",
  };
  const server = await start(undefined, "s3://calls/ours", env);
  let ana;
  let bo;
  let store;
  try {
    ana = await publish(server, {}, CAMERA);
    bo = await subscribe(server);
    const { recording } = await (await order(server, "POST")).json();
    const written = () => {
      const folder = path.join(state, "recordings", recording);
      return readdirSync(folder).reduce((sum, file) => sum + statSync(path.join(folder, file)).size, 0);
    };
    await until(() => written() > 300_000, "more than a second is recorded", 30_000);
    const before = told.length;
    assert.equal((await order(server, "DELETE")).status, 204);
    await until(async () => (await server.metrics()).windlass_recordings_store_failures_total > 0, "nobody is there to store it", 20_000);
    assert.ok((await server.metrics()).windlass_recordings_unstored_bytes > 10_000);
    assert.ok(readdirSync(path.join(state, "recordings", recording)).length > 1, "it waits on the disk");
    const shown = await nativeFrames(bo.page);
    await until(async () => (await nativeFrames(bo.page)) > shown + 20, "the call goes on");

    const program = path.join(path.dirname(process.env.WINDLASS_BIN), "examples/real_store");
    store = spawn(program, [`127.0.0.1:${port}`, bucket], { stdio: ["ignore", "pipe", "inherit"] });
    await once(store.stdout, "data");
    const found = () => told.slice(before).find(({ type }) => type === "recording_stored");
    const webhook = (await until(found, "the webhook tells where it is", 20_000)).recording;
    assert.equal(webhook.path, `s3://calls/ours/${recording}`);
    assert.ok(!existsSync(path.join(state, "recordings", recording)), "it has left the disk");
    const made = path.join(bucket, "calls/ours", recording);
    const { files, reason } = JSON.parse(readFileSync(path.join(made, webhook.manifest), "utf8"));
    assert.deepEqual([reason, files.length], ["stopped", 1]);
    assert.ok((await probe(path.join(made, files[0].file))).streams[0].nb_read_packets > 20);
    await decode(path.join(made, files[0].file));
  } finally {
    await ana?.close();
    await bo?.close();
    await server.stop();
    store?.kill();
  }
});
