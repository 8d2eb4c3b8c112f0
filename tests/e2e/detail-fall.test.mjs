// An uplink that falls to 50 kbit/s at once, with a detail stream and without, for `cargo xtask soak`.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nativeFrames, publish, sleep, subscribe, until } from "./support/call.mjs";
import { sending, stills } from "./support/detail.mjs";
import { makeScene } from "./support/scene.mjs";
import { startServer } from "./support/server.mjs";
import { traceUplink } from "./support/uplink_trace.mjs";

/** Frames per second of the native picture, and how long it froze, over `seconds`. */
async function flow(page, seconds) {
  const look = () =>
    page.evaluate(async () => {
      const [track] = window.windlass.remoteVideos();
      for (const s of (await window.windlass.room.connectionStats()).values()) {
        if (s.type !== "inbound-rtp" || s.kind !== "video" || s.trackIdentifier !== track.plain.id) continue;
        return { frames: s.framesDecoded, freezes: s.freezeCount, frozen: s.totalFreezesDuration };
      }
    });
  const from = await look();
  await sleep(seconds * 1000);
  const to = await look();
  return { fps: (to.frames - from.frames) / seconds, freezes: to.freezes - from.freezes, frozen: to.frozen - from.frozen };
}

describe("an uplink that falls to 50 kbit/s", { timeout: 300_000 }, () => {
  /** One call over the same path, with and without stills: what its viewer sees while the uplink is short. */
  async function call(query) {
    const scene = makeScene({ clip: "d13", out: "output" });
    const server = await startServer({ args: ["--detail-as", "stream"], path: {} });
    const publisher = await publish(server, scene, { layers: "q", query });
    const viewer = await subscribe(server);
    try {
      await until(async () => (await nativeFrames(viewer.page)) > 30, "the picture is received", 20_000);
      // Sound alone would take most of 50 kbit/s.
      await publisher.page.evaluate(() => window.windlass.room.unpublish(window.windlass.room.published.find((p) => p.kind === "audio")));
      if (query !== "") await sending(publisher.page);
      await sleep(6000);
      const before = await flow(viewer.page, 5);
      const trace = traceUplink(publisher.page, viewer.page, server.proxy);
      server.proxy.uplinkKbps = 50;
      const state = async () => (query === "" ? null : stills(publisher.page));
      const fall = await flow(viewer.page, 10);
      const stopped = await state();
      const low = await flow(viewer.page, 12);
      server.proxy.uplinkKbps = Infinity;
      const risen = query === "" ? null : await until(async () => (await stills(publisher.page)).detail, "detail is sent again", 60_000);
      const back = await flow(viewer.page, 5);
      const looks = trace();
      const line = (f) => `${f.fps.toFixed(1)} fps, ${f.freezes} freezes of ${f.frozen.toFixed(1)} s`;
      console.log(`detail, uplink 50 kbit/s${query === "" ? " without stills" : ""}: before ${line(before)}; first 10 s ${line(fall)}; next 12 s ${line(low)}; after ${line(back)}; ${JSON.stringify({ stopped, risen })}`);
      return { before, fall, low, back, stopped, looks, errors: [...publisher.errors, ...viewer.errors] };
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  }

  test("detail yields within seconds, and the low layer is as good as without it", async () => {
    const without = await call("");
    const withStills = await call("&detail=1");
    assert.equal(withStills.stopped.detail, null, JSON.stringify(withStills.stopped));
    assert.notEqual(withStills.stopped.restraint, null);
    assert.ok(withStills.low.fps >= without.low.fps * 0.7, `${withStills.low.fps} after ${without.low.fps}\n${withStills.looks}`);
    for (const { low, looks } of [without, withStills]) assert.ok(low.frozen < 3, `the picture stood for ${low.frozen} s of the 12\n${looks}`);
    assert.ok(withStills.back.fps >= 20, "the whole frame rate is back");
    assert.deepEqual(withStills.errors, []);
  });
});
