// A network on every frame: a viewer whose machine has time for one shows a better picture, and says which network it runs.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { publish, remote, subscribe, until } from "../support/call.mjs";
import { capture, means, numbers, scored } from "../support/capture.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

describe("a network on every frame", () => {
  let scene;
  let server;
  let publisher;
  let viewer;
  const seen = {};

  /** What a viewer sees who may run such a network, once it does. */
  async function look(maxNetwork) {
    viewer = await subscribe(server, { query: `&maxNetwork=${maxNetwork}` });
    const now = () => remote(viewer.page);
    const runs = async () => {
      const { state, stats } = await now();
      return state === "rebuilt" && stats.hr?.width === scene.width && stats.network === maxNetwork;
    };
    await until(runs, `pictures are ${scene.width} pixels wide by the network ${maxNetwork}`, 60_000, now);
    const pairs = [];
    let list = [];
    // Parts in which it was dropped do not count.
    for (let tries = 0; tries < 8 && pairs.length < 60; tries++) {
      await until(runs, `the network ${maxNetwork} runs again`, 90_000, now);
      const part = await capture(viewer.page, 3);
      if (!(await runs())) continue;
      list = numbers(part.enhanced, scene);
      pairs.push(...scored(part, scene, 1));
    }
    const { stats } = await now();
    const told = (await server.metrics())[`windlass_client_network_reports_total{network="${maxNetwork}"}`];
    assert.ok(told > 3, `the server was told ${told} times of the network ${maxNetwork}`);
    await viewer.close();
    viewer = undefined;
    return { list, stats, ...means(pairs) };
  }

  before(async () => {
    // Few frames a second: to copy pixels takes the CPU as well, and a network without time is dropped.
    scene = makeScene({ clip: "d13", width: 640, height: 360, fps: 8, frames: 64 });
    server = await startServer({ args: ["--no-congestion-control", "--compute-cap", "0"] });
    publisher = await publish(server, scene);
    for (const network of ["none", "xs"]) seen[network] = await look(network);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("pictures come in order, as with none", () => {
    for (const { list } of Object.values(seen)) assert.equal(list.filter((n) => n < 0).length, 0, `numbers ${list}`);
  });

  test("the picture is better than the filters'", () => {
    const gain = {};
    for (const [network, { pairs, enhanced, lanczos, bicubic, stats }] of Object.entries(seen)) {
      console.log(
        `network ${network}: PSNR-Y over ${pairs} frames: shown ${enhanced.toFixed(2)} dB, Lanczos ${lanczos.toFixed(2)} dB,`,
        `bicubic ${bicubic.toFixed(2)} dB; ${stats.decodeMs?.toFixed(1)} ms a frame`,
      );
      assert.ok(pairs >= 20, `only ${pairs} pairs with ${network}`);
      gain[network] = enhanced - lanczos;
    }
    // Networks learned from people and pages; the drawn scene, which stands in for a clip, is neither.
    assert.ok(gain.xs > gain.none + (scene.real ? 0.15 : 0), JSON.stringify(gain));
  });
});
