// A server that codes anchors as HTJ2K: clients that can decode them are enhanced, others get the plain rung.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhanced, nativeFrames, publish, remote, subscribe, until } from "./support/call.mjs";
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

describe("a call with anchors in HTJ2K", { timeout: 240_000 }, () => {
  let server;
  let publisher;
  let viewer;

  before(async () => {
    server = await startServer({ args: ["--no-congestion-control", "--anchor-codec", "htj2k"] });
    publisher = await publish(server, makeScene({ clip: "d13", out: "output" }));
    viewer = await subscribe(server);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("a client that can decode them is enhanced", async () => {
    const { rung } = await enhanced(viewer.page, 40_000);
    assert.match(rung, /\+$/);
    await until(async () => (await remote(viewer.page)).stats?.anchorsUsed > 3, "anchors are used");
    assert.equal((await remote(viewer.page)).stats.anchorsLost, 0);
    assert.equal((await server.metrics()).windlass_sfu_joins_without_codec_total, 0);
  });

  test("one that cannot gets the plain rung, and is counted", async () => {
    const old = await subscribe(server, { name: "Old", browser: viewer, init: sayNothingOfCodecs });
    await until(async () => (await nativeFrames(old.page)) > 30, "the old client sees video", 20_000);
    await until(async () => (await remote(old.page)).reason === "plain-rung", "the tile says why it is plain");
    const { rung, state } = await remote(old.page);
    assert.deepEqual([rung, state], ["h", "native"]);
    assert.equal((await server.metrics()).windlass_sfu_joins_without_codec_total, 1);
    await old.closePage();
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
