// The quality of connections, as the server tells it: a publisher's uplink becomes narrow, and wide again.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { publish, subscribe, until } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";

describe("the quality of connections", () => {
  let server;
  let publisher;
  let viewer;

  before(async () => {
    server = await startServer({ args: ["--device=off"], path: {} });
    publisher = await publish(server, {}, { layers: "qh" }); // what is seen does not matter
    viewer = await subscribe(server);
  });

  after(async () => {
    await Promise.all([viewer?.close(), publisher?.close()]);
    await server?.stop();
  });

  /** What the viewer knows of the publisher, and the publisher of itself: by the SDK, and by the bars. */
  const known = async () => {
    const theirs = await viewer.page.evaluate(() => ({
      quality: window.windlass.room.participants[0]?.quality,
      bars: document.querySelector(".tile .bars")?.getAttribute("aria-label"),
    }));
    const own = await publisher.page.evaluate(() => ({
      quality: window.windlass.room.quality,
      bars: document.querySelector(".own .bars")?.getAttribute("aria-label"),
    }));
    return { theirs, own };
  };
  const becomes = async (quality, bars, timeoutMs) => {
    const from = Date.now();
    const all = async () => {
      const { theirs, own } = await known();
      return [theirs, own].every((of) => of.quality === quality && of.bars === bars);
    };
    await until(all, `all see that the connection is ${quality}`, timeoutMs, known);
    console.log(`quality: ${quality} after ${((Date.now() - from) / 1000).toFixed(1)} s`);
  };

  test("it is good where nothing is missing", () => becomes("good", "Good connection", 60_000));

  test("an uplink that becomes narrow is told to all, and so is its end", async () => {
    server.proxy.uplinkKbps = 60;
    await becomes("poor", "Bad connection", 40_000);
    server.proxy.uplinkKbps = Infinity;
    await becomes("good", "Good connection", 90_000);
  });

  test("who comes later knows it too", async () => {
    const late = await subscribe(server, { name: "Late", browser: viewer });
    const quality = () => late.page.evaluate(() => window.windlass.room.participants.find(({ name }) => name === "Publisher")?.quality ?? null);
    // Long before a first assessment of the newcomer itself.
    await until(async () => (await quality()) !== null, "the newcomer is told", 4000, quality);
    await late.closePage();
  });

  test("nothing is written to the console as an error", () => assert.deepEqual([...viewer.errors, ...publisher.errors], []));
});
