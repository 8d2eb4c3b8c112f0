// Firefox and Chromium in one room: each sees the other's moving picture, and Firefox rebuilds it too.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhanced, publish, remote, subscribe, until } from "../support/call.mjs";
import { firefoxMissing, openFirefox, ownAddress } from "../support/firefox.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const KEY = "#key=AAECAwQFBgcICQoLDA0ODw";

/** Whether a page's calls have a codec: what it sends (`RTCRtpSender`), or what it plays (`RTCRtpReceiver`). */
const has = (page, side, codec) =>
  page.evaluate(
    ([side, codec]) => globalThis[side].getCapabilities("video").codecs.some(({ mimeType }) => mimeType.toLowerCase() === `video/${codec}`),
    [side, codec],
  );

/** What a page shows of the first remote video: frames so far, and its picture in 64 × 36 grey values. */
const shown = (page, selector) =>
  page.evaluate((selector) => {
    const tiles = [...document.querySelectorAll(".tile[data-video] windlass-video")];
    const video = tiles.map((tile) => tile.shadowRoot.querySelector(selector)).find((v) => v.videoWidth > 0);
    if (!video) return null;
    if (video.framesSeen === undefined) {
      // Firefox counts none in getVideoPlaybackQuality() where a stream is played.
      video.framesSeen = 0;
      const seen = () => {
        video.framesSeen++;
        video.requestVideoFrameCallback(seen);
      };
      video.requestVideoFrameCallback(seen);
    }
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 64, height: 36 });
    const context = canvas.getContext("2d");
    context.drawImage(video, 0, 0, 64, 36);
    const { data } = context.getImageData(0, 0, 64, 36);
    const grey = Array.from({ length: 64 * 36 }, (_, i) => (data[4 * i] + data[4 * i + 1] + data[4 * i + 2]) / 3);
    return { frames: video.framesSeen, width: video.videoWidth, grey };
  }, selector);

/** Waits until a picture has moved on by `frames` frames and is another one. (Firefox's drawn camera is all of one colour, which changes.) */
async function moves(page, selector, frames = 60) {
  const from = await until(() => shown(page, selector), `there is a picture in ${selector}`, 30_000);
  let seen;
  const moved = async () => {
    const now = await shown(page, selector);
    seen = { frames: now.frames - from.frames, change: Math.max(...now.grey.map((v, i) => Math.abs(v - from.grey[i]))) };
    return seen.frames >= frames && seen.change > 2 && now;
  };
  return until(moved, `the picture in ${selector} moves`, 30_000).catch((error) => {
    throw new Error(`${error.message}: ${JSON.stringify(seen)}`);
  });
}

/** To be run in a page before its scripts: its camera shows text that moves. Firefox's own shows one colour, which is worth no anchor. */
function filmText() {
  const own = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async ({ video, ...more }) => {
    const stream = more.audio ? await own(more) : new MediaStream();
    if (!video) return stream;
    const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 360 });
    const context = canvas.getContext("2d");
    let n = 0;
    setInterval(() => {
      context.fillStyle = "#fff";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.fillStyle = "#000";
      context.font = "15px serif";
      for (let line = 0; line < 20; line++) {
        context.fillText(`${line} A line of text that a low layer cannot carry, ${line * 7919} times`, 40 + (n % 60), 18 * line + 16);
      }
      context.fillRect((n * 3) % canvas.width, 0, 60, canvas.height);
      n++;
    }, 40);
    for (const track of canvas.captureStream(15).getTracks()) stream.addTrack(track);
    return stream;
  };
}

const PLAIN = "video.plain";
const ENHANCED = "video.enhanced";

describe("a room with Firefox and Chromium", { only: true, skip: skipped("a room with Firefox and Chromium", firefoxMissing) }, () => {
  let server;
  let chromium;
  let firefox;
  let fox;

  const join = async (page, name, query, room = "call") => {
    await page.goto(`${server.url}/?room=${room}&name=${name}&auto=1&view=enhanced${query}`);
    await until(() => page.evaluate(() => window.windlass?.phase === "call"), `${name} joins`, 20_000);
  };

  before(async () => {
    server = await startServer({ udpHost: ownAddress, args: ["--no-congestion-control"] });
    // Two browsers encode, decode and rebuild: few frames will do.
    chromium = await publish(server, makeScene(fewFrames), { query: "&view=enhanced" });
    firefox = await openFirefox();
    fox = await firefox.newPage({ init: filmText });
    await join(fox.page, "Fox", "&layers=qh&detail=1");
    console.log(await firefox.version());
  });

  after(async () => {
    await Promise.all([chromium?.close(), firefox?.close()]);
    await server?.stop();
  });

  test("Firefox publishes VP9 in layers, and Chromium shows it moving", { only: true }, async () => {
    const picture = await moves(chromium.page, PLAIN);
    const sent = await fox.page.evaluate(async () => {
      const stats = [...(await window.windlass.room.connectionStats()).values()];
      const video = stats.filter((s) => s.type === "outbound-rtp" && s.kind === "video");
      return video.map((s) => ({ rid: s.rid, frames: s.framesEncoded, codec: stats.find((c) => c.id === s.codecId)?.mimeType }));
    });
    console.log(`Chromium shows Firefox's camera ${picture.width} wide; it sends ${JSON.stringify(sent)}`);
    const layers = sent.filter((layer) => layer.frames > 30);
    assert.deepEqual(layers.map((layer) => layer.rid).sort(), ["h", "q"]);
    assert.ok(layers.every((layer) => layer.codec === "video/VP9"));
  });

  test("Chromium's view of Firefox's camera is enhanced", async () => {
    await enhanced(chromium.page, 40_000);
    await moves(chromium.page, ENHANCED);
  });

  test("Firefox shows Chromium's camera moving, and enhanced by its own decoder", { only: true }, async () => {
    await moves(fox.page, PLAIN);
    const seen = await enhanced(fox.page, 40_000);
    const { frames } = await moves(fox.page, ENHANCED);
    // One that finds its machine too busy pauses for a while.
    const rate = async () => (await remote(fox.page)).stats.enhancedFps;
    await until(async () => (await rate()) > 0, "its decoder has a whole second", 40_000, rate);
    const { lr, hr, enhancedFps, decodeMs } = (await remote(fox.page)).stats;
    console.log(`Firefox: ${seen.rung}, ${lr.width} to ${hr.width} wide, ${enhancedFps.toFixed(0)} fps enhanced, ${decodeMs?.toFixed(1)} ms a frame, ${frames} shown`);
    assert.ok(hr.width > lr.width, `${lr.width}, ${hr.width}`);
    const told = await fox.page.evaluate(() => document.querySelector(".tile .notice").textContent);
    assert.equal(told, "", "nothing is missing");
  });

  test("encrypted end to end, each shows the other's camera, larger than it came", async () => {
    const [one, two] = [await chromium.newPage(), await firefox.newPage({ init: filmText })];
    try {
      await join(one.page, "One", `&layers=qh${KEY}`, "secret");
      await join(two.page, "Two", `&layers=qh${KEY}`, "secret");
      for (const [name, { page }] of [["Chromium", one], ["Firefox", two]]) {
        await moves(page, ENHANCED, 20);
        // One that finds its machine too busy shows the native picture for a while.
        const rebuilt = async () => (await remote(page)).state === "rebuilt" && remote(page);
        const { state, stats } = await until(rebuilt, "the picture is rebuilt", 60_000, () => remote(page));
        console.log(`encrypted, in ${name}: ${state}, ${stats.lr.width} to ${stats.hr.width} wide`);
        assert.ok(stats.hr.width > stats.lr.width);
        assert.equal(await page.evaluate(() => document.querySelector(".bar .encrypted").innerText), "Encrypted end to end");
      }
      assert.deepEqual([...one.errors, ...two.errors], []);
    } finally {
      await one.closePage();
      await two.page.close();
    }
  });

  for (const codec of ["vp8", "av1", "h264"]) {
    test(`Firefox rebuilds ${codec} too`, async (t) => {
      const sender = await subscribe(server, { room: codec, name: "Sender", browser: chromium });
      const viewer = await firefox.newPage();
      try {
        // Firefox has H.264 in calls by a plugin that it fetches from its maker.
        const [sends, plays] = [await has(sender.page, "RTCRtpSender", codec), await has(viewer.page, "RTCRtpReceiver", codec)];
        if (!sends || !plays) return t.skip(skipped(t.name, `no ${codec} in ${sends ? "Firefox's" : "Chromium's"} calls here`));
        await sender.page.evaluate(async (codec) => {
          const [track] = (await navigator.mediaDevices.getUserMedia({ video: true })).getVideoTracks();
          await window.windlass.room.publish(track, { codec, layers: "q" });
        }, codec);
        await viewer.page.goto(`${server.url}/?room=${codec}&name=Viewer&auto=1&view=enhanced&source=none`);
        await moves(viewer.page, ENHANCED);
        const { lr, hr } = (await remote(viewer.page)).stats;
        console.log(`Firefox rebuilds ${codec}: ${lr.width} to ${hr.width} wide`);
        assert.ok(hr.width > lr.width, `${lr.width}, ${hr.width}`);
        assert.deepEqual([...sender.errors, ...viewer.errors], []);
      } finally {
        await viewer.page.close();
        await sender.closePage();
      }
    });
  }

  test("neither browser complains", () => {
    assert.deepEqual(fox.errors, []);
    assert.deepEqual(chromium.errors, []);
  });

  for (const [lack, init] of [
    ["encoded transforms", () => delete window.RTCRtpScriptTransform],
    ["video frames", () => delete window.VideoFrame],
    ["tracks of canvases", () => delete HTMLCanvasElement.prototype.captureStream],
    ["WebAssembly", () => delete window.WebAssembly],
  ]) {
    test(`without ${lack} the plain picture is shown, with the reason`, async () => {
      const poor = await firefox.newPage({ init });
      await join(poor.page, "Poor", "&source=none");
      await moves(poor.page, PLAIN, 20);
      const tile = await poor.page.evaluate(() => {
        const tiles = [...document.querySelectorAll(".tile[data-video=on]")];
        return tiles.map((t) => [t.querySelector("windlass-video").getAttribute("state"), t.querySelector(".notice").textContent]);
      });
      assert.ok(tile.length >= 1);
      for (const [state, told] of tile) {
        assert.equal(state, "native");
        assert.match(told, /enhancement cannot run here/);
      }
      assert.deepEqual(poor.errors, []);
      await poor.page.close();
    });
  }
});
