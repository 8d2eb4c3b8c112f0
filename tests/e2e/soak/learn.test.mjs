// A publisher whose larger layer ends: what its networks learned from that layer goes on making its anchors.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhancedAt, publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { standing } from "../support/standing.mjs";

describe("a half layer that ends", { only: true }, () => {
  let server;
  let publisher;
  let viewer;

  /** Totals of the enhancer by their short names. */
  const totals = async () => {
    const all = await server.metrics();
    const total = (name) => all[`windlass_enhancer_${name}_total`];
    const names = ["anchors", "captured_anchors", "lessons", "dropped_lessons", "learned", "learned_given_up", "learned_anchors", "learning_seconds", "panics"];
    return Object.fromEntries(names.map((name) => [name, total(name)]));
  };

  before(async () => {
    // The smallest layer: any of our CPUs computes its anchors within the usual budget.
    const scene = makeScene({ clip: "d13" });
    // One network: on a busy machine another one, which has learned nothing, could be chosen meanwhile.
    server = await startServer({ args: ["--no-congestion-control", "--network", "xs"] });
    publisher = await publish(server, scene, { layers: "qh" });
    viewer = await subscribe(server, { query: "&maxRung=q%2B" });
    await enhancedAt(viewer.page, scene.width / 2);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("while it is sent, networks learn from it and are put into use", { only: true }, async () => {
    const learned = async () => {
      const now = await totals();
      return now.learned - now.learned_given_up >= 1 && now;
    };
    const now = await until(learned, "learned weights are in use", 150_000, totals);
    console.log(`learning: ${JSON.stringify(now)}`);
    assert.ok(now.captured_anchors >= 4 && now.lessons >= 4, JSON.stringify(now));
    assert.equal(now.panics, 0);
  });

  test("once it has ended, learned weights make the anchors", async () => {
    await publisher.page.evaluate(() => window.windlass.room.published.find((p) => p.kind === "video").setLayers("q"));
    await sleep(3000);
    const from = await totals();
    const made = async () => (await totals()).anchors >= from.anchors + 4;
    await until(made, "anchors are made of the smallest layer", 30_000, () => standing(server, publisher, viewer));
    const to = await totals();
    const enhanced = to.anchors - to.captured_anchors - (from.anchors - from.captured_anchors);
    const learned = to.learned_anchors - from.learned_anchors;
    console.log(`after the half layer: ${enhanced} enhanced anchors, ${learned} by learned weights; ${JSON.stringify(to)}`);
    assert.equal(to.captured_anchors, from.captured_anchors, "the half layer has ended");
    // One may have been counted between two counters of the same look.
    assert.ok(learned >= 3 && Math.abs(learned - enhanced) <= 1, JSON.stringify({ from, to }));
    assert.equal((await remote(viewer.page)).rung, "q+");
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
