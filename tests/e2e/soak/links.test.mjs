// A viewer behind access links whose rate changes, on real sockets: `windlass-lab link` between Chromium and the server.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { publish, receivedVideo, remote, sleep, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** What the viewer's browser has shown so far. */
const shown = async (page) => {
  const { framesDecoded, freezeCount, totalFreezesDuration, pliCount, packetsLost } = await receivedVideo(page);
  return { framesDecoded, freezeCount, totalFreezesDuration, pliCount, packetsLost };
};

/** The rung each half second, with what was shown in between. */
async function watch(page, seconds) {
  const before = await shown(page);
  const rungs = [];
  for (let half = 0; half < 2 * seconds; half++) {
    rungs.push((await remote(page)).rung);
    await sleep(500);
  }
  const after = await shown(page);
  const grown = Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - before[name]]));
  return { rungs, ...grown, fps: grown.framesDecoded / seconds };
}

/** What the publisher's encoder of the full layer is asked for, in bit/s. */
const fullLayer = (page) =>
  page.evaluate(async () => {
    const all = [...(await window.windlass.room.connectionStats()).values()];
    return all.find((s) => s.type === "outbound-rtp" && s.kind === "video" && s.rid === "f")?.targetBitrate ?? 0;
  });

describe("a viewer on a link of 800 kbit/s", { only: true }, () => {
  test("is sent the layer that it carries, without freezes", { only: true }, async () => {
    const scene = makeScene({ clip: "s18", width: 960, height: 540 });
    const server = await startServer({ link: ["--profile", "800k", "--down-only"] });
    const publisher = await publish(server, scene, { layers: "qhf" });
    const viewer = await subscribe(server);
    try {
      // While the publisher's own estimate is still low, so is its full layer, and the link carries that as well.
      await until(async () => (await fullLayer(publisher.page)) > 1_200_000, "the full layer is more than the link carries", 30_000);
      await until(async () => /^h/.test((await remote(viewer.page)).rung), "the link carries h", 30_000);
      await sleep(2000);
      const carried = await watch(viewer.page, 6);
      console.log("links:", JSON.stringify({ carried }));
      assert.ok(carried.rungs.every((rung) => /^[qh]/.test(rung)), carried.rungs.join(" "));
      assert.ok(carried.fps >= 20 && carried.totalFreezesDuration <= 1, `${carried.fps} fps, frozen ${carried.totalFreezesDuration} s`);
      assert.deepEqual([...viewer.errors, ...publisher.errors], []);
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  });
});

describe("a viewer on a link that becomes narrower, and wide again", () => {
  test("its picture goes on with less, and comes back", async () => {
    const scene = makeScene({ clip: "s18", width: 960, height: 540 });
    // 2.5 Mbit/s; 800 kbit/s from 20 s to 40 s of the course, which begins 25 s after the viewer has come.
    const server = await startServer({ link: ["--profile", "step-down", "--down-only", "--after", "25"] });
    const publisher = await publish(server, scene, { layers: "qhf" });
    const began = Date.now();
    const viewer = await subscribe(server);
    const at = (seconds) => sleep(Math.max(0, began + 1000 * seconds - Date.now()));
    try {
      await until(async () => (await remote(viewer.page)).rung === "f", "the wide link carries f", 40_000);
      await at(44);
      const fall = await watch(viewer.page, 6);
      const narrow = await watch(viewer.page, 12);
      await at(66);
      const wide = await watch(viewer.page, 10);
      console.log("links:", JSON.stringify({ fall, narrow, wide }));
      assert.ok(fall.totalFreezesDuration <= 3, `frozen ${fall.totalFreezesDuration} s while it fell`);
      assert.ok(narrow.rungs.every((rung) => rung !== "f"), narrow.rungs.join(" "));
      assert.ok(narrow.fps >= 20 && narrow.totalFreezesDuration <= 1, `${narrow.fps} fps on the narrow link`);
      assert.ok(wide.rungs.includes("f"), wide.rungs.join(" "));
      assert.deepEqual([...viewer.errors, ...publisher.errors], []);
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  });
});
