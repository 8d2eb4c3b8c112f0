// A room is recorded with its enhanced picture: a browser plays it, in its larger size and with the times of the other file.
// Runs beside one other file.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { publish, until } from "../support/call.mjs";
import { decode, manifest, order, packetTimes, probe, recordTo, webhooks } from "../support/recording.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "windlass-enhanced-"));
let hooks;

before(async () => {
  hooks = await webhooks(folder);
});

after(() => {
  hooks.close();
  rmSync(folder, { recursive: true, force: true });
});

const start = (ports) => startServer({ ports, args: ["--device=cpu", ...recordTo(folder, hooks)] });

/** Has a browser play a file, and tells what it has shown. */
async function play(file) {
  const tab = await openPage({ cameraAllowed: false });
  try {
    await tab.page.goto(`${hooks.url}/${file}`);
    return await tab.page.evaluate(async () => {
      const video = document.querySelector("video");
      video.muted = true;
      const ended = new Promise((done, failed) => {
        video.onended = done;
        video.onerror = () => failed(new Error(video.error?.message));
      });
      await video.play();
      await ended;
      const { videoWidth, videoHeight, currentTime } = video;
      return { videoWidth, videoHeight, currentTime, frames: video.getVideoPlaybackQuality().totalVideoFrames };
    });
  } finally {
    await tab.close();
  }
}

const NAME = "an enhanced recording has a larger picture that plays, though the server was killed while it was made";
const why = !existsSync("/usr/bin/ffprobe") && "no ffprobe to read recordings with";

test(NAME, { skip: skipped(NAME, why) }, async () => {
  let server = await start();
  let ana;
  try {
    ana = await publish(server, makeScene(fewFrames), { layers: "q" });
    const { recording, enhanced } = await (await order(server, "POST", { enhanced: true })).json();
    assert.ok(enhanced, "the answer says so");
    const made = path.join(folder, recording);
    const names = (end) => readdirSync(made).filter((name) => name.endsWith(end));
    await until(() => names(".anchors").length === 1, "anchors are recorded though nobody watches", 30_000);
    const anchors = async () => (await server.metrics()).windlass_enhancer_anchors_total;
    const [begun, before] = [Date.now(), await anchors()];
    await until(async () => Date.now() - begun > 4000 && (await anchors()) >= before + 4, "seconds with anchors are recorded", 30_000);
    assert.equal((await order(server, "DELETE")).status, 204);
    await until(() => names(".enhanced.webm.part").length === 1, "the enhanced picture is being made", 30_000);
    process.kill(server.pid, "SIGKILL");
    await until(() => !server.alive(), "the server is dead");
    server = await start(server.ports);
    const found = () => hooks.told.find(({ type }) => type === "recording_enhanced");
    const webhook = await until(found, "the webhook tells that it is made", 200_000);
    assert.equal(webhook.recording.id, recording);
    const [file] = manifest(made).files;
    console.log(JSON.stringify(file));
    assert.equal(file.enhanced.state, "made", JSON.stringify(file));
    assert.equal(webhook.recording.files[0].enhanced, file.enhanced.file);
    assert.ok(file.enhanced.anchors > 2, JSON.stringify(file.enhanced));
    await until(() => names(".anchors").length === 0, "the anchors are gone");
    assert.deepEqual(names(".part"), []);
    const [plain, larger] = [file.file, file.enhanced.file].map((name) => path.join(made, name));
    const [video, audio] = (await probe(larger)).streams;
    assert.deepEqual([video.codec_name, audio.codec_name], ["av1", "opus"]);
    await decode(larger);
    for (const stream of ["v", "a"]) {
      const [of, wanted] = [await packetTimes(larger, stream), await packetTimes(plain, stream)];
      assert.deepEqual(of, wanted, "sound and picture stay in step");
    }
    const [small, large] = await Promise.all([file.file, file.enhanced.file].map((name) => play(`${recording}/${name}`)));
    console.log(JSON.stringify({ small, large }));
    assert.deepEqual([large.videoWidth, large.videoHeight], [small.videoWidth * 2, small.videoHeight * 2]);
    assert.ok(Math.abs(large.currentTime - small.currentTime) < 0.1, JSON.stringify({ small, large }));
    assert.ok(large.frames > small.frames * 0.9, JSON.stringify({ small, large }));
  } finally {
    await ana?.close();
    await server.stop();
  }
});
