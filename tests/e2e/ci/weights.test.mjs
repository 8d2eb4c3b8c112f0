// Weights of a publisher's own: the server learns the last layer of the viewers' network from the full layer, and viewers use it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { capture, numbers, scored } from "../support/capture.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** Longest time until the server has learned and proved weights, on a busy machine. */
const LEARNED_MS = 120_000;

/**
 * What becomes of the page's weights messages: `pass`, `drop` or `spoil` (a bit of the last byte), by `window.weights.mode`. The last one is
 * kept in `window.weights.last`, and can be given to the page anew, changed.
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
        if (window.weights.mode === "drop") return;
        if (window.weights.mode === "spoil") new Uint8Array(data)[data.byteLength - 1] ^= 0x80;
        take({ data });
      });
    },
  });
};

describe("weights of a publisher's own", { timeout: 420_000 }, () => {
  let scene;
  let server;
  let publisher;
  const open = [];

  /** A viewer of the low layer with captured pictures, who runs the network `xs`. */
  async function view(mode, name) {
    const init = `(${between})(${JSON.stringify(mode)})`;
    const viewer = await subscribe(server, { name, init, query: "&maxRung=h%2B&maxNetwork=xs" });
    open.push(viewer);
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
    return Object.fromEntries(Object.entries(all).filter(([name]) => /lessons|own_weights|sfu_weights/.test(name)));
  }

  /** By frame number, the quality of the pictures that a viewer sees while `runs` holds; at least so many of them. */
  async function look(viewer, runs, pairs = 40) {
    const rows = new Map();
    for (let tries = 0; tries < 12 && rows.size < pairs; tries++) {
      await until(async () => runs(await stats(viewer)), "the network runs", 90_000, state(viewer));
      const part = await capture(viewer.page, 3);
      if (!runs(await stats(viewer))) continue;
      assert.ok(numbers(part.enhanced, scene).length > 0);
      for (const { n, enhanced } of scored(part, scene, 1)) rows.set(n, enhanced);
    }
    return rows;
  }

  before(async () => {
    // Text that moves, few frames a second. Chromium sends no third layer of a smaller camera.
    scene = makeScene({ clip: "page", width: 960, height: 540, fps: 8, frames: 112, out: "output" });
    server = await startServer({ args: ["--no-congestion-control", "--anchor-fraction", "0.2"] });
    publisher = await publish(server, scene, { layers: "qhf" });
  });

  after(async () => {
    for (const viewer of open) await viewer.close();
    await publisher?.close();
    await server?.stop();
  });

  const xs = ({ network, hr }) => network === "xs" && hr?.width === scene.width;
  const own = (stats) => xs(stats) && stats.ownWeights;

  test("a viewer's pictures are better by them than by the built-in network", async () => {
    const learner = await view("pass", "First");
    await until(async () => own(await stats(learner)), "own weights are used", LEARNED_MS, state(learner));
    const by = await look(learner, own);
    await leave(learner);
    const other = await view("drop", "Generic");
    const generic = await look(other, (stats) => xs(stats) && !stats.ownWeights);
    const both = [...by].filter(([n]) => generic.has(n));
    const gains = both.map(([n, db]) => db - generic.get(n));
    const mean = gains.reduce((a, b) => a + b, 0) / gains.length;
    console.log(`own weights: ${mean.toFixed(3)} dB over ${gains.length} frames, ${JSON.stringify(await learning())}`);
    assert.ok(gains.length >= 10, `only ${gains.length} frames are paired`);
    assert.ok(mean > (scene.real ? 0.03 : -0.05), `${mean} dB`);
    await leave(other);
  });

  test("who comes late gets the newest", async () => {
    const late = await view("pass", "Late");
    const got = () => late.page.evaluate(() => window.weights.count);
    await until(async () => (await got()) > 0, "weights come", 60_000, state(late));
    await until(async () => (await stats(late)).weightsTaken > 0, "they are taken", 30_000, state(late));
  });

  test("a wrong update is refused with its reason, and pictures go on", async () => {
    const [viewer] = open;
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
    const [viewer] = open;
    await viewer.page.evaluate(() => {
      window.weights.mode = "pass";
      window.weights.give(window.weights.last.slice(0));
    });
    await until(async () => own(await stats(viewer)), "own weights are used again", 60_000, state(viewer));
    await publisher.close();
    publisher = undefined;
    await until(async () => (await remote(viewer.page)) === undefined, "the publisher has left", 30_000);
    // The next one gets the same place, and shows the same: what was learned of the other is not used for it.
    publisher = await publish(server, scene, { layers: "qhf" });
    const before = await viewer.page.evaluate(() => window.weights.count);
    await until(async () => xs(await stats(viewer)), "the network runs", 90_000, state(viewer));
    await sleep(1000);
    const now = await viewer.page.evaluate(() => window.weights.count);
    if (now === before) assert.equal((await stats(viewer)).ownWeights, false);
    const { windlass_sfu_weights_out_total: sent } = await server.metrics();
    assert.ok(sent > 0);
  });
});
