// A network on every frame, shared by two workers of a track: in a call its picture is that of the decoder's own network.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { publish, remote, setVisibility, subscribe, until } from "../support/call.mjs";
import { capture, numbers } from "../support/capture.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** A network is reported as it begins; for so long pictures may be shown that were made before, as they wait to be played, ms. */
const MADE_BEFORE_MS = 1000;

describe("a network in two workers", { only: true }, () => {
  let server;
  let scene;
  let publisher;
  let viewer;
  let other;

  const stats = async ({ page }) => (await remote(page))?.stats;
  const runs = (of, backend) =>
    until(
      async () => {
        const now = await stats(of);
        return now?.network === "xxs" && now.networkBackend === backend && now.hr?.width === scene.width / 2;
      },
      `xxs runs: ${backend}`,
      40_000,
      () => remote(of.page),
    );

  before(async () => {
    server = await startServer({ args: ["--no-congestion-control", "--compute-cap", "0", "--captured=off"] });
    scene = makeScene({ clip: "d13", width: 640, height: 360, fps: 10, frames: 80 });
    publisher = await publish(server, scene, { layers: "q" });
    viewer = await subscribe(server, { query: "&maxNetwork=xxs&networkBackend=workers" });
    other = await subscribe(server, { query: "&maxNetwork=xxs", browser: viewer });
    await Promise.all([runs(viewer, "workers"), runs(other, "wasm")]);
  });

  after(async () => {
    await Promise.all([publisher?.close(), viewer?.close()]);
    await server?.stop();
  });

  /** Rebuilt pictures of the next seconds. */
  async function pictures({ page }, seconds) {
    const from = await page.evaluate(() => performance.now());
    const { enhanced } = await capture(page, seconds + MADE_BEFORE_MS / 1000);
    return enhanced.filter(({ at }) => at > from + MADE_BEFORE_MS);
  }

  test("its pictures are those of the decoder's own network, bit by bit and in order", { only: true }, async () => {
    const before = await stats(viewer);
    const [made, its] = await Promise.all([viewer, other].map((one) => pictures(one, 4)));
    const [now, others] = [await stats(viewer), await stats(other)];
    assert.deepEqual([now.networkBackend, others.networkBackend], ["workers", "wasm"]);
    const list = numbers(made, scene);
    const steps = list.slice(1).map((n, i) => (n - list[i] + scene.frames) % scene.frames);
    assert.ok(!list.includes(-1) && steps.every((step) => step < scene.frames / 2), `numbers ${list}`);
    // Where the clip begins again, Chromium gives its first frame twice.
    const itsNumbers = numbers(its, scene);
    const pairs = made.map((one, i) => [one, its.filter((_, j) => itsNumbers[j] === list[i])]).filter(([, found]) => found.length > 0);
    const same = pairs.filter(([one, found]) => found.some(({ y }) => one.y.equals(y))).length;
    const skipped = now.networkSkipped - before.networkSkipped;
    console.log(`two workers: ${same} of ${pairs.length} pictures are the decoder's; ${now.networkMs?.toFixed(1)} ms a picture, ${skipped} skipped`);
    assert.ok(same >= 5, `${same} of ${pairs.length}`);
    assert.ok(pairs.length - same <= skipped, `${pairs.length - same} pictures differ, ${skipped} were skipped`);
  });

  test("they end in a page that nobody sees, and come back with it", async () => {
    await setVisibility(viewer.page, "hidden");
    await until(async () => (await stats(viewer)).network === "none", "the network rests");
    assert.equal((await stats(viewer)).networkBackend, null);
    await setVisibility(viewer.page, "visible");
    await runs(viewer, "workers");
  });
});
