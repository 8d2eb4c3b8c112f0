// End-to-end encryption: those who have the key see and hear each other, and nobody else does, the server included.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { heard, span, speak } from "../support/audio.mjs";
import { capture, quality } from "../support/capture.mjs";
import { nativeFrames, publish, receivedVideo, refused, remote, showLarge, sleep, subscribe, until } from "../support/call.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { regions } from "../support/still_call.mjs";

const KEY = "#key=AAECAwQFBgcICQoLDA0ODw";
const OTHER = "#key=AAECAwQFBgcICQoLDA0ODQ";

/** To be run in a page before its scripts: keeps its connections, their channels, and the anchor messages that its workers get. */
function watchAnchors() {
  Object.assign(window, { peers: [], channels: [], anchors: [] });
  const Plain = RTCPeerConnection;
  window.RTCPeerConnection = class extends Plain {
    constructor(...options) {
      super(...options);
      window.peers.push(this);
      this.addEventListener("datachannel", ({ channel }) => window.channels.push(channel));
    }
  };
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...more) {
    if (message?.type === "anchor") window.anchors.push(new Uint8Array(message.data.slice(0)));
    return post.call(this, message, ...more);
  };
}

/** The messages of the last anchor that a page has got whole. */
const lastAnchor = ({ page }) =>
  page.evaluate(() => {
    const of = (message) => new DataView(message.buffer).getUint32(16);
    const all = window.anchors.map((message) => window.anchors.filter((other) => of(other) === of(message)));
    return all.findLast((messages) => messages.length === new DataView(messages[0].buffer).getUint16(12))?.map((message) => [...message]);
  });

/** Gives a page an anchor, as its server could: for the frame of its first remote video that is shown now. */
const forgeAnchor = ({ page }, messages) =>
  page.evaluate((messages) => {
    const [track] = window.windlass.remoteVideos();
    const receiver = window.peers.flatMap((peer) => peer.getReceivers()).find((receiver) => receiver.track.id === track.plain.id);
    const [{ rtpTimestamp }] = receiver.getSynchronizationSources();
    const channel = window.channels.find(({ label }) => label === "windlass-anchors");
    for (const message of messages) {
      const { buffer } = Uint8Array.from(message);
      const view = new DataView(buffer);
      view.setUint32(4, track.stream);
      view.setUint32(16, rtpTimestamp);
      channel.dispatchEvent(new MessageEvent("message", { data: buffer }));
    }
  }, messages);

/** A camera of twelve frames a second: slow machines encode and rebuild two of those in time. */
const camera = () => makeScene(fewFrames);

describe("a call with end-to-end encryption", () => {
  let server;
  let publisher;
  let viewer;

  before(async () => {
    server = await startServer({ args: ["--no-congestion-control"] });
    publisher = await publish(server, camera(), { layers: "qh", hash: KEY });
    await speak(publisher.page);
    viewer = await subscribe(server, { hash: KEY, init: watchAnchors });
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  const frames = async (tab) => (await receivedVideo(tab.page))?.framesDecoded ?? 0;
  /** Bytes of video that a page has received. */
  const bytes = ({ page }) =>
    page.evaluate(async () => {
      const all = [...((await window.windlass.room.connectionStats())?.values() ?? [])];
      return all.reduce((sum, s) => sum + (s.type === "inbound-rtp" && s.kind === "video" ? s.bytesReceived : 0), 0);
    });

  test("who has the key sees and hears it, made larger by the viewer's machine alone", async () => {
    await showLarge(viewer.page);
    await until(async () => (await nativeFrames(viewer.page)) > 20, "frames are decoded", 30_000);
    await until(async () => (await remote(viewer.page)).state === "rebuilt", "the picture is rebuilt", 30_000, () => remote(viewer.page));
    await until(async () => (await heard(viewer.page, "tone"))?.totalAudioEnergy > 0.01, "the tone is heard", 20_000);
    await until(async () => (await refused(viewer.page)) === "encrypted", "it is told why there are no anchors", 10_000);
    assert.equal(await viewer.page.innerText(".bar .encrypted"), "Encrypted end to end");
    assert.equal((await remote(viewer.page)).stats.anchorsUsed, 0);
    assert.equal((await server.metrics()).windlass_sfu_tap_frames_total, 0, "the server has tapped nothing");
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });

  test("a server cannot draw into the picture", async (t) => {
    const plain = await publish(server, camera(), { room: "plain", layers: "qh", query: "&detail=1", beside: publisher });
    t.after(() => plain.closePage());
    const trusting = await subscribe(server, { room: "plain", browser: viewer, init: watchAnchors });
    t.after(() => trusting.closePage());
    const anchor = await until(() => lastAnchor(trusting), "a plain still comes", 60_000);
    // A page has no figures in its first second; one that finds its machine too busy shows the native picture for a while, and takes no anchors.
    const lost = ({ page }) =>
      until(async () => (await remote(page)).stats, "pictures are rebuilt", 60_000, () => remote(page)).then(({ anchorsLost }) => anchorsLost);
    const before = [await lost(trusting), await lost(viewer)];
    await forgeAnchor(trusting, anchor);
    const refuses = async () => {
      await forgeAnchor(viewer, anchor);
      return (await lost(viewer)) > before[1];
    };
    await until(refuses, "it is refused", 60_000, () => remote(viewer.page));
    assert.equal(await lost(trusting), before[0], "into a plain one it can");
  });

  test("who has another key gets packets, and sees and hears nothing", async (t) => {
    const stranger = await subscribe(server, { name: "Stranger", hash: OTHER, browser: viewer });
    t.after(() => stranger.closePage());
    await until(async () => (await heard(stranger.page, "tone"))?.packetsReceived > 50 && (await bytes(stranger)) > 50_000, "packets come", 20_000);
    const { totalAudioEnergy } = await span(stranger.page, "tone", 2);
    assert.ok(totalAudioEnergy < 1e-6, `${totalAudioEnergy}`);
    assert.equal(await frames(stranger), 0);
  });

  test("who has no key is sent nothing", async (t) => {
    const guest = await subscribe(server, { name: "Guest", browser: viewer });
    t.after(() => guest.closePage());
    await until(() => guest.page.evaluate(() => window.windlass.remoteVideos()[0]?.encrypted), "the track is announced", 10_000);
    assert.equal(await guest.page.locator(".bar .encrypted").count(), 0);
    await sleep(2000);
    assert.equal(await bytes(guest), 0);
    assert.equal(await heard(guest.page, "tone"), null);
  });

  test("after a new key those who have it go on, and who has the old one alone sees nothing more", async (t) => {
    const gone = await subscribe(server, { name: "Gone", hash: KEY, browser: viewer });
    t.after(() => gone.closePage());
    await until(async () => (await frames(gone)) > 30, "it sees the picture with the old key", 30_000);
    for (const { page } of [viewer, publisher]) {
      await page.evaluate(() => window.windlass.room.setEncryptionKey({ key: new Uint8Array(16).fill(9), index: 1 }));
    }
    await sleep(1000);
    const [left, before] = [await frames(gone), await frames(viewer)];
    await until(async () => (await frames(viewer)) > before + 60, "who has the new key goes on", 20_000);
    assert.ok((await frames(gone)) <= left + 1, "who has the old one does not");
  });

  test("what is not encrypted is not received", async (t) => {
    const plain = await publish(server, camera(), { room: "mixed", layers: "q", beside: publisher });
    t.after(() => plain.closePage());
    const trusting = await subscribe(server, { room: "mixed", browser: viewer });
    t.after(() => trusting.closePage());
    await until(async () => (await frames(trusting)) > 10, "who takes plain pictures sees it", 20_000);
    const wary = await subscribe(server, { room: "mixed", hash: KEY, browser: viewer });
    t.after(() => wary.closePage());
    await until(() => wary.page.evaluate(() => window.windlass.remoteVideos().length === 1), "the track is announced", 10_000);
    await sleep(2000);
    assert.equal(await bytes(wary), 0);
  });
});

describe("stills of a call with end-to-end encryption", () => {
  let server;
  let publisher;
  let viewer;
  const scene = makeScene(fewFrames);

  before(async () => {
    // Nothing is computed of what nobody there can read.
    server = await startServer({ args: ["--no-congestion-control", "--device=off"] });
    publisher = await publish(server, scene, { layers: "qh", query: "&detail=1", hash: KEY });
    viewer = await subscribe(server, { hash: KEY, init: watchAnchors });
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("they make the picture better, on a server without an enhancer", async () => {
    const used = async () => (await remote(viewer.page)).stats.anchorsUsed;
    await until(async () => (await used()) >= 4, "stills are used", 60_000, async () => [await remote(viewer.page), await regions(publisher.page)]);
    const { state, stats } = await remote(viewer.page);
    assert.deepEqual([state, stats.detailFrom, stats.anchorsLost, await refused(viewer.page)], ["enhanced", "captured", 0, null]);
    const captured = await capture(viewer.page, 5);
    const q = quality(captured, scene);
    const counts = await regions(publisher.page);
    console.log(
      `encrypted stills: PSNR-Y over ${q.pairs} frames: ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)}, ` +
        `Lanczos ${q.lanczos.toFixed(2)}; ${counts.sent} stills of ${Math.round(counts.bytes / counts.sent)} bytes`,
    );
    assert.ok(q.pairs >= 10 && q.enhanced > q.lanczos + 0.5, JSON.stringify(q));
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });

  test("nobody on the way can read them", async () => {
    const first = await viewer.page.evaluate(() => window.anchors.filter((message) => message[11] === 0).map((message) => [...message.slice(24, 28)]));
    assert.ok(first.length >= 4);
    // Plain ones begin with the marker of JPEG 2000.
    for (const [a, b] of first) assert.notEqual((a << 8) | b, 0xff4f);
  });

  test("after a new key they go on", async () => {
    for (const { page } of [viewer, publisher]) {
      await page.evaluate(() => window.windlass.room.setEncryptionKey({ key: new Uint8Array(16).fill(9), index: 1 }));
    }
    // A key id of eight bytes, the first of which is the key's index.
    const byNew = () => viewer.page.evaluate(() => window.anchors.some((m) => m[11] === 0 && m[24] >> 4 === 15 && m[25] === 1));
    await until(byNew, "a still by the new key comes", 20_000);
    const { anchorsUsed, anchorsLost } = (await remote(viewer.page)).stats;
    await until(async () => (await remote(viewer.page)).stats.anchorsUsed >= anchorsUsed + 2, "stills by it are used", 30_000);
    assert.equal((await remote(viewer.page)).stats.anchorsLost, anchorsLost);
  });
});
