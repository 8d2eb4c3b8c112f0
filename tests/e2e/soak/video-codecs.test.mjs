// Other codecs than VP9: forwarded in layers as VP9 is, to those who can decode them.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { nativeFrames, publish, receivedVideo, refused, remote, subscribe, until } from "../support/call.mjs";
import { capture, quality } from "../support/capture.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";
import { withVideo } from "../support/still_call.mjs";

/** Publishes a moving picture in a codec; resolves to whether the browser has it. */
const send = (page, codec, options = {}) =>
  page.evaluate(async ([codec, options]) => {
    const codecs = RTCRtpSender.getCapabilities("video").codecs;
    if (!codecs.some(({ mimeType }) => mimeType.toLowerCase() === `video/${codec}`)) return false;
    const canvas = Object.assign(document.createElement("canvas"), { width: 1280, height: 720 });
    const context = canvas.getContext("2d");
    let n = 0;
    setInterval(() => {
      context.fillStyle = `hsl(${n++ % 360} 80% 50%)`;
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.fillStyle = "#fff";
      context.fillRect((n * 7) % canvas.width, 100, 80, 80);
    }, 40);
    const [track] = canvas.captureStream(25).getVideoTracks();
    [window.sent] = await window.windlass.room.publish(track, { codec, layers: "qh", content: "camera", ...options });
    return true;
  }, [codec, options]);

/** The codecs of the video that a page has sent within half a second, sorted. */
const codecsSent = (page) =>
  page.evaluate(async () => {
    const read = async () => {
      const stats = [...(await window.windlass.room.connectionStats()).values()];
      const sent = stats.filter(({ type, kind }) => type === "outbound-rtp" && kind === "video");
      return sent.map(({ id, bytesSent, codecId }) => ({ id, bytesSent, codecId, stats }));
    };
    const before = new Map((await read()).map(({ id, bytesSent }) => [id, bytesSent]));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const now = await read();
    const moving = now.filter(({ id, bytesSent }) => bytesSent > (before.get(id) ?? 0));
    const codecs = moving.map(({ codecId, stats }) => stats.find(({ id }) => id === codecId)?.mimeType);
    return [...new Set(codecs)].sort();
  });

/** To be run in a page before its scripts: the browser has VP8 alone. */
function haveVp8Alone() {
  const all = RTCRtpReceiver.getCapabilities.bind(RTCRtpReceiver);
  RTCRtpReceiver.getCapabilities = (kind) => {
    const found = all(kind);
    const fits = ({ mimeType }) => kind !== "video" || /vp8|rtx/i.test(mimeType);
    return { ...found, codecs: found.codecs.filter(fits) };
  };
}

describe("calls in other codecs than VP9", { only: true }, () => {
  let server;
  let viewer;

  before(async () => {
    server = await startServer({ args: ["--no-congestion-control"] });
    viewer = await subscribe(server, { room: "first" });
  });

  after(async () => {
    await viewer?.close();
    await server?.stop();
  });

  for (const codec of ["vp8", "h264", "av1"]) {
    test(`${codec} is seen, in its larger layer, and why it is not enhanced`, async (t) => {
      const publisher = await subscribe(server, { room: codec, name: "Publisher", browser: viewer });
      t.after(() => publisher.closePage());
      if (!(await send(publisher.page, codec))) return t.skip(skipped(t.name, `this browser has no ${codec}`));
      const other = await subscribe(server, { room: codec, browser: viewer });
      t.after(() => other.closePage());
      await until(async () => (await nativeFrames(other.page)) > 30, "the picture moves", 30_000, () => receivedVideo(other.page));
      await until(async () => (await receivedVideo(other.page))?.frameWidth === 640, "the larger layer comes", 30_000, () => receivedVideo(other.page));
      assert.equal((await receivedVideo(other.page)).codec, `video/${codec}`);
      await until(async () => (await refused(other.page)) === "codec", "the viewer is told", 10_000, () => refused(other.page));
      assert.deepEqual([...publisher.errors, ...other.errors], []);
    });
  }

  test("a browser without VP9 joins, sees VP8, and is told of what it cannot see", { only: true }, async (t) => {
    const publisher = await subscribe(server, { room: "mixed", name: "Publisher", browser: viewer });
    t.after(() => publisher.closePage());
    const old = await subscribe(server, { room: "mixed", name: "Old", browser: viewer, init: haveVp8Alone });
    t.after(() => old.closePage());
    await send(publisher.page, "vp9", { backupCodec: false });
    await until(async () => (await remote(old.page)) !== undefined, "the track is there");
    await until(async () => (await refused(old.page)) === "codec", "it is told", 15_000, () => refused(old.page));
    assert.equal(await nativeFrames(old.page), 0);
    await publisher.page.evaluate(() => window.windlass.room.unpublish(window.sent));
    await until(async () => (await remote(old.page)) === undefined, "the track is gone");
    await send(publisher.page, "vp8");
    await until(async () => (await nativeFrames(old.page)) > 30, "the picture moves", 30_000);
    assert.equal((await receivedVideo(old.page)).codec, "video/vp8");
    assert.deepEqual([...publisher.errors, ...old.errors], []);
  });

  test("a camera in VP9 is sent in VP8 too, while a browser without VP9 is there", async (t) => {
    const publisher = await subscribe(server, { room: "backup", name: "Publisher", browser: viewer });
    t.after(() => publisher.closePage());
    const modern = await subscribe(server, { room: "backup", name: "Modern", browser: viewer });
    t.after(() => modern.closePage());
    await send(publisher.page, "vp9");
    await until(async () => (await nativeFrames(modern.page)) > 30, "the picture moves", 30_000);
    assert.deepEqual(await codecsSent(publisher.page), ["video/VP9"]);

    const old = await subscribe(server, { room: "backup", name: "Old", browser: viewer, init: haveVp8Alone });
    t.after(() => old.closePage());
    const shown = () => receivedVideo(old.page);
    await until(async () => (await nativeFrames(old.page)) > 30, "the backup moves", 30_000, shown);
    await until(async () => (await shown())?.frameWidth === 640, "its larger layer comes", 30_000, shown);
    assert.deepEqual([(await shown()).codec, (await receivedVideo(modern.page)).codec], ["video/vp8", "video/vp9"]);
    assert.deepEqual(await codecsSent(publisher.page), ["video/VP8", "video/VP9"]);
    const tracks = (page) => page.evaluate(() => window.windlass.room.tracks.length);
    assert.deepEqual([await tracks(old.page), await tracks(modern.page)], [1, 1]);

    await publisher.page.evaluate(() => window.windlass.room.mute(window.sent, true));
    await until(() => old.page.evaluate(() => window.windlass.room.tracks[0].muted), "it is muted with its track");
    await publisher.page.evaluate(() => window.windlass.room.mute(window.sent, false));
    const before = await nativeFrames(old.page);
    await until(async () => (await nativeFrames(old.page)) > before + 30, "it goes on with its track", 30_000, shown);

    await publisher.page.evaluate(() => window.windlass.room.unpublish(window.sent));
    await until(async () => (await tracks(old.page)) === 0, "it ends with its track");
    await send(publisher.page, "vp9");
    await until(async () => (await nativeFrames(old.page)) > 30, "the next camera has a backup too", 30_000, shown);

    await old.closePage();
    await until(async () => (await codecsSent(publisher.page)).length === 1, "it is paused again", 30_000);
    assert.deepEqual(await codecsSent(publisher.page), ["video/VP9"]);
    assert.deepEqual([...publisher.errors, ...modern.errors, ...old.errors], []);
  });

  test("a player that decodes H.264 alone plays a camera in VP9, by WHEP", async (t) => {
    const publisher = await subscribe(server, { room: "player", name: "Publisher", browser: viewer });
    t.after(() => publisher.closePage());
    const encodes = await publisher.page.evaluate(() =>
      RTCRtpSender.getCapabilities("video").codecs.some(({ mimeType }) => mimeType === "video/H264"),
    );
    if (!encodes) return t.skip(skipped(t.name, "this browser has no h264"));
    await send(publisher.page, "vp9");
    const player = await subscribe(server, { room: "elsewhere", name: "Player", browser: viewer });
    t.after(() => player.closePage());
    const status = await player.page.evaluate(async () => {
      const peer = new RTCPeerConnection();
      const video = peer.addTransceiver("video", { direction: "recvonly" });
      const { codecs } = RTCRtpReceiver.getCapabilities("video");
      video.setCodecPreferences(codecs.filter(({ mimeType }) => /h264|rtx/i.test(mimeType)));
      await peer.setLocalDescription();
      const headers = { "content-type": "application/sdp" };
      const answer = await fetch("/whep/player", { method: "POST", headers, body: peer.localDescription.sdp });
      if (answer.ok) await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
      window.player = peer;
      return answer.status;
    });
    assert.equal(status, 201);
    const played = () =>
      player.page.evaluate(async () => {
        const stats = await window.player.getStats();
        const video = [...stats.values()].find(({ type }) => type === "inbound-rtp");
        return { frames: video?.framesDecoded ?? 0, codec: stats.get(video?.codecId)?.mimeType };
      });
    await until(async () => (await played()).frames > 30, "the player plays", 30_000, played);
    assert.equal((await played()).codec, "video/H264");
  });
});

describe("stills over other codecs than VP9", () => {
  let scene;
  let server;
  let publisher;
  let viewer;

  before(async () => {
    scene = makeScene({ clip: "d13" });
    // The server reads none of these codecs, so it needs no enhancer.
    server = await startServer({ args: ["--no-congestion-control", "--device=off"] });
    publisher = await publish(server, scene, { query: "&source=none" });
    viewer = await subscribe(server);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  /** Publishes the camera in a codec, with stills where `detail` is "ask"; false: this browser does not encode it. */
  const shoot = (codec, detail) =>
    publisher.page.evaluate(
      async ([codec, detail]) => {
        const encodes = RTCRtpSender.getCapabilities("video").codecs.some(({ mimeType }) => mimeType.toLowerCase() === `video/${codec}`);
        if (!encodes) return false;
        const [track] = (await navigator.mediaDevices.getUserMedia({ video: true })).getVideoTracks();
        [window.sent] = await window.windlass.room.publish(track, { codec, layers: "qh", content: "camera", detail });
        return true;
      },
      [codec, detail],
    );

  for (const codec of ["h264", "vp8", "av1"]) {
    test(`${codec} is rebuilt, and better by stills`, async (t) => {
      if (!(await shoot(codec, "ask"))) return t.skip(skipped(t.name, `this browser has no ${codec}`));
      t.after(() => publisher.page.evaluate(() => window.windlass.room.unpublish(window.sent)));
      await until(async () => (await receivedVideo(viewer.page))?.codec === `video/${codec}`, "it comes", 30_000);
      const now = async () => [await remote(viewer.page), await withVideo(publisher.page, (video) => video.stills.regions)];
      const used = async () => (await remote(viewer.page))?.stats?.anchorsUsed ?? 0;
      const before = await used();
      await until(async () => (await used()) >= before + 5, "stills are used", 60_000, now);
      const { state, stats } = await remote(viewer.page);
      assert.deepEqual([state, stats.detailFrom, stats.anchorsLost, stats.faults], ["enhanced", "captured", 0, 0]);
      const q = quality(await capture(viewer.page, 4), scene);
      const { sent, bytes } = await withVideo(publisher.page, (video) => video.stills.regions);
      console.log(
        `${codec}: PSNR-Y over ${q.pairs} frames: ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)}, Lanczos ${q.lanczos.toFixed(2)}; ` +
          `${sent} stills of ${Math.round(bytes / sent)} bytes; ${stats.decodeMs.toFixed(1)} ms a frame`,
      );
      assert.ok(q.pairs >= 10 && q.enhanced > q.lanczos + 0.5, JSON.stringify(q));
    });
  }

  test("without stills a picture is rebuilt by the viewer's machine alone", async (t) => {
    if (!(await shoot("h264", "off"))) return t.skip(skipped(t.name, "this browser has no h264"));
    const newcomer = await subscribe(server, { name: "Newcomer", browser: viewer });
    t.after(() => newcomer.closePage());
    await until(async () => (await remote(newcomer.page))?.state === "rebuilt", "it is rebuilt", 30_000, () => remote(newcomer.page));
    const q = quality(await capture(newcomer.page, 4), scene);
    console.log(`h264 without stills: PSNR-Y over ${q.pairs} frames: ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)}, Lanczos ${q.lanczos.toFixed(2)}`);
    assert.ok(q.pairs >= 10 && q.enhanced > q.bicubic, JSON.stringify(q));
    assert.deepEqual([...publisher.errors, ...viewer.errors, ...newcomer.errors], []);
  });
});
