// By which policy anchors are chosen: for all rooms, for one, and switched while a call goes on.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhancedAt, nativeFrames, publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

// What is chosen later than this cannot be in time within the budget: the server leaves 60 of 200 ms for the way.
const DEADLINE = 140;

describe("policies", { only: true }, () => {
  let server;
  let publisher;
  let viewer;

  const set = async (body) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server.url}/admin/policy`, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, text: await answer.text() };
  };

  /**
   * Waits for `count` anchors: the longest that a frame waited to be chosen, in milliseconds, and how many viewers used. With `late`
   * it is enough that one waited longer than calls allow, and four were used.
   */
  async function next(count, late = false) {
    const look = async () => {
      const all = await server.metrics();
      const of = (part) => all[`windlass_enhancer_stage_seconds_${part}{stage="schedule"}`];
      return { runs: of("count"), seconds: of("sum"), used: all.windlass_client_anchors_used_total };
    };
    // What is under way was chosen before.
    await sleep(1500);
    const from = await look();
    let [last, longest] = [from, 0];
    const enough = async () => {
      const now = await look();
      if (now.runs > last.runs) longest = Math.max(longest, (1000 * (now.seconds - last.seconds)) / (now.runs - last.runs));
      last = now;
      if (late && longest > DEADLINE && now.used >= from.used + 4) return true;
      return now.runs >= from.runs + count && now.used > from.used;
    };
    await until(enough, `${count} more anchors, and some of them used`, 60_000);
    return { longest, used: last.used - from.used };
  }

  before(async () => {
    const scene = makeScene({ clip: "s18" });
    server = await startServer({ args: ["--no-congestion-control", "--captured=off"] });
    publisher = await publish(server, scene, { layers: "q" });
    viewer = await subscribe(server);
    await enhancedAt(viewer.page, scene.width / 2);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("calls are latency-sensitive unless told otherwise", { only: true }, async () => {
    const { longest, used } = await next(4);
    console.log(`policies, latency-sensitive: at most ${longest.toFixed(0)} ms to be chosen, ${used} used`);
    assert.ok(longest <= DEADLINE, `${longest} ms`);
  });

  test("cost-effective holds frames longer, and viewers use what comes late", async () => {
    const { status, text } = await set({ policy: "cost-effective" });
    assert.equal(status, 200, text);
    const { longest, used } = await next(20, true);
    console.log(`policies, cost-effective: at most ${longest.toFixed(0)} ms to be chosen, ${used} used`);
    assert.ok(longest > DEADLINE && used >= 4, `${longest} ms, ${used} used`);
    assert.equal((await remote(viewer.page)).state, "enhanced");
  });

  test("a room of its own policy leaves the others alone", async () => {
    assert.equal((await set({ room: "another", policy: "latency-sensitive" })).status, 200);
    const others = await next(20, true);
    assert.equal((await set({ room: "call", policy: "latency-sensitive" })).status, 200);
    const own = await next(4);
    assert.equal((await set({ room: "call", policy: null })).status, 200);
    const back = await next(20, true);
    console.log(`policies, by room: at most ${[others, own, back].map((of) => of.longest.toFixed(0)).join(", ")} ms`);
    assert.ok(others.longest > DEADLINE && own.longest <= DEADLINE && back.longest > DEADLINE, JSON.stringify({ others, own, back }));
  });

  test("what is no policy is refused by name, and the call goes on", async () => {
    const { status, text } = await set({ policy: "fair" });
    assert.ok(status >= 400 && status < 500 && text.includes("cost-effective"), `${status} ${text}`);
    const frames = await nativeFrames(viewer.page);
    await until(async () => (await nativeFrames(viewer.page)) > frames + 20, "the picture goes on");
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
