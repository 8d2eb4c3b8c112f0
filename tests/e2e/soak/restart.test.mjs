// The path of a call is cut for good, and the call goes on over another: ICE restarts, nobody joins anew.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countFreezes, enhanced, nativeFrames, publish, sleep, subscribe, until } from "../support/call.mjs";
import { selectedPair } from "../support/paths.mjs";
import { freePort } from "../support/ports.mjs";
import { makeScene, smallFrames } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { UdpProxy } from "../support/udp_proxy.mjs";

/** Who one is and who was seen to come and go since the call began. */
const life = (page) =>
  page.evaluate(() => {
    const { room } = window.windlass;
    if (!window.seen) {
      window.seen = [];
      for (const name of ["participantLeft", "trackRemoved", "reconnecting", "disconnected"]) {
        room.on(name, () => window.seen.push(name));
      }
    }
    return { id: room.participant, seen: window.seen };
  });

/** What the viewer saw once pictures had come again for two seconds. */
async function seenAfter(freezes) {
  await sleep(2000);
  return freezes();
}

describe("a call behind a NAT that forgets it", { only: true }, () => {
  test("goes on from its new addresses without a restart", { only: true }, async () => {
    const scene = makeScene(smallFrames);
    const server = await startServer({ path: {}, args: ["--tcp=off"] });
    const publisher = await publish(server, scene);
    const viewer = await subscribe(server);
    try {
      await enhanced(viewer.page, 40_000);
      const freezes = await countFreezes(viewer.page);
      server.proxy.rebind();
      const rebound = Date.now();
      const from = await nativeFrames(viewer.page);
      await until(async () => (await nativeFrames(viewer.page)) > from + 12, "pictures come again", 10_000);
      const took = Date.now() - rebound;
      const seen = await seenAfter(freezes);
      console.log("rebound:", JSON.stringify({ took, ...seen }));
      await until(async () => (await server.metrics()).windlass_sfu_paths_moved_total >= 2, "both have moved", 5_000);
      // The WebRTC stack alone would have sent to where nobody is for 15 s.
      assert.ok(took < 6000, `${took} ms`);
      assert.ok(seen.frozenSeconds < 6, JSON.stringify(seen));
      assert.equal((await server.metrics()).windlass_sfu_ice_restarts_total, 0);
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  });
});

describe("a call whose path is cut", () => {
  test("goes on over another path, with the same participants", async () => {
    const scene = makeScene(smallFrames);
    const other = await freePort();
    // Clients are told of two ways, of which the second leads nowhere at first.
    const server = await startServer({ path: {}, args: ["--advertise", `127.0.0.1:${other}`, "--tcp=off"] });
    const publisher = await publish(server, scene);
    const viewer = await subscribe(server);
    const pages = [publisher.page, viewer.page];
    let second;
    try {
      await enhanced(viewer.page, 40_000);
      const before = await Promise.all(pages.map(life));
      const { windlass_signaling_sockets_total: sockets } = await server.metrics();
      const ports = (await Promise.all(pages.map(selectedPair))).map((pair) => pair.remote.port);
      assert.deepEqual(ports, [server.proxy.port, server.proxy.port]);

      const freezes = await countFreezes(viewer.page);
      server.proxy.close();
      const cut = Date.now();
      const restarts = async () => (await server.metrics()).windlass_sfu_ice_restarts_total;
      // Only a client that restarts looks for another way again, so that nothing else can be what brings it back.
      await until(async () => (await restarts()) >= 2, "both clients restart ICE", 20_000);
      const restarted = Date.now();
      second = await UdpProxy.start(server.ports.udp, {}, other);
      const from = await nativeFrames(viewer.page);
      await until(async () => (await nativeFrames(viewer.page)) > from + 12, "pictures come again", 20_000);
      const back = Date.now();
      const pairs = await Promise.all(pages.map(selectedPair));
      assert.deepEqual(pairs.map((pair) => pair.remote.port), [other, other]);
      await enhanced(viewer.page, 20_000);
      const seen = await seenAfter(freezes);

      assert.deepEqual(await Promise.all(pages.map(life)), before.map(({ id }) => ({ id, seen: [] })));
      const metrics = await server.metrics();
      assert.equal(metrics.windlass_signaling_sockets_total, sockets);
      assert.equal(metrics.windlass_sfu_connected, 2);
      assert.equal(metrics.windlass_sfu_peers_timed_out_total, 0);
      const took = { restartMs: restarted - cut, picturesMs: back - restarted, restarts: await restarts(), ...seen };
      console.log("restart:", JSON.stringify(took));
      // From the cut to the restart nothing can come.
      assert.ok(seen.frozenSeconds < (back - cut) / 1000 + 1, JSON.stringify(took));
      assert.deepEqual([...publisher.errors, ...viewer.errors], []);
    } finally {
      await viewer.close();
      await publisher.close();
      second?.close();
      await server.stop();
    }
  });

  test("goes on by TCP where UDP has ended", async () => {
    const scene = makeScene(smallFrames);
    const server = await startServer({ path: {}, advertiseTcp: "127.0.0.1" });
    const publisher = await publish(server, scene);
    const viewer = await subscribe(server);
    const pages = [publisher.page, viewer.page];
    const protocols = async () => (await Promise.all(pages.map(selectedPair))).map((pair) => pair?.remote.protocol);
    try {
      await enhanced(viewer.page, 40_000);
      const before = await Promise.all(pages.map(life));
      assert.deepEqual(await protocols(), ["udp", "udp"]);
      const freezes = await countFreezes(viewer.page);
      server.proxy.close();
      const cut = Date.now();
      await until(async () => (await protocols()).every((protocol) => protocol === "tcp"), "both go by TCP", 20_000);
      const from = await nativeFrames(viewer.page);
      await until(async () => (await nativeFrames(viewer.page)) > from + 12, "pictures come again", 20_000);
      const afterMs = Date.now() - cut;
      const seen = await seenAfter(freezes);
      console.log("by TCP:", JSON.stringify({ afterMs, ...seen }));
      assert.ok(seen.frozenSeconds < afterMs / 1000 + 1, JSON.stringify({ afterMs, ...seen }));
      assert.deepEqual(await Promise.all(pages.map(life)), before.map(({ id }) => ({ id, seen: [] })));
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  });
});
