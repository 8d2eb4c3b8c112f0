// A publisher whose larger layer ends: what its networks learned from that layer goes on making its anchors.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhancedAt, publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { standing } from "../support/standing.mjs";

// Of the smallest layer, any of our CPUs computes anchors within the usual budget.
for (const { ends, main, size, layers, rest, rung, budget } of [
  { ends: "half", main: true, size: {}, layers: "qh", rest: "q", rung: "q+", budget: [] },
  { ends: "full", main: false, size: { width: 960, height: 540 }, layers: "qhf", rest: "qh", rung: "h+", budget: ["--budget", "1s"] },
]) {
  describe(`a ${ends} layer that ends`, { only: main }, () => {
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
      const scene = makeScene({ clip: "d13", ...size });
      // One network: on a busy machine another one, which has learned nothing, could be chosen meanwhile.
      server = await startServer({ args: ["--no-congestion-control", "--network", "xs", ...budget] });
      publisher = await publish(server, scene, { layers });
      viewer = await subscribe(server, { query: `&maxRung=${encodeURIComponent(rung)}` });
      await enhancedAt(viewer.page, layers === "qh" ? scene.width / 2 : scene.width);
    });

    after(async () => {
      await viewer?.close();
      await publisher?.close();
      await server?.stop();
    });

    test("while it is sent, networks learn from it and are put into use", { only: main }, async () => {
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
      const from = await totals();
      await publisher.page.evaluate((layers) => window.windlass.room.published.find((p) => p.kind === "video").setLayers(layers), rest);
      await sleep(3000);
      const ended = await totals();
      // Counted from the switch on: on a fast machine these anchors come at once, and no more are worth it afterwards.
      const made = async () => (await totals()).anchors - ended.captured_anchors >= from.anchors - from.captured_anchors + 4;
      await until(made, "anchors are made of the layer below", 30_000, () => standing(server, publisher, viewer));
      const to = await totals();
      const enhanced = to.anchors - to.captured_anchors - (from.anchors - from.captured_anchors);
      const learned = to.learned_anchors - from.learned_anchors;
      console.log(`after the ${ends} layer: ${enhanced} enhanced anchors, ${learned} by learned weights; ${JSON.stringify(to)}`);
      assert.equal(to.captured_anchors, ended.captured_anchors, `the ${ends} layer has ended`);
      // One may have been counted between two counters of the same look.
      assert.ok(learned >= 3 && Math.abs(learned - enhanced) <= 1, JSON.stringify({ from, to }));
      assert.equal((await remote(viewer.page)).rung, rung);
    });

    test("nothing is written to the console as an error", () => {
      assert.deepEqual([...publisher.errors, ...viewer.errors], []);
    });
  });
}
