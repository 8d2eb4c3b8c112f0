// A tile's size decides what is sent to it, and what nobody takes its publisher does not even send.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { nativeFrames, publish, remote, setVisibility, sleep, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** Bytes that a publisher has sent so far, by layer. */
function sent(page) {
  return page.evaluate(async () => {
    const bytes = {};
    for (const s of (await window.windlass.room.connectionStats()).values()) {
      if (s.type === "outbound-rtp" && s.kind === "video" && s.rid) bytes[s.rid] = s.bytesSent;
    }
    return bytes;
  });
}

/** What each layer takes of the publisher's uplink, in kbit/s, over three seconds. */
async function rates(page) {
  const from = await sent(page);
  await sleep(3000);
  const to = await sent(page);
  return Object.fromEntries(Object.keys(to).map((rid) => [rid, ((to[rid] - (from[rid] ?? 0)) * 8) / 3000]));
}

describe("a call that fits its tiles", { only: true }, () => {
  let server;
  let publisher;
  let viewer;

  before(async () => {
    server = await startServer({ args: ["--device=off"] });
    publisher = await publish(server, makeScene({ clip: "s18", width: 960, height: 540, fps: 12 }), { layers: "qhf" });
    viewer = await subscribe(server, { query: "&adaptive=1" });
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("a large tile takes the largest layer", { only: true }, async () => {
    await until(async () => (await remote(viewer.page))?.rung === "f", "the rung is f", 40_000);
  });

  test("a small tile takes a small layer, and the publisher stops sending the larger one", async () => {
    await viewer.page.setViewportSize({ width: 380, height: 300 });
    // Some 350 pixels across: the half layer's 480 are enough.
    await until(async () => (await remote(viewer.page))?.rung === "h", "the rung is h", 10_000);
    const paused = async () => {
      const { q, h, f } = await rates(publisher.page);
      return q > 5 && h > 20 && f < 5 && { q, h, f };
    };
    console.log("sent for a small tile, kbit/s:", await until(paused, "the publisher pauses f", 30_000));
  });

  test("a tile that grows gets the largest layer again, soon and without a freeze", async () => {
    const freezes = async () => {
      const stats = await viewer.page.evaluate(async () => {
        const all = [...(await window.windlass.room.connectionStats()).values()];
        return all.find((s) => s.type === "inbound-rtp" && s.kind === "video");
      });
      return stats.freezeCount ?? 0;
    };
    const before = await freezes();
    await viewer.page.setViewportSize({ width: 1280, height: 720 });
    await until(async () => (await remote(viewer.page))?.rung === "f", "the rung is f again", 20_000);
    await sleep(1000);
    assert.equal(await freezes(), before, "the picture froze");
    const { f } = await rates(publisher.page);
    assert.ok(f > 100, `${f} kbit/s of f`);
  });

  test("a page that nobody sees is sent nothing, and moves at once when it is seen again", async () => {
    await setVisibility(viewer.page, "hidden");
    await until(async () => {
      const from = await nativeFrames(viewer.page);
      await sleep(1000);
      return (await nativeFrames(viewer.page)) === from;
    }, "nothing comes any more");
    await setVisibility(viewer.page, "visible");
    const from = await nativeFrames(viewer.page);
    await until(async () => (await nativeFrames(viewer.page)) > from + 10, "pictures come again", 4000);
  });
});
