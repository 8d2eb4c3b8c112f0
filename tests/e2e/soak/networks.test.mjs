// Servers with other networks than the default: one of the operator's own, which enlarges by four, and several, of which
// each publisher has the best that its camera, and the machine, are good for.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { after, before, describe, test } from "node:test";
import { enhancedAt, publish, remote, showLarge, sleep, subscribe, until } from "../support/call.mjs";
import { capture, means, numbers, quality, scored } from "../support/capture.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { standing } from "../support/standing.mjs";
import { StillReader, takeStills, watchStills } from "../support/stills.mjs";

const network = (name) => fileURLToPath(new URL(`../../../models/${name}`, import.meta.url));

describe("a network that enlarges by four", { only: true }, () => {
  let scene;
  let server;
  let publisher;
  let viewer;

  before(async () => {
    scene = makeScene({ clip: "d13" });
    server = await startServer({ args: ["--no-congestion-control", "--network", network("xs-x4.safetensors")] });
    publisher = await publish(server, scene, { layers: "q" });
    viewer = await subscribe(server);
    await enhancedAt(viewer.page, scene.width);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("the smallest layer is shown at the camera's size, by anchors of that network", { only: true }, async () => {
    const seen = await remote(viewer.page);
    assert.equal(seen.rung, "q+");
    const made = async () => (await server.metrics())['windlass_enhancer_network_anchors_total{network="xs-x4"}'] > 0;
    await until(made, "anchors are made by it");
    await until(async () => (await remote(viewer.page)).stats.anchorsUsed > 0, "they are used");
  });

  test("its pictures are in order, and better than bicubic", async () => {
    const captured = await capture(viewer.page, 6);
    assert.equal(numbers(captured.enhanced, scene).filter((n) => n < 0).length, 0);
    const q = quality(captured, scene);
    console.log(
      `by four: PSNR-Y over ${q.pairs} frames: enhanced ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)} dB, Lanczos ${q.lanczos.toFixed(2)} dB`,
    );
    assert.ok(q.pairs >= 10, `only ${q.pairs} pairs`);
    assert.ok(q.enhanced > q.bicubic, JSON.stringify(q));
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});

/** Waits until `count` stills of the camera's size have come, each of the frame whose timestamp it bears. */
async function meets(count, { page }, scene) {
  const reader = new StillReader("../../client-web/dist/windlass.wasm");
  // Those from before may have another size.
  await page.evaluate(() => window.stillMessages.splice(0));
  let all = 0;
  const enough = async () => {
    const { met, missed, broken, widths } = await takeStills(page, reader, scene, 4);
    assert.deepEqual([missed, broken], [[], 0]);
    assert.ok(widths.every((width) => width === scene.width), `${widths}`);
    all += met;
    await sleep(400);
    return all >= count;
  };
  await until(enough, `${count} stills of the camera's size`, 60_000);
}

describe("the publisher's own stills beside such a network", () => {
  test("they are four times as large as the smallest layer", async () => {
    const scene = makeScene({ clip: "d13" });
    const server = await startServer({ args: ["--no-congestion-control", "--network", network("xs-x4.safetensors")] });
    const publisher = await publish(server, scene, { layers: "q", query: "&detail=1" });
    const viewer = await subscribe(server, { init: watchStills });
    try {
      await enhancedAt(viewer.page, scene.width);
      await meets(3, viewer, scene);
      assert.deepEqual([...publisher.errors, ...viewer.errors], []);
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  });
});

describe("networks of two factors", () => {
  const byScale = async (server, scale) => (await server.metrics())[`windlass_enhancer_scale_streams{scale="${scale}"}`];

  test("each publisher is enlarged to its camera's size, in the middle of the call", async () => {
    const scene = makeScene({ clip: "d13" });
    const server = await startServer({ args: ["--no-congestion-control"] });
    const small = await publish(server, scene, { layers: "q", query: "&detail=1" });
    const viewer = await subscribe(server, { init: watchStills });
    try {
      await showLarge(viewer.page);
      await enhancedAt(viewer.page, scene.width);
      const { rung, stats } = await remote(viewer.page);
      assert.equal(rung, "q+");
      assert.deepEqual([stats.faults, stats.pauses], [0, 0]);
      assert.equal(await byScale(server, 4), 1);
      const anchors = async () => (await server.metrics())['windlass_enhancer_network_anchors_total{network="xs-x4"}'];
      await until(async () => (await anchors()) > 0, "anchors are made by the network of four");
      const captured = await capture(viewer.page, 4);
      assert.equal(numbers(captured.enhanced, scene).filter((n) => n < 0).length, 0);
      const q = quality(captured, scene);
      console.log(
        `chosen by four: PSNR-Y over ${q.pairs} frames: enhanced ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)} dB`,
      );
      assert.ok(q.enhanced > q.bicubic, JSON.stringify(q));
      // What the publisher sends of its own has the new size too.
      await meets(1, viewer, scene);
      assert.deepEqual([...small.errors, ...viewer.errors], []);
    } finally {
      await viewer.close();
      await small.close();
      await server.stop();
    }
  });

  test("to its size also where a larger layer is sent, whose pictures are enlarged to it", async () => {
    const scene = makeScene({ clip: "d13" });
    const server = await startServer({ args: ["--no-congestion-control"] });
    const publisher = await publish(server, scene, { layers: "qh" });
    const viewer = await subscribe(server);
    try {
      await showLarge(viewer.page);
      await viewer.page.evaluate(() => window.windlass.remoteVideos()[0].setMaxRung("q+"));
      await enhancedAt(viewer.page, scene.width);
      await sleep(4000);
      assert.equal((await remote(viewer.page)).rung, "q+");
      const { hr } = (await remote(viewer.page)).stats;
      assert.equal(hr.width, scene.width);
      assert.deepEqual([await byScale(server, 2), await byScale(server, 4)], [0, 1]);
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  });

  test("nor by more than the machine can sustain", async () => {
    const scene = makeScene({ clip: "d13" });
    const server = await startServer({ args: ["--no-congestion-control", "--enhancer-threads", "1", "--compute-cap", "0.0005"] });
    const publisher = await publish(server, scene, { layers: "q" });
    const viewer = await subscribe(server);
    try {
      await showLarge(viewer.page);
      await enhancedAt(viewer.page, scene.width / 2);
      await sleep(4000);
      assert.deepEqual([await byScale(server, 2), await byScale(server, 4)], [1, 0]);
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  });
});

test("files that are no networks are refused at the start, by name", () => {
  for (const [files, why] of [
    ["absent.safetensors", /cannot read the network .*absent\.safetensors/],
    ["xs-x2.fixture.safetensors", /cannot use the network .*xs-x2\.fixture\.safetensors/],
  ]) {
    const list = files.split(",").map(network).join(",");
    const { status, stderr } = spawnSync(process.env.WINDLASS_BIN, ["serve", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--network", list], {
      encoding: "utf8",
      timeout: 20_000,
    });
    assert.equal(status, 1, stderr);
    assert.match(stderr, why);
  }
});

describe("a large tile of q whose publisher sends no more than h", () => {
  let scene;
  let server;
  let publisher;
  let viewer;

  before(async () => {
    scene = makeScene({ clip: "s18", width: 960, height: 540, fps: 15, frames: 150 });
    server = await startServer({ args: ["--no-congestion-control", "--anchor-fraction", "0.2"] });
    publisher = await publish(server, scene, { layers: "qh" });
    viewer = await subscribe(server, { query: "&maxRung=q%2B" });
    await showLarge(viewer.page, scene);
    await enhancedAt(viewer.page, scene.width);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("it is rebuilt as large as the tile, with the pixels of h", async () => {
    const captured = async () => (await server.metrics()).windlass_enhancer_captured_anchors_total;
    await until(async () => (await captured()) >= 8, "anchors are made of the half layer", 60_000, () => standing(server, publisher, viewer));
    const pairs = [];
    for (let tries = 0; tries < 8 && pairs.length < 60; tries++) {
      await enhancedAt(viewer.page, scene.width);
      pairs.push(...scored(await capture(viewer.page, 3), scene, 1));
    }
    const shown = await remote(viewer.page);
    const q = means(pairs);
    console.log(
      `captured from h at four times q: PSNR-Y over ${q.pairs} frames: ${q.enhanced.toFixed(2)} dB, Lanczos ${q.lanczos.toFixed(2)} dB; ${JSON.stringify(shown.stats)}`,
    );
    assert.equal(shown.rung, "q+");
    assert.ok(q.pairs >= 20, `only ${q.pairs} pairs`);
    // The drawn scene stands in for a clip: its smooth shades leave little to gain.
    assert.ok(q.enhanced > q.lanczos + (scene.real ? 0.3 : 0), JSON.stringify(q));
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
