// An uplink that falls in steps, with a detail stream and without: two calls to compare, for `cargo xtask soak`.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sleep } from "./support/call.mjs";
import { detailCall, flow, sending, stills } from "./support/detail.mjs";
import { makeScene } from "./support/scene.mjs";

describe("an uplink that falls to 50 kbit/s step by step", { timeout: 300_000 }, () => {
  /** What the low layer had while the uplink fell, and what it comes to at 50 kbit/s: the best of three times six seconds. */
  async function fallingCall(query) {
    const call = await detailCall(makeScene({ clip: "d13", out: "output" }), { layers: "q", query, serverArgs: [] });
    const { server, publisher } = call;
    const rates = async (during) => {
      const [from, began] = [await flow(call), performance.now()];
      await during();
      const [to, seconds] = [await flow(call), (performance.now() - began) / 1000];
      return { fps: (to.decoded - from.decoded) / seconds, kbps: ((to.bytes - from.bytes) * 8) / 1000 / seconds, frozen: to.frozen - from.frozen };
    };
    try {
      // Sound alone would take most of 50 kbit/s.
      await publisher.page.evaluate(() => window.windlass.room.unpublish(window.windlass.room.published.find((p) => p.kind === "audio")));
      if (query !== "") await sending(publisher.page);
      await sleep(4000);
      const states = [];
      const fall = await rates(async () => {
        for (const kbps of [400, 200, 100, 50]) {
          server.proxy.uplinkKbps = kbps;
          await sleep(5000);
          states.push(query === "" ? null : (await stills(publisher.page)).detail);
        }
      });
      const low = [];
      for (let n = 0; n < 3; n++) low.push(await rates(() => sleep(6000)));
      const best = (of) => Math.max(...low.map((l) => l[of]));
      const state = query === "" ? null : await stills(publisher.page);
      const line = (r) => `${r.fps.toFixed(1)} fps, ${r.kbps.toFixed(0)} kbit/s, frozen ${r.frozen.toFixed(1)} s`;
      console.log(`detail, uplink falls in steps${query === "" ? ", without detail" : ""}: falling ${line(fall)}; at 50: ${low.map(line).join("; ")}; ${JSON.stringify({ states, state })}`);
      return { fall, fps: best("fps"), kbps: best("kbps"), state, errors: call.errors() };
    } finally {
      await call.close();
    }
  }

  test("detail is gone, and frame rate and bits of the low layer are as without it", async () => {
    const without = await fallingCall("");
    const withDetail = await fallingCall("&detail=1");
    assert.ok(without.fps >= 10 && without.kbps >= 10, "there is something to compare with");
    assert.equal(withDetail.state.detail, null, JSON.stringify(withDetail.state));
    assert.notEqual(withDetail.state.restraint, null);
    assert.ok(withDetail.fall.fps >= 0.7 * without.fall.fps, `falling: ${withDetail.fall.fps} after ${without.fall.fps} frames a second`);
    assert.ok(withDetail.fps >= 0.8 * without.fps, `${withDetail.fps} after ${without.fps} frames a second`);
    assert.ok(withDetail.kbps >= 0.8 * without.kbps, `${withDetail.kbps} after ${without.kbps} kbit/s`);
    assert.deepEqual(withDetail.errors, []);
  });
});
