// The publisher's own pictures as stills: coded in a real browser over its own low layer, met with their frames to the tick through
// the real server, and what goes wrong on the way. And consent: whoever has not agreed sends none.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { enhancedAt, nativeFrames, publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { capture, quality } from "../support/capture.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { standing } from "../support/standing.mjs";
import { look, regions, stillCall, withVideo } from "../support/still_call.mjs";

/** To be run in a page before its scripts: lets a test close its sockets. */
function keepSockets() {
  window.sockets = [];
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      window.sockets.push(this);
    }
  };
}

describe("stills that the publisher codes over its own low layer", { only: true }, () => {
  let call;
  let publisher;
  let viewer;

  /** Waits for `count` stills of the frames that they bear the timestamps of; none may be of another. */
  async function meets(count, what) {
    const sum = await look(call, (seen) => seen.met >= count, what);
    assert.deepEqual(sum.missed, [], what);
    return sum;
  }

  /** Waits until the viewer holds this rung. */
  const holds = (rung) => until(async () => (await remote(viewer.page)).rung === rung, `the rung is ${rung}`, 25_000);

  before(async () => {
    call = await stillCall(makeScene({ clip: "d13" }), { init: keepSockets });
    ({ publisher, viewer } = call);
  });

  after(() => call?.close());

  test("each is of the frame whose timestamp it bears, and within its bytes", { only: true }, async () => {
    const { bytes } = await meets(6, "a call");
    // 50 kbit/s, of two seconds or, the first after a pause, of up to four; chunk headers come on top.
    assert.ok(bytes.every((b) => b <= 25_000 * 1.05), `${bytes}`);
    const counts = await regions(publisher.page);
    console.log(`stills, counts: ${JSON.stringify(counts)}`);
    assert.deepEqual([counts.refused, counts.tight], [0, 0]);
  });

  test("the picture is better by them than the low layer alone can be", async () => {
    const before = await regions(publisher.page);
    const began = Date.now();
    const captured = await capture(viewer.page, 5);
    const after = await regions(publisher.page);
    const kbps = ((after.bytes - before.bytes) * 8) / (Date.now() - began);
    const q = quality(captured, call.scene);
    console.log(`stills: PSNR-Y over ${q.pairs} frames: ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)}, Lanczos ${q.lanczos.toFixed(2)}; stills take ${kbps.toFixed(1)} kbit/s`);
    assert.ok(q.pairs >= 10 && q.enhanced > q.lanczos + 0.5, JSON.stringify(q));
  });

  test("the page says that full-size stills are sent", async () => {
    const told = publisher.page.locator(".stills");
    await told.waitFor({ state: "visible" });
    assert.match(await told.textContent(), /full-size stills/);
  });

  test("a muted camera gives none, and an unmuted one goes on", async () => {
    await publisher.page.getByRole("button", { name: /^Camera: on/ }).click();
    await publisher.page.locator(".stills").waitFor({ state: "hidden" });
    const { sent } = await regions(publisher.page);
    await sleep(4000);
    assert.equal((await regions(publisher.page)).sent, sent);
    await publisher.page.getByRole("button", { name: /^Camera: off/ }).click();
    await meets(3, "after a mute");
  });

  test("over another camera", async () => {
    await withVideo(publisher.page, async (video) => {
      const [track] = (await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 360 } })).getVideoTracks();
      await video.replaceTrack(track);
    });
    await meets(3, "after another camera");
  });

  test("over another camera that the page gives the sender itself", async () => {
    await withVideo(publisher.page, async (video) => {
      const [track] = (await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 360 } })).getVideoTracks();
      await video.sender.replaceTrack(track);
    });
    await meets(3, "after the sender's own replaceTrack");
  });

  test("over another layer, whose pictures it has not followed yet", async () => {
    await withVideo(publisher.page, (video) => video.setLayers("q"));
    await holds("q+");
    const { last } = await meets(3, "the smallest layer alone");
    assert.equal(last, call.scene.width / 2);
    await withVideo(publisher.page, (video) => video.setLayers("qh"));
    await holds("h+");
    await until(async () => (await meets(1, "the half layer again")).last === call.scene.width, "stills are full-size again", 40_000);
  });

  test("of a publisher whose connection was lost and is back", async () => {
    const before = (await remote(viewer.page)).id;
    await publisher.page.evaluate(() => window.sockets.at(-1).close());
    await until(async () => ((await remote(viewer.page))?.id ?? before) !== before, "the publisher is back with another track", 30_000);
    await until(async () => (await nativeFrames(viewer.page)) > 10, "the picture is received");
    await meets(3, "after a reconnect");
  });

  test("over and after a lossy path, on which frames of the low layer are lost", async () => {
    const { proxy } = call.server;
    proxy.loss = 0.1;
    await sleep(6000);
    proxy.loss = 0;
    await meets(3, "over and after 10 % loss");
  });

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});

describe("consent", { only: true }, () => {
  let scene;
  let server;
  let tab;

  before(async () => {
    scene = makeScene({ clip: "d13" });
    server = await startServer();
    tab = await openPage({ camera: scene.file });
  });

  after(async () => {
    await tab?.close();
    await server?.stop();
  });

  const box = () => tab.page.getByRole("checkbox", { name: /full-size stills/i });
  /** Opens the start screen, and there what most people leave as it is. */
  const begin = async (query = "") => {
    await tab.page.goto(`${server.url}/?room=consent&name=Ada${query}`);
    if (!(await box().isVisible())) await tab.page.locator(".more summary").click();
  };
  const join = async () => {
    await tab.page.getByRole("button", { name: /Join the call|Start the call/ }).click();
    await until(() => tab.page.evaluate(() => window.windlass.phase === "call"), "the call begins");
    await until(() => tab.page.evaluate(() => window.windlass.room.published.some((p) => p.kind === "video" && p.id)), "the camera is published");
  };
  const lines = () => withVideo(tab.page, (video) => ({ stills: video.stills, transform: video.sender.transform !== null }));

  test("the choice is on the start screen, off, and says what it means", { only: true }, async () => {
    await begin();
    assert.equal(await box().isChecked(), false);
    assert.match(await tab.page.locator(".consent").textContent(), /others may get full-size pictures of your camera.*off, none are sent/);
  });

  test("who leaves it off sends no stills, and has nothing that could send them", { only: true }, async () => {
    await join();
    assert.deepEqual(await lines(), { stills: null, transform: false });
    assert.equal(await tab.page.locator(".stills").isVisible(), false);
  });

  test("who ticks it sends none until the server asks", async () => {
    await begin();
    await box().check();
    await join();
    await sleep(2500);
    const { stills, transform } = await lines();
    assert.deepEqual([transform, stills.regions.requested, stills.regions.sent], [true, 0, 0]);
    assert.equal(await tab.page.locator(".stills").isVisible(), false);
  });

  test("the address may tick it, and the person may take that back", async () => {
    await begin("&detail=1");
    assert.equal(await box().isChecked(), true);
    await box().uncheck();
    await join();
    assert.deepEqual(await lines(), { stills: null, transform: false });
  });

  test("nothing is written to the console as an error", () => assert.deepEqual(tab.errors, []));
});

describe("regions that the server asks for", () => {
  let scene;
  let server;
  let publisher;
  let viewer;

  const counts = async () => {
    const all = await server.metrics();
    const total = (name) => all[`windlass_sfu_${name}_total`];
    return { asked: total("region_requests"), given: total("regions_in"), unasked: total("regions_unasked") };
  };

  before(async () => {
    scene = makeScene(fewFrames);
    server = await startServer({ args: ["--no-congestion-control"] });
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("whoever agreed is asked for tiles, gives them at their frame, and subscribers use them", async () => {
    publisher = await publish(server, scene, { layers: "qh", query: "&detail=1", room: "regions" });
    viewer = await subscribe(server, { room: "regions" });
    await enhancedAt(viewer.page, scene.width);
    const made = () => publisher.page.evaluate(() => window.windlass.room.published.find((p) => p.kind === "video").stills.regions);
    const state = () => standing(server, publisher, viewer);
    // The first requests pass while the worker starts and learns which camera frame is which of the layer's.
    await until(async () => (await counts()).given >= 1, "the first region has come", 40_000, state);
    const [first, firstMade] = [await counts(), await made()];
    await until(async () => (await counts()).given >= first.given + 6, "regions have come", 40_000, state);
    const [now, nowMade] = [await counts(), await made()];
    const [asked, given, capped] = [now.asked - first.asked, now.given - first.given, nowMade.capped - firstMade.capped];
    console.log(`regions: asked ${asked}, given ${given}, ${JSON.stringify(nowMade)}`);
    assert.equal(now.unasked, 0);
    // The first may come before the layers have had all that they may use for a while.
    assert.ok(given >= 0.7 * (asked - capped), `${given} of ${asked}`);
    assert.ok(nowMade.capped <= 6, `${nowMade.capped} were beyond the client's caps`);
    // The viewer's worker tells once a second what it has used.
    const used = async () => {
      const { given } = await counts();
      return (await remote(viewer.page)).stats.anchorsUsed >= 0.8 * given;
    };
    await until(used, "the viewer uses regions", 15_000, state);
    const { stats } = await remote(viewer.page);
    console.log(`regions: used ${stats.anchorsUsed}, lost ${stats.anchorsLost}`);
    assert.ok(stats.anchorsLost <= 2, `${stats.anchorsLost} lost`);
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
