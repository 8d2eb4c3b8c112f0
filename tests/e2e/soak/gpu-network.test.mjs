// A network on every frame, on WebGPU: in a call its picture is that of the decoder's own network, and faults fall back to that.
//
// Chromium's software adapter computes, which is taken for tests alone: nothing here is a figure of speed. As it is slow, pictures
// are small and few, and the network is the cheapest.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { publish, remote, setVisibility, subscribe, until } from "../support/call.mjs";
import { capture, numbers } from "../support/capture.mjs";
import { psnr } from "../support/metrics.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

/** Enough for Chromium to give its software adapter. */
const SOFTWARE = ["--enable-unsafe-webgpu"];
/** A picture on the GPU against that of the decoder's integers, dB: some samples are rounded the other way. */
const SAME_DB = 55;
/** A network is told as it begins; for so long pictures may be shown that were made before, as they wait to be played, ms. */
const MADE_BEFORE_MS = 1000;

const server = await startServer({ args: ["--no-congestion-control", "--compute-cap", "0"] });
const viewer = await subscribe(server, { query: "&maxNetwork=xxs&networkBackend=webgpu", args: SOFTWARE });
after(async () => {
  await viewer.close();
  await server.stop();
});
const adapter = await viewer.page.evaluate(async () => (await navigator.gpu?.requestAdapter()) != null);
const missing = !adapter && "this Chromium has no software adapter for WebGPU";

describe("a network on WebGPU in a call", { only: true, skip: skipped("a network on WebGPU in a call", missing) }, () => {
  let scene;
  let publisher;
  let other;

  const stats = async (page) => (await remote(page))?.stats;
  const runs = (page, backend) =>
    until(
      async () => {
        const now = await stats(page);
        return now?.network === "xxs" && now.networkBackend === backend && now.hr?.width === scene.width / 2;
      },
      `xxs runs on ${backend}`,
      40_000,
      () => remote(page),
    );

  before(async () => {
    scene = makeScene({ clip: "d13", width: 640, height: 360, fps: 10, frames: 80 });
    publisher = await publish(server, scene, { layers: "q" });
    other = await subscribe(server, { query: "&maxNetwork=xxs", browser: viewer });
    await Promise.all([runs(viewer.page, "webgpu"), runs(other.page, "wasm")]);
  });

  after(() => publisher?.close());

  /** Rebuilt pictures of `seconds` that were made after the call. */
  async function pictures(page, seconds) {
    const from = await page.evaluate(() => performance.now());
    const { enhanced } = await capture(page, seconds + MADE_BEFORE_MS / 1000);
    return enhanced.filter(({ at }) => at > from + MADE_BEFORE_MS);
  }

  /** dB between the viewer's pictures and those of the decoder's own network, of the same frames; `list`: the viewer's numbers. */
  async function compare(seconds) {
    // A part in which the other viewer's machine had no time for its network does not count.
    for (let tries = 0; tries < 5; tries++) {
      await runs(other.page, "wasm");
      const [one, its] = await Promise.all([viewer, other].map(({ page }) => pictures(page, seconds)));
      if ((await stats(other.page)).networkBackend !== "wasm") continue;
      const list = numbers(one, scene);
      const byNumber = new Map(numbers(its, scene).map((n, i) => [n, its[i]]));
      const db = one.flatMap(({ y, width, height }, i) => {
        const same = byNumber.get(list[i]);
        return same?.width === width ? [psnr(y, same.y, width, height, 0)] : [];
      });
      return { db, list };
    }
    throw new Error("the decoder's own network never ran for long enough");
  }

  test("its pictures are those of the decoder's own network, in order, but for those that it had no time for", { only: true }, async () => {
    const before = (await stats(viewer.page)).networkSkipped;
    const { db, list } = await compare(4);
    const steps = list.slice(1).map((n, i) => (n - list[i] + scene.frames) % scene.frames);
    assert.ok(!list.includes(-1) && steps.every((step) => step < scene.frames / 2), `numbers ${list}`);
    const made = db.filter((one) => one >= SAME_DB);
    const enough = async () => {
      const now = await stats(viewer.page);
      return db.length - made.length <= now.networkSkipped - before && now;
    };
    const { networkMs, networkSkipped } = await until(enough, `pictures are skipped: ${db.map((one) => one.toFixed(1))} dB`, 5000);
    console.log(
      `WebGPU: ${made.length} of ${db.length} pictures, at least ${Math.min(...made).toFixed(1)} dB from WebAssembly's;`,
      `${networkMs?.toFixed(0)} ms a picture, ${networkSkipped - before} skipped meanwhile`,
    );
    assert.ok(made.length >= 5, `${db.map((one) => one.toFixed(1))} dB`);
  });

  test("a page that nobody sees runs none, and goes on when it is seen", async () => {
    await setVisibility(viewer.page, "hidden");
    await until(async () => (await stats(viewer.page)).network === "none", "the network rests");
    assert.equal((await stats(viewer.page)).networkBackend, null);
    const { db } = await compare(3);
    assert.ok(db.length >= 3, `${db.length} pictures compared`);
    console.log(`WebGPU: without a network ${Math.max(...db).toFixed(1)} dB from WebAssembly's at most`);
    assert.ok(Math.max(...db) < SAME_DB, `${db.map((one) => one.toFixed(1))} dB`);
    await setVisibility(viewer.page, "visible");
    await runs(viewer.page, "webgpu");
  });

  test("a processor that plays a GPU is not taken unasked", async () => {
    const reason = () => stats(other.page).then(({ networkFailure }) => networkFailure);
    await until(reason, "the GPU was tried", 20_000);
    assert.equal(await reason(), "software_adapter");
    await runs(other.page, "wasm");
  });

  test("its script is asked for where a network may run there; one that cannot be loaded is told", async () => {
    const asked = [];
    const look = async (maxNetwork) => {
      const newPage = async (options) => {
        const tab = await viewer.newPage(options);
        await tab.page.context().route("**/network-webgpu.js", (route) => {
          asked.push(maxNetwork);
          return route.abort();
        });
        return tab;
      };
      const query = `&maxNetwork=${maxNetwork}&networkBackend=webgpu`;
      return subscribe(server, { query, browser: { newPage } });
    };
    const [none, some] = [await look("none"), await look("xxs")];
    await until(async () => (await remote(none.page))?.state === "rebuilt", "the picture is rebuilt without a network");
    await until(async () => (await stats(some.page))?.networkFailure, "the fault is told", 15_000);
    assert.equal((await stats(some.page)).networkFailure, "no_script");
    await runs(some.page, "wasm");
    const { network, networkFailure } = await stats(none.page);
    assert.deepEqual([network, networkFailure, asked], ["none", null, ["xxs"]]);
    for (const tab of [none, some]) await tab.closePage();
  });

  test("where the GPU's process ends the picture goes on without it", async () => {
    const watched = capture(viewer.page, 8);
    const seen = () => viewer.page.evaluate(() => window.capturedFrames?.enhanced.length > 3);
    await until(seen, "pictures are captured", 5000);
    const browser = await viewer.page.context().browser().newBrowserCDPSession();
    await browser.send("Browser.crashGpuProcess").catch(() => undefined);
    const crashed = await viewer.page.evaluate(() => performance.now());
    const lost = await until(async () => {
      const now = await stats(viewer.page);
      return now.networkFailure !== null && now;
    }, "the fault is told");
    assert.equal(lost.networkFailure, "device_lost");
    assert.notEqual(lost.networkBackend, "webgpu");
    const { enhanced } = await watched;
    const gaps = enhanced.slice(1).map(({ at }, i) => at - enhanced[i].at);
    const after = enhanced.filter(({ at }) => at > crashed).length;
    console.log(`WebGPU: after the fault ${after} pictures, ${Math.round(Math.max(...gaps))} ms without one at most`);
    assert.ok(after >= 5, `${after} pictures`);
    assert.ok(Math.max(...gaps) < 1000, `gaps of ${gaps.map(Math.round)} ms`);
    assert.equal((await remote(viewer.page)).state, "rebuilt");
    await runs(viewer.page, "wasm");
  });
});
