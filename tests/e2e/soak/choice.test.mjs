// Two viewers of one publisher: one may run a network on every frame, the other may not. The server gives anchors to the one that needs
// them, says why to both, and counts it; and none are made where nobody needs them.
// Runs beside one other file.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { publish, setVisibility, showLarge, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** For how long a network must have run before anchors end for it, less the second of a report (`sfu/core/subscriber/viewer_network`). */
const PROVED_MS = 9000;

describe("who does what", { only: true }, () => {
  let scene;
  let server;
  let publisher;
  let plain;
  let able;

  /** A viewer of the publisher, its tile as large as the camera. */
  async function watch(name, query) {
    const viewer = await subscribe(server, { name, query: `${query}&figures=1` });
    await showLarge(viewer.page, scene);
    return viewer;
  }

  /** What the server has said of a viewer's picture, and what the viewer says of its network. */
  const now = ({ page }) =>
    page.evaluate(() => {
      const [track] = window.windlass.remoteVideos();
      const { network, networkAbsence } = track.stats ?? {};
      return { rung: track.rung?.rung, ...track.way, network, networkAbsence };
    });

  /** Waits until a viewer is told a way and a reason. */
  async function told(viewer, way, reason, timeoutMs = 120_000) {
    const there = async () => {
      const seen = await now(viewer);
      return seen.way === way && seen.reason === reason && seen;
    };
    return until(there, `the way is ${way}, as ${reason}`, timeoutMs, () => now(viewer));
  }

  const counted = async (way, reason) => (await server.metrics())[`windlass_sfu_viewers{way="${way}",reason="${reason}"}`] ?? 0;
  const taps = async () => (await server.metrics()).windlass_sfu_taps;

  before(async () => {
    // Few frames a second, so that a network has time beside the browsers and the server. No larger layer than is shown enlarged, and no
    // stills: all anchors would be the server's own.
    scene = makeScene({ clip: "d13", width: 640, height: 360, fps: 8, frames: 64 });
    server = await startServer({ args: ["--no-congestion-control"] });
    publisher = await publish(server, scene);
    plain = await watch("Plain", "&maxNetwork=none");
    able = await watch("Able", "&maxNetwork=xs");
  });

  after(async () => {
    await Promise.all([plain?.close(), able?.close(), publisher?.close()]);
    await server?.stop();
  });

  test("who may run no network has anchors, who runs one has none, and both are told why", { only: true }, async () => {
    const without = await told(plain, "flow", "network_off");
    assert.deepEqual([without.rung, without.network, without.networkAbsence], ["h+", "none", "off"]);
    const runs = await told(able, "network", "little_gain");
    assert.equal(runs.rung, "h");
    assert.notEqual(runs.network, "none");
  });

  test("metrics and the page's figures say it too", async () => {
    // All at one time: a server without CPU time gives up an enhancement for a second or two, and says so of that viewer.
    const both = async () =>
      (await counted("network", "little_gain")) === 1 && (await counted("flow", "network_off")) === 1 && (await taps()) === 1;
    await until(both, "both viewers are counted, and the one tap", 120_000, () => server.metrics());
    const figures = plain.page.locator(".tile .facts").first();
    const shown = async () => (await figures.textContent())?.includes("filters and anchors: no network may run here");
    await until(shown, "the figures have the way and the reason", 15_000, () => figures.textContent());
  });

  test("no anchors are made once nobody needs them", async () => {
    await plain.close();
    plain = undefined;
    await until(async () => (await taps()) === 0, "the server decodes nothing of the publisher", 120_000, () => now(able));
    assert.equal(await counted("flow", "network_off"), 0);
  });

  test("a network that ends brings anchors within a second, and they stay until it has run for a while", async () => {
    const { page } = able;
    await told(able, "network", "little_gain");
    await page.evaluate(() => {
      const [track] = window.windlass.remoteVideos();
      window.rungs = [];
      track.on("rung", ({ rung }) => window.rungs.push({ rung, at: performance.now() }));
      window.hidden = new Promise((resolve) =>
        document.addEventListener("visibilitychange", () => resolve(performance.now()), { once: true }),
      );
    });
    // Networks rest in a page that nobody sees.
    await setVisibility(page, "hidden");
    const flow = await told(able, "flow", "network_off", 20_000);
    assert.equal(flow.rung, "h+");
    const took = await page.evaluate(async () => window.rungs[0].at - (await window.hidden));
    console.log(`anchors ${took.toFixed(0)} ms after the network ended`);
    assert.ok(took < 1000, `${took} ms`);
    assert.equal(await taps(), 1);
    await setVisibility(page, "visible");
    await told(able, "network", "little_gain");
    const rungs = await page.evaluate(() => window.rungs);
    rungs.forEach(({ rung, at }, i) => {
      if (rung === "h") assert.ok(at - rungs[i - 1].at > PROVED_MS, JSON.stringify(rungs));
    });
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...able.errors], []);
  });
});
