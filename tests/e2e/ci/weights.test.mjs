// Weights of a publisher's own: the server learns them from two layers, and a viewer of the small one without anchors
// uses them.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { publish, remote, showLarge, sleep, subscribe, until } from "../support/call.mjs";
import { capture, scored } from "../support/capture.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** Longest time until the server has learned and proved weights, on a busy machine. */
const LEARNED_MS = 180_000;

/**
 * What becomes of the page's weights messages: `pass` or `drop`, by `window.weights.mode`. The last one is kept in
 * `window.weights.last`, and can be given to the page anew, changed.
 */
const between = (mode) => {
  window.weights = { mode, count: 0, last: null, give: null };
  const at = Object.getOwnPropertyDescriptor(RTCDataChannel.prototype, "onmessage");
  Object.defineProperty(RTCDataChannel.prototype, "onmessage", {
    ...at,
    set(take) {
      if (this.label !== "windlass-weights") return at.set.call(this, take);
      window.weights.give = (data) => take({ data });
      at.set.call(this, ({ data }) => {
        window.weights.count++;
        window.weights.last = data.slice(0);
        if (window.weights.mode !== "drop") take({ data });
      });
    },
  });
};

describe("weights of a publisher's own", { timeout: 600_000 }, () => {
  let scene;
  let server;
  let publisher;
  const open = [];

  /** A viewer of the small layer without anchors, who shows it four times as large by the network `xs`. */
  async function view(mode, name) {
    const init = `(${between})(${JSON.stringify(mode)})`;
    const viewer = await subscribe(server, { name, init, query: "&maxRung=q&maxNetwork=xs" });
    open.push(viewer);
    await showLarge(viewer.page);
    return viewer;
  }

  const leave = async (viewer) => {
    open.splice(open.indexOf(viewer), 1);
    await viewer.close();
  };
  const stats = async (viewer) => (await remote(viewer.page))?.stats ?? {};
  const state = (viewer) => async () => ({ ...(await remote(viewer.page)), metrics: await learning() });

  async function learning() {
    const all = await server.metrics();
    const of = /lesson|own_weights|sfu_weights|teaching/;
    return Object.fromEntries(Object.entries(all).filter(([name]) => of.test(name)));
  }

  /**
   * Quality of the same frames of the call at two viewers, `[one, other]` each, while what each must run runs; at least
   * `pairs` of them.
   */
  async function look(viewers, runs, pairs = 40) {
    const rows = [];
    const run = async () => {
      const all = await Promise.all(viewers.map(stats));
      return all.every((one, i) => runs[i](one));
    };
    for (let tries = 0; tries < 12 && rows.length < pairs; tries++) {
      await until(run, "the networks run", 120_000, state(viewers[0]));
      const parts = await Promise.all(viewers.map(({ page }) => capture(page, 3)));
      if (!(await run())) continue;
      const [one, other] = parts.map((part) => new Map(scored(part, scene, 1).map(({ n, enhanced }) => [n, enhanced])));
      for (const [n, dB] of one) if (other.has(n)) rows.push([dB, other.get(n)]);
    }
    return rows;
  }

  before(async () => {
    // Chromium sends no third layer of a smaller camera. Few frames a second: a network without time is dropped.
    scene = makeScene({ clip: "d13", width: 960, height: 540, fps: 8, frames: 88, out: "output" });
    server = await startServer({ args: ["--no-congestion-control", "--compute-cap", "0"] });
    publisher = await publish(server, scene, { layers: "qhf" });
    // For this one the large layer is sent.
    const large = await subscribe(server, { name: "Large", query: "&maxRung=f" });
    open.push(large);
    await showLarge(large.page);
  });

  after(async () => {
    for (const viewer of open) await viewer.close();
    await publisher?.close();
    await server?.stop();
  });

  const xs = ({ network, hr }) => network === "xs" && hr?.width === scene.width;
  const own = (stats) => xs(stats) && stats.ownWeights;

  test("a viewer's pictures are better by them than by the built-in network", async () => {
    const viewers = [await view("pass", "Learner"), await view("drop", "Generic")];
    await until(async () => own(await stats(viewers[0])), "own weights are used", LEARNED_MS, state(viewers[0]));
    const rows = await look(viewers, [own, (stats) => xs(stats) && !stats.ownWeights]);
    const gains = rows.map(([by, generic]) => by - generic);
    const mean = gains.reduce((a, b) => a + b, 0) / gains.length;
    const dB = rows.reduce((sum, [, generic]) => sum + generic, 0) / rows.length;
    console.log(
      `own weights: ${mean.toFixed(3)} dB over ${gains.length} frames (built-in ${dB.toFixed(2)} dB),`,
      `worst ${Math.min(...gains).toFixed(3)}, ${JSON.stringify(await learning())}`,
    );
    assert.ok(gains.length >= 10, `only ${gains.length} frames are paired`);
    assert.ok(mean > (scene.real ? 0.03 : -0.05), `${mean} dB`);
    for (const viewer of viewers) await leave(viewer);
  });

  test("who comes late gets the newest", async () => {
    const late = await view("pass", "Late");
    const got = () => late.page.evaluate(() => window.weights.count);
    await until(async () => (await got()) > 0, "weights come", 90_000, state(late));
    await until(async () => (await stats(late)).weightsTaken > 0, "they are taken", 30_000, state(late));
  });

  test("a wrong update is refused with its reason, and pictures go on", async () => {
    const viewer = open.at(-1);
    const give = (change) =>
      viewer.page.evaluate((change) => {
        const bytes = new Uint8Array(window.weights.last.slice(0));
        window.weights.mode = "drop";
        if (change === "version") bytes[0] = 9;
        else if (change === "network") bytes[2] = 77;
        else if (change === "hash") bytes[16] ^= 1;
        else if (change === "malformed") bytes.fill(0xff, 44);
        window.weights.give(bytes.buffer);
      }, change);
    let refused = (await stats(viewer)).weightsRefused;
    for (const reason of ["version", "network", "hash", "malformed"]) {
      await give(reason);
      refused++;
      const counted = async () => {
        const { weightsRefused, weightsRefusal, ownWeights } = await stats(viewer);
        return weightsRefused === refused && weightsRefusal === reason && !ownWeights;
      };
      await until(counted, `weights are refused: ${reason}`, 10_000, state(viewer));
    }
    const before = (await stats(viewer)).faults;
    await until(async () => (await stats(viewer)).outputFps > 0, "pictures go on", 20_000, state(viewer));
    assert.equal((await stats(viewer)).faults, before);
  });

  test("they go with the publisher", async () => {
    const viewer = open.at(-1);
    await viewer.page.evaluate(() => {
      window.weights.mode = "pass";
      window.weights.give(window.weights.last.slice(0));
    });
    await until(async () => own(await stats(viewer)), "own weights are used again", 90_000, state(viewer));
    await publisher.close();
    publisher = undefined;
    await until(async () => (await remote(viewer.page)) === undefined, "the publisher has left", 30_000);
    // The next one gets the same place, and shows the same: what was learned of the other is not used for it.
    publisher = await publish(server, scene, { layers: "qhf" });
    const before = await viewer.page.evaluate(() => window.weights.count);
    await showLarge(viewer.page);
    await until(async () => xs(await stats(viewer)), "the network runs", 120_000, state(viewer));
    await sleep(1000);
    const now = await viewer.page.evaluate(() => window.weights.count);
    if (now === before) assert.equal((await stats(viewer)).ownWeights, false);
    const { windlass_sfu_weights_out_total: sent } = await server.metrics();
    assert.ok(sent > 0);
  });
});
