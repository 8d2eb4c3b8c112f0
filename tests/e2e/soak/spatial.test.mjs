// A publisher of spatial layers in one encoding (SVC of VP9 and AV1), as other pages and programs send them: each viewer gets as many as it shows and as
// its link carries.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { countFreezes, nativeFrames, receivedVideo, refused, remote, sleep, subscribe, until } from "../support/call.mjs";
import { startNats } from "../support/nats.mjs";
import { decode, manifest, order, probe, recordTo, webhooks } from "../support/recording.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** What is sent: a camera of this width in these layers, whose smallest one has `smallest`, and how much of all bits that takes at most. */
const CASES = [
  { codec: "vp9", mode: "L3T3_KEY", width: 1280, smallest: 320, share: 0.4 },
  { codec: "vp9", mode: "L3T3", width: 1280, smallest: 320, share: 0.4 },
  { codec: "vp9", mode: "L2T1", width: 1280, smallest: 640, share: 0.7 },
  { codec: "av1", mode: "L2T2_KEY", width: 640, smallest: 320, share: 0.7 },
];

const sceneOf = (width) => makeScene({ clip: "d13", width, height: (width * 9) / 16, fps: 15, frames: 120 });

/** Publishes a camera by WHIP. */
async function publishLayers(server, { codec, mode, width }) {
  const publisher = await openPage({ camera: sceneOf(width).file });
  await publisher.page.goto(`${server.url}/?source=none`);
  await publisher.page.evaluate(async ([codec, mode, width]) => {
    const stream = await navigator.mediaDevices.getUserMedia({ video: { width, height: (width * 9) / 16 } });
    const peer = new RTCPeerConnection();
    const [track] = stream.getVideoTracks();
    const sendEncodings = [{ scalabilityMode: mode, maxBitrate: 1_500_000 }];
    const video = peer.addTransceiver(track, { direction: "sendonly", streams: [stream], sendEncodings });
    const { codecs } = RTCRtpSender.getCapabilities("video");
    const other = ({ mimeType, sdpFmtpLine }) => !mimeType.toLowerCase().endsWith(codec) || /profile(-id)?=[^0]/.test(sdpFmtpLine ?? "");
    video.setCodecPreferences(codecs.filter((has) => /rtx/i.test(has.mimeType) || !other(has)));
    await peer.setLocalDescription();
    const headers = { "content-type": "application/sdp" };
    const answer = await fetch("/whip/call", { method: "POST", headers, body: peer.localDescription.sdp });
    await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    window.sender = video.sender;
  }, [codec, mode, width]);
  return publisher;
}

/** What the publisher sends. */
const sends = (page) =>
  page.evaluate(async () => {
    const sent = [...(await window.sender.getStats()).values()].find(({ type }) => type === "outbound-rtp");
    const { frameWidth, scalabilityMode, keyFramesEncoded, pliCount, framesEncoded, targetBitrate } = sent ?? {};
    return { frameWidth, scalabilityMode, keyFramesEncoded, pliCount, framesEncoded, targetBitrate };
  });

const show = (page, width, height) => page.evaluate(([width, height]) => window.windlass.remoteVideos()[0].setView({ width, height }), [width, height]);

/** Waits until a viewer's native picture is so wide. */
async function becomes(viewer, width, state) {
  const there = async () => (await receivedVideo(viewer.page))?.frameWidth === width;
  await until(there, `the picture is ${width} wide`, 40_000, state);
}

describe("spatial layers of one encoding", { only: true }, () => {
  for (const [n, sent] of CASES.entries()) {
    const { codec, mode, width, smallest, share } = sent;
    const [wide, narrow] = [width, smallest].map((width) => [width, (width * 9) / 16]);
    test(`${codec} ${mode}: each viewer has those of its tile, and changes without a freeze`, { only: n === 0 }, async (t) => {
      const server = await startServer({ args: ["--no-congestion-control", "--device=off"] });
      t.after(() => server.stop());
      const publisher = await publishLayers(server, sent);
      t.after(() => publisher.close());
      const [large, small] = [await subscribe(server), await subscribe(server, { name: "Small" })];
      t.after(() => Promise.all([large.close(), small.close()]));
      const state = async () => ({ sends: await sends(publisher.page), large: [await receivedVideo(large.page), await remote(large.page)], small: await receivedVideo(small.page) });
      for (const { page } of [large, small]) await until(async () => (await remote(page)) !== undefined, "the track is there", 30_000);
      await show(large.page, ...wide);
      await show(small.page, ...narrow);
      await becomes(large, width, state);
      await becomes(small, smallest, state);
      assert.equal((await remote(large.page)).state, "native");
      await until(async () => (await refused(large.page)) === "codec", "the viewer is told", 10_000);

      const bytes = async () => (await receivedVideo(small.page)).bytesReceived;
      const [before, from] = [await receivedVideo(large.page), await bytes()];
      await sleep(4000);
      const received = (await receivedVideo(large.page)).bytesReceived - before.bytesReceived;
      const ofSmall = (await bytes()) - from;
      console.log(`${codec} ${mode}: in 4 s ${received} bytes for the large picture, ${ofSmall} for the small one`);
      assert.ok(ofSmall < received * share, `${ofSmall} of ${received}`);

      const freezes = await countFreezes(large.page);
      const { pliCount } = await sends(publisher.page);
      await show(large.page, ...narrow);
      await becomes(large, smallest, state);
      assert.equal((await sends(publisher.page)).pliCount, pliCount, "no key frame is needed");
      await sleep(2000);
      await show(large.page, ...wide);
      await becomes(large, width, state);
      const seen = await freezes();
      console.log(`${codec} ${mode}: down and up:`, JSON.stringify(seen));
      assert.ok(seen.frozen < 0.1, JSON.stringify(seen));
      assert.ok(seen.fps > 10, JSON.stringify(seen));
      assert.deepEqual([...large.errors, ...small.errors, ...publisher.errors], []);
    });
  }

  test("AV1: a viewer at another server has those of its tile", async (t) => {
    const nats = await startNats();
    t.after(() => nats.stop());
    const cluster = ["--nats", nats.url, "--cluster-token", "a-cluster-of-these-tests", "--node-listen", "127.0.0.1:0", "--node-max-participants", "1"];
    const args = (ports) => ["--no-congestion-control", "--device=off", ...cluster, "--node-url", `ws://localhost:${ports.http}/ws`];
    const servers = await Promise.all([0, 1].map(() => startServer({ args })));
    t.after(() => Promise.all(servers.map((server) => server.stop())));
    const of = (metric) => Promise.all(servers.map(async (server) => (await server.metrics())[metric]));
    await until(async () => (await of("windlass_cluster_nodes")).every((n) => n === 2), "each knows the other", 10_000);
    const { width, smallest } = CASES[3];
    const publisher = await publishLayers(servers[0], CASES[3]);
    t.after(() => publisher.close());
    await until(async () => (await sends(publisher.page)).framesEncoded > 30, "layers are sent", 30_000);
    const viewer = await subscribe(servers[0]);
    t.after(() => viewer.close());
    await until(async () => (await remote(viewer.page)) !== undefined, "the track is there", 30_000);
    assert.deepEqual(await of("windlass_sfu_participants"), [1, 1]);
    const state = async () => ({ sends: await sends(publisher.page), viewer: [await receivedVideo(viewer.page), await remote(viewer.page)] });
    await show(viewer.page, width, (width * 9) / 16);
    await becomes(viewer, width, state);
    const freezes = await countFreezes(viewer.page);
    await show(viewer.page, smallest, (smallest * 9) / 16);
    await becomes(viewer, smallest, state);
    await sleep(3000);
    await show(viewer.page, width, (width * 9) / 16);
    await becomes(viewer, width, state);
    const seen = await freezes();
    console.log("AV1 over two servers, down and up:", JSON.stringify(seen));
    assert.ok(seen.frozen < 0.1 && seen.fps > 5, JSON.stringify(seen));
    assert.deepEqual([...viewer.errors, ...publisher.errors], []);
  });

  test("a recording has the smallest layer, and plays", async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), "windlass-spatial-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const hooks = await webhooks(folder);
    t.after(() => hooks.close());
    const server = await startServer({ args: ["--device=off", ...recordTo(folder, hooks)] });
    t.after(() => server.stop());
    const publisher = await publishLayers(server, CASES[0]);
    t.after(() => publisher.close());
    await until(async () => (await sends(publisher.page)).framesEncoded > 30, "layers are sent", 30_000);
    assert.equal((await order(server, "POST")).status, 200);
    await sleep(6000);
    assert.equal((await order(server, "DELETE")).status, 204);
    const { recording } = await until(() => hooks.told.find(({ type }) => type === "recording_ended"), "it has ended");
    const [{ file, duration }] = manifest(path.join(folder, recording.id)).files;
    const made = path.join(folder, recording.id, file);
    const [video] = (await probe(made)).streams;
    console.log(`recorded: ${JSON.stringify(video)} in ${duration} s`);
    assert.deepEqual([video.codec_name, video.width], ["vp9", CASES[0].smallest]);
    assert.ok(video.nb_read_packets > duration * 5, `${video.nb_read_packets} pictures in ${duration} s`);
    await decode(made);
  });

  test("a viewer whose link carries less gets fewer of them", async (t) => {
    const server = await startServer({ link: ["--profile", "300k", "--down-only"], args: ["--device=off"] });
    t.after(() => server.stop());
    const publisher = await publishLayers(server, CASES[0]);
    t.after(() => publisher.close());
    const viewer = await subscribe(server);
    t.after(() => viewer.close());
    await until(async () => (await nativeFrames(viewer.page)) > 30, "the picture moves", 40_000);
    await show(viewer.page, 1280, 720);
    await sleep(10_000);
    const freezes = await countFreezes(viewer.page);
    await sleep(10_000);
    const [seen, { frameWidth }] = [await freezes(), await receivedVideo(viewer.page)];
    console.log("300 kbit/s:", JSON.stringify({ ...seen, frameWidth, rung: (await remote(viewer.page)).rung, sends: await sends(publisher.page) }));
    assert.ok(frameWidth < 1280, `${frameWidth}`);
    assert.ok(seen.frozen < 0.1 && seen.fps > 8, JSON.stringify(seen));
    assert.deepEqual([...viewer.errors, ...publisher.errors], []);
  });
});
