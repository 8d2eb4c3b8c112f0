// A server that codes anchors as HTJ2K, or as a VP9 stream: clients that can decode them are enhanced, others get the plain rung.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhanced, nativeFrames, publish, remote, subscribe, until } from "./support/call.mjs";
import { tooSlow } from "./support/capacity.mjs";
import { makeScene } from "./support/scene.mjs";
import { startServer } from "./support/server.mjs";

/** To be run in a page before its scripts: the client says nothing of codecs, as those before them did. */
function sayNothingOfCodecs() {
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    const message = JSON.parse(text);
    delete message.anchor_codecs;
    return send.call(this, JSON.stringify(message));
  };
}

/** To be run in a page before its scripts: while `window.loseAnchors` is set, messages of data channels are counted there instead of arriving. */
function loseAnchorsOnDemand() {
  const { set, get } = Object.getOwnPropertyDescriptor(RTCDataChannel.prototype, "onmessage");
  Object.defineProperty(RTCDataChannel.prototype, "onmessage", {
    get,
    set(listener) {
      set.call(this, (event) => (window.loseAnchors === undefined ? listener.call(this, event) : window.loseAnchors++));
    },
  });
}

describe("a call with anchors in HTJ2K", { timeout: 240_000 }, () => {
  let server;
  let publisher;
  let viewer;
  /** Why this processor cannot do it, if so. */
  let slow = false;

  before(async () => {
    server = await startServer({ args: ["--no-congestion-control", "--anchor-codec", "htj2k"] });
    slow = await tooSlow(server, 640, 360);
    publisher = await publish(server, makeScene({ clip: "d13", out: "output" }));
    viewer = await subscribe(server);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("a client that can decode them is enhanced", async (t) => {
    if (slow) return t.skip(slow);
    const { rung } = await enhanced(viewer.page, 40_000);
    assert.match(rung, /\+$/);
    await until(async () => (await remote(viewer.page)).stats?.anchorsUsed > 3, "anchors are used");
    assert.equal((await remote(viewer.page)).stats.anchorsLost, 0);
    assert.equal((await server.metrics()).windlass_sfu_joins_without_codec_total, 0);
  });

  test("one that cannot gets the plain rung, and is counted", async () => {
    const old = await subscribe(server, { name: "Old", browser: viewer, init: sayNothingOfCodecs });
    await until(async () => (await nativeFrames(old.page)) > 30, "the old client sees video", 20_000);
    // A publisher's layers may come and go while it starts.
    const stands = async () => {
      const { rung, state, reason, stats } = await remote(old.page);
      return { rung, state, reason, anchorsUsed: stats?.anchorsUsed };
    };
    const plain = async () => {
      const { rung, state } = await stands();
      return rung === "h" && (slow || state === "rebuilt");
    };
    await until(plain, "its browser rebuilds the plain rung all the same", 20_000, stands);
    assert.equal((await stands()).anchorsUsed, 0);
    assert.equal((await server.metrics()).windlass_sfu_joins_without_codec_total, 1);
    await old.closePage();
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});

describe("a call with anchors as a VP9 stream", { timeout: 240_000 }, () => {
  let server;
  let publisher;
  let viewer;
  const metric = async (name) => (await server.metrics())[name];
  const used = async (tab) => (await remote(tab.page)).stats?.anchorsUsed ?? 0;
  let slow = false;

  before(async () => {
    server = await startServer({ args: ["--no-congestion-control", "--anchor-codec", "vp9"] });
    slow = await tooSlow(server, 640, 360);
    publisher = await publish(server, makeScene({ clip: "d13", out: "output" }));
    viewer = await subscribe(server, { init: loseAnchorsOnDemand });
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("each anchor is predicted from the one before, and all are used", async (t) => {
    if (slow) return t.skip(slow);
    await enhanced(viewer.page, 40_000);
    await until(async () => (await used(viewer)) > 3, "anchors are used");
    const { stats } = await remote(viewer.page);
    assert.deepEqual([stats.anchorsLost, stats.anchorsNeedingWhole], [0, 0]);
    const whole = await metric("windlass_enhancer_whole_anchors_total");
    assert.ok(whole < (await metric("windlass_enhancer_anchors_total")), `all ${whole} anchors are whole`);
  });

  test("one who comes late gets an anchor that rests on no other", async (t) => {
    if (slow) return t.skip(slow);
    const before = await metric("windlass_enhancer_whole_anchors_total");
    const late = await subscribe(server, { name: "Late", browser: viewer });
    await enhanced(late.page, 20_000);
    await until(async () => (await used(late)) > 1, "anchors are used by the one who came late");
    assert.ok((await metric("windlass_enhancer_whole_anchors_total")) > before);
    await late.closePage();
  });

  test("one who lost an anchor asks for such a one, and goes on", async (t) => {
    if (slow) return t.skip(slow);
    const before = await metric("windlass_sfu_whole_anchor_requests_in_total");
    await viewer.page.evaluate(() => void (window.loseAnchors = 0));
    await until(() => viewer.page.evaluate(() => window.loseAnchors > 0), "an anchor is lost");
    await viewer.page.evaluate(() => void (window.loseAnchors = undefined));
    const lost = async () => (await remote(viewer.page)).stats.anchorsNeedingWhole;
    await until(async () => (await lost()) > 0, "an anchor is of no use", 30_000, () => remote(viewer.page));
    await until(async () => (await metric("windlass_sfu_whole_anchor_requests_in_total")) > before, "one is asked for");
    const [uses, useless] = [await used(viewer), await lost()];
    await until(async () => (await used(viewer)) > uses + 3, "anchors are used again");
    assert.ok((await lost()) <= useless + 2, "the stream is mended");
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
