// Rooms whose publishers are promised a quality, and the baseline that infers every frame.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhancedAt, publish, remote, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

describe("a promised quality", { only: true }, () => {
  const scene = makeScene({ clip: "s18", fps: 15 });
  let server;
  const open = [];

  const call = async (room) => {
    const publisher = await publish(server, scene, { layers: "q", room });
    const viewer = await subscribe(server, { room });
    open.push(viewer, publisher);
    return viewer;
  };
  const set = async (body) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server.url}/admin/policy`, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, await answer.text());
  };
  const metric = async (name) => (await server.metrics())[`windlass_enhancer_${name}`];
  const close = async () => {
    for (const page of open.splice(0)) await page.close();
    await server?.stop();
  };

  after(close);

  test("a viewer says how fast its picture gets worse, and anchors come as the promise needs them", { only: true }, async () => {
    server = await startServer({ args: ["--no-congestion-control", "--captured=off", "--policy", "quality-sla"] });
    const viewer = await call("call");
    await enhancedAt(viewer.page, scene.width / 2);
    const knows = async () => {
      const { stats } = await remote(viewer.page);
      return stats?.decay > 0 && stats;
    };
    // It is not known any more once the picture has paused.
    const { decay, decayFrames, anchorsUsed: used } = await until(knows, "the viewer knows its decay", 60_000);
    const chosen = await metric("schedule_chosen_total");
    await until(async () => (await remote(viewer.page)).stats.anchorsUsed >= used + 5, "anchors go on", 60_000);
    const { refused } = (await remote(viewer.page)).stats;
    const planned = (await metric("schedule_chosen_total")) - chosen;
    console.log(`promise: ${decay.toFixed(3)} square grey levels lost a frame in ${decayFrames.toFixed(0)}, ${planned} more chosen for 5 used`);
    assert.equal(await metric("promised_streams"), 1);
    assert.equal(refused, null);
    assert.ok((await metric("schedule_not_planned_total")) > 0);
  });

  test("who would break the promise to others is refused, its viewers are told, and its picture goes on", async () => {
    await close();
    // Alone each takes all that there is, to be nearly as good as with an accelerator of its own.
    const args = ["--no-congestion-control", "--captured=off", "--policy", "quality-sla:0.02", "--compute-cap", "0.02"];
    server = await startServer({ args });
    const viewers = [await call("one"), await call("two")];
    const refused = async () => Promise.all(viewers.map(async ({ page }) => (await remote(page)).stats?.refused ?? null));
    await until(async () => (await refused()).includes("promise"), "one is refused", 60_000);
    const standing = async () => [await metric("promised_streams"), await metric("refused_streams")].join();
    await until(async () => (await standing()) === "1,1", "one has the promise, and one is refused it", 60_000);
    const told = await refused();
    const states = await Promise.all(viewers.map(async ({ page }) => (await remote(page)).state));
    console.log(`promise: told ${JSON.stringify(told)}, shown ${JSON.stringify(states)}`);
    for (const { page } of viewers) {
      const shown = async () => (await remote(page)).stats.shownFps;
      await until(async () => (await shown()) > 10, "the picture goes on", 30_000);
    }
    // Whoever has the room to itself has the promise again.
    await set({ room: "one", policy: "latency-sensitive" });
    await set({ room: "two", policy: "latency-sensitive" });
    await until(async () => (await refused()).every((reason) => reason === null), "nobody is refused", 30_000);
  });
});
