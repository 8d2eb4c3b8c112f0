// Clients that say that they can decode anchors are enhanced, others get the plain rung.
// Runs beside one other file.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhanced, nativeFrames, publish, remote, subscribe, until } from "../support/call.mjs";
import { tooSlow } from "../support/capacity.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

/** To be run in a page before its scripts: the client says nothing of codecs, as those before them did. */
function sayNothingOfCodecs() {
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    const message = JSON.parse(text);
    delete message.anchor_codecs;
    return send.call(this, JSON.stringify(message));
  };
}

describe("a call of clients that can decode anchors and one that cannot", () => {
  let server;
  let publisher;
  let viewer;
  /** Why this CPU cannot do it, if so. */
  let slow = false;

  before(async () => {
    server = await startServer({ args: ["--no-congestion-control"] });
    slow = await tooSlow(server, 640, 360);
    publisher = await publish(server, makeScene(fewFrames));
    viewer = await subscribe(server);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("a client that can decode them is enhanced", async (t) => {
    if (slow) return t.skip(skipped(t.name, slow));
    const { rung } = await enhanced(viewer.page, 40_000);
    assert.match(rung, /\+$/);
    await until(async () => (await remote(viewer.page)).stats?.anchorsUsed > 3, "anchors are used");
    assert.equal((await remote(viewer.page)).stats.anchorsLost, 0);
    assert.equal((await server.metrics()).windlass_sfu_joins_without_codec_total, 0);
  });

  test("one who comes late gets an anchor of all tiles", async (t) => {
    if (slow) return t.skip(skipped(t.name, slow));
    const whole = async () => (await server.metrics()).windlass_enhancer_key_anchors_total;
    const before = await whole();
    const late = await subscribe(server, { name: "Late", browser: viewer });
    await enhanced(late.page, 20_000);
    await until(async () => (await remote(late.page)).stats?.anchorsUsed > 1, "anchors are used by the one who came late");
    assert.ok((await whole()) > before);
    await late.closePage();
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
      const { rung, state, anchorsUsed } = await stands();
      return rung === "h" && anchorsUsed !== undefined && (slow || state === "rebuilt");
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
