// An uplink that falls to 50 kbit/s, at once and step by step, with stills and without: calls to compare, for `cargo xtask soak`.
// Runs beside one other file.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sleep } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { flow, regions, sending, stillCall } from "../support/still_call.mjs";
import { traceUplink } from "../support/uplink_trace.mjs";

/** What the viewer's native picture had while `during` ran. */
async function rates(call, during) {
  const [from, began] = [await flow(call), performance.now()];
  await during();
  const [to, seconds] = [await flow(call), (performance.now() - began) / 1000];
  const [fps, kbps] = [(to.decoded - from.decoded) / seconds, ((to.bytes - from.bytes) * 8) / 1000 / seconds];
  return { fps, kbps, freezes: to.freezes - from.freezes, frozen: to.frozen - from.frozen };
}

const line = (r) => `${r.fps.toFixed(1)} fps, ${r.kbps.toFixed(0)} kbit/s, ${r.freezes} freezes of ${r.frozen.toFixed(1)} s`;

/** A call of the smallest layer alone whose uplink is still wide, with stills or without; `uplink` says what becomes of it. */
async function narrowing(stills, uplink) {
  const query = stills ? "&detail=1" : "";
  const call = await stillCall(makeScene({ clip: "d13" }), { layers: "q", query, serverArgs: [] });
  try {
    // Sound alone would take most of 50 kbit/s.
    await call.publisher.page.evaluate(() => window.windlass.room.unpublish(window.windlass.room.published.find((p) => p.kind === "audio")));
    if (stills) await sending(call);
    await sleep(6000);
    const sent = async () => (stills ? (await regions(call.publisher.page)).sent : 0);
    return { ...(await uplink(call, sent)), errors: call.errors() };
  } finally {
    await call.close();
  }
}

describe("stills on an uplink that falls", { only: true }, () => {
  test("end within ten seconds, and the low layer goes on", { only: true }, async () => {
    const { low, more, errors } = await narrowing(true, async (call, sent) => {
      call.server.proxy.uplinkKbps = 50;
      await sleep(10_000);
      const stopped = await sent();
      const low = await rates(call, () => sleep(6000));
      return { low, more: (await sent()) - stopped };
    });
    console.log(`stills, an uplink that falls to 50 kbit/s: then ${line(low)}; ${more} stills`);
    assert.equal(more, 0);
    assert.ok(low.fps >= 5 && low.frozen < 3, line(low));
    assert.deepEqual(errors, []);
  });
});

describe("an uplink that falls to 50 kbit/s at once", () => {
  const fall = (stills) =>
    narrowing(stills, async (call, sent) => {
      const before = await rates(call, () => sleep(5000));
      const trace = traceUplink(call.publisher.page, call.viewer.page, call.server.proxy);
      call.server.proxy.uplinkKbps = 50;
      const first = await rates(call, () => sleep(10_000));
      const stopped = await sent();
      const low = await rates(call, () => sleep(12_000));
      const more = (await sent()) - stopped;
      call.server.proxy.uplinkKbps = Infinity;
      if (stills) await sending(call);
      const back = await rates(call, () => sleep(5000));
      console.log(`stills, uplink 50 kbit/s${stills ? "" : ", without stills"}: before ${line(before)}; first 10 s ${line(first)}; next 12 s ${line(low)}; after ${line(back)}; ${more} stills`);
      return { low, more, back, looks: trace() };
    });

  test("stills yield within seconds, the low layer is as good as without them, and they come back", async () => {
    const without = await fall(false);
    const withStills = await fall(true);
    assert.equal(withStills.more, 0);
    assert.ok(withStills.low.fps >= without.low.fps * 0.7, `${withStills.low.fps} after ${without.low.fps}\n${withStills.looks}`);
    for (const { low, looks } of [without, withStills]) assert.ok(low.frozen < 3, `the picture stood for ${low.frozen} s of the 12\n${looks}`);
    assert.ok(withStills.back.fps >= 20, "the whole frame rate is back");
    assert.deepEqual(withStills.errors, []);
  });
});

describe("an uplink that falls to 50 kbit/s step by step", () => {
  /** What the low layer had while the uplink fell, and what it comes to at 50 kbit/s: the best of three times six seconds. */
  const fall = (stills) =>
    narrowing(stills, async (call, sent) => {
      const falling = await rates(call, async () => {
        for (const kbps of [400, 200, 100, 50]) {
          call.server.proxy.uplinkKbps = kbps;
          await sleep(5000);
        }
      });
      const [low, stopped] = [[], await sent()];
      for (let n = 0; n < 3; n++) low.push(await rates(call, () => sleep(6000)));
      const more = (await sent()) - stopped;
      const best = (of) => Math.max(...low.map((l) => l[of]));
      console.log(`stills, uplink falls in steps${stills ? "" : ", without stills"}: falling ${line(falling)}; at 50: ${low.map(line).join("; ")}; ${more} stills`);
      return { falling, fps: best("fps"), kbps: best("kbps"), more };
    });

  test("stills are gone, and frame rate and bits of the low layer are as without them", async () => {
    const without = await fall(false);
    const withStills = await fall(true);
    assert.ok(without.fps >= 10 && without.kbps >= 10, "there is something to compare with");
    assert.equal(withStills.more, 0);
    assert.ok(withStills.falling.fps >= 0.7 * without.falling.fps, `falling: ${withStills.falling.fps} after ${without.falling.fps} frames a second`);
    assert.ok(withStills.fps >= 0.8 * without.fps, `${withStills.fps} after ${without.fps} frames a second`);
    assert.ok(withStills.kbps >= 0.8 * without.kbps, `${withStills.kbps} after ${without.kbps} kbit/s`);
    assert.deepEqual(withStills.errors, []);
  });
});
