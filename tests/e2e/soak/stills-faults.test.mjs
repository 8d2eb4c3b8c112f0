// What goes wrong with stills on their way and at their publisher: none is of another frame, and the low layer goes on.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhancedAt, remote, sleep, until } from "../support/call.mjs";
import { capture, numbers, quality } from "../support/capture.mjs";
import { makeScene } from "../support/scene.mjs";
import { flow, look, pausing, regions, sending, stillCall, withVideo } from "../support/still_call.mjs";
import { ofDataChannels } from "../support/udp_proxy.mjs";

/** What came of the low layer while `during` ran; `share`: frames that the viewer decoded of those that the camera gave. */
async function carried(call, during) {
  // A camera that has just taken another's place is not counted at once.
  const from = await until(async () => {
    const now = await flow(call);
    return now.source !== null && now;
  }, "the camera's frames are counted");
  const seen = await during();
  const to = await flow(call);
  const decoded = to.decoded - from.decoded;
  return { seen, decoded, share: decoded / (to.source - from.source), freezes: to.freezes - from.freezes, frozen: to.frozen - from.frozen };
}

const told = ({ share, decoded, freezes, frozen }) =>
  `decoded ${decoded}, ${(100 * share).toFixed(0)} % of the camera's; ${freezes} freezes of ${frozen.toFixed(1)} s`;

/** Stills that the server has taken. */
const given = async ({ server }) => (await server.metrics()).windlass_sfu_regions_in_total;

describe("stills that come late and out of order to the server", { only: true }, () => {
  let call;

  before(async () => {
    call = await stillCall(makeScene({ clip: "d13" }));
    await look(call, (seen) => seen.met >= 2, "before messages are held");
  });

  after(() => call?.close());

  /** Holds all that comes on data channels for up to `ms` until `enough`. */
  const late = async (ms, enough) => {
    const { proxy } = call.server;
    const held = proxy.counts.held;
    proxy.hold = (data, up) => (up && ofDataChannels(data) ? ms * proxy.next() : 0);
    const low = await carried(call, () => look(call, enough, `messages held for up to ${ms} ms`));
    proxy.hold = () => 0;
    console.log(`stills, ${proxy.counts.held - held} messages held for up to ${ms} ms: ${told(low)}`);
    assert.ok(proxy.counts.held - held >= 8, "messages were held");
    assert.deepEqual(low.seen.missed, []);
    assert.ok(low.share >= 0.8, told(low));
  };

  test("each message held for up to 80 ms: what is put together is of its own frame, and the low layer goes on", { only: true }, () =>
    late(80, (seen) => seen.met >= 4));

  test("each held for up to two seconds: nothing is of another frame, and the low layer goes on", async () => {
    const { requested } = await regions(call.publisher.page);
    await late(2000, async () => (await regions(call.publisher.page)).requested >= requested + 6);
  });

  test("in time again they are used again", async () => {
    const { missed } = await look(call, (seen) => seen.met >= 3, "messages in time again");
    assert.deepEqual(missed, []);
  });

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});

describe("stills that come late and out of order to the subscriber", () => {
  let call;

  const counted = async () => (await remote(call.viewer.page)).stats;

  before(async () => {
    // Within the budget the server waits for what is on its way.
    call = await stillCall(makeScene({ clip: "d13" }), { serverArgs: ["--no-congestion-control", "--budget", "2s"] });
    await look(call, (seen) => seen.met >= 2, "before stills are late");
    await enhancedAt(call.viewer.page, call.scene.width);
  });

  after(() => call?.close());

  /** Holds all that goes to data channels for up to `ms` until `enough`; no still may be of another frame. */
  async function late(ms, enough, what) {
    const { proxy } = call.server;
    const before = { ...(await counted()), given: await given(call) };
    proxy.hold = (data, up) => (!up && ofDataChannels(data) ? ms * proxy.next() : 0);
    const low = await carried(call, () => look(call, async () => enough(before, { ...(await counted()), given: await given(call) }), what));
    const { anchorsUsed, anchorsLate, anchorsLost, anchorsDuplicate, faults } = await counted();
    console.log(`stills, ${what}: ${told(low)}; ${JSON.stringify({ anchorsUsed, anchorsLate, anchorsLost, anchorsDuplicate })}`);
    assert.deepEqual(low.seen.missed, []);
    assert.equal(faults, 0);
    assert.ok(low.share >= 0.8, told(low));
  }

  test("up to a second: they are used and counted as late, and the low layer goes on", () =>
    late(1000, (before, now) => now.anchorsLate >= before.anchorsLate + 4 && now.given >= before.given + 6, "stills up to a second late"));

  test("the picture that they are used for is the right one", async () => {
    const captured = await capture(call.viewer.page, 3);
    const q = quality(captured, call.scene);
    console.log(`stills, up to a second late: PSNR-Y over ${q.pairs} frames: ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)} dB`);
    assert.deepEqual(numbers(captured.enhanced, call.scene).filter((n) => n < 0), []);
    assert.ok(q.pairs >= 5 && q.enhanced > q.bicubic, JSON.stringify(q));
  });

  test("up to four seconds: most are given up, and the low layer goes on", async () => {
    await late(4000, (before, now) => now.given >= before.given + 8, "stills up to four seconds late");
    assert.notEqual((await remote(call.viewer.page)).state, "native");
  });

  test("in time again they are used again", async () => {
    call.server.proxy.hold = () => 0;
    const { missed } = await look(call, (seen) => seen.met >= 4, "stills in time again");
    assert.deepEqual(missed, []);
  });

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});

describe("a publisher short of CPU time", () => {
  let call;

  before(async () => {
    call = await stillCall(makeScene({ clip: "d13" }));
    await look(call, (seen) => seen.met >= 2, "before it is short");
  });

  after(() => call?.close());

  /** Has the camera's sender say something else than is so: `change` is run with each of its encodings. */
  const report = (change) =>
    withVideo(call.publisher.page, ({ sender }, change) => {
      const apply = (0, eval)(`(${change})`);
      sender.getStats = async () => {
        const stats = new Map(await RTCRtpSender.prototype.getStats.call(sender));
        for (const [id, entry] of stats) if (entry.type === "outbound-rtp") stats.set(id, apply({ ...entry }));
        return stats;
      };
    }, String(change));
  const reportTruly = () => withVideo(call.publisher.page, ({ sender }) => delete sender.getStats);
  const layersOn = () =>
    withVideo(call.publisher.page, ({ sender }) => sender.getParameters().encodings.filter((e) => e.active).map((e) => e.rid).sort());

  for (const [what, change] of [
    ["the browser says so", (entry) => ({ ...entry, qualityLimitationReason: "cpu" })],
    ["its encoders take a whole core", (entry) => ({ ...entry, totalEncodeTime: performance.now() / 1000 })],
  ]) {
    test(`stills yield first when ${what}, the layers stay, and they come back`, async () => {
      await sending(call);
      const layers = await layersOn();
      await report(change);
      const low = await carried(call, () => pausing(call));
      console.log(`stills, ${what}: ${told(low)}`);
      assert.deepEqual(await layersOn(), layers);
      assert.ok(low.share >= 0.8, told(low));
      await reportTruly();
      const { missed } = await look(call, (seen) => seen.met >= 3, `after ${what}`);
      assert.deepEqual(missed, []);
    });
  }

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});

describe("a camera whose size changes", () => {
  let call;

  before(async () => {
    call = await stillCall(makeScene({ clip: "d13" }));
    await look(call, (seen) => seen.met >= 2, "before the size changes");
  });

  after(() => call?.close());

  /** Gives the camera another size and waits for stills of `width` pixels that are of their frames. */
  const resized = async (size, width) => {
    const low = await carried(call, async () => {
      await withVideo(call.publisher.page, (video, size) => video.track.applyConstraints(size), size);
      let before = null;
      return look(call, (seen) => {
        if (before === null && seen.last === width) before = seen.met;
        return before !== null && seen.met >= before + 2;
      }, `a camera of ${size.width}x${size.height}`);
    });
    console.log(`stills, a camera of ${size.width}x${size.height}: ${told(low)}`);
    assert.deepEqual(low.seen.missed, []);
    assert.ok(low.share >= 0.5, told(low));
  };

  test("made smaller: stills follow with the best layer that Chromium still sends", async () => {
    // Of 320x180 Chromium sends one layer alone, a quarter as wide.
    await resized({ width: 320, height: 180 }, 160);
    assert.equal((await remote(call.viewer.page)).rung, "q+");
  });

  test("made larger again: stills are full-size again", async () => {
    await resized({ width: 640, height: 360 }, 640);
    assert.equal((await remote(call.viewer.page)).rung, "h+");
  });

  // Chromium cuts the layers of 480x270 to 240x134.
  test("a height that no layer divides: stills are as large as the layer lets them be", () =>
    resized({ width: 480, height: 270 }, 480));

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});

describe("a shared tab instead of a camera", () => {
  let call;

  before(async () => {
    const browser = { viewport: { width: 640, height: 360 }, args: ["--use-fake-device-for-media-stream=display-media-type=browser"] };
    call = await stillCall(makeScene({ clip: "d13" }), { browser });
    await look(call, (seen) => seen.met >= 2, "the camera");
    // The tab shows numbered pictures from edge to edge, by a camera of its own.
    await call.publisher.page.evaluate(async () => {
      const [camera] = (await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 360 } })).getVideoTracks();
      const film = document.createElement("video");
      Object.assign(film, { srcObject: new MediaStream([camera]), muted: true });
      Object.assign(film.style, { position: "fixed", inset: 0, width: "640px", height: "360px", zIndex: 1_000_000 });
      document.body.append(film);
      await film.play();
      const [tab] = (await navigator.mediaDevices.getDisplayMedia({ video: true })).getVideoTracks();
      window.shared = { film, tab, camera: window.windlass.room.published.find((p) => p.kind === "video").track };
    });
  });

  after(() => call?.close());

  const replaced = (by) => withVideo(call.publisher.page, (video, by) => video.replaceTrack(window.shared[by]), by);

  test("stills follow from the camera to the tab, and are of their frames", async () => {
    await replaced("tab");
    const { missed } = await look(call, (seen) => seen.met >= 4, "a shared tab");
    assert.deepEqual(missed, []);
  });

  test("the low layer has the tab's frame rate", async () => {
    const frames = async () => {
      const shown = await call.publisher.page.evaluate(() => window.shared.film.getVideoPlaybackQuality().totalVideoFrames);
      return { shown, ...(await flow(call)) };
    };
    const from = await frames();
    const to = await until(async () => {
      const now = await frames();
      return now.shown >= from.shown + 90 && now;
    }, "the tab has shown 90 frames", 60_000);
    const [shown, decoded] = [to.shown - from.shown, to.decoded - from.decoded];
    console.log(`stills, a shared tab: it showed ${shown} frames, of which ${decoded} were decoded`);
    assert.ok(decoded >= 0.5 * shown, `${decoded} of ${shown}`);
  });

  test("stills follow back to the camera, and the low layer goes on", async () => {
    await replaced("camera");
    const low = await carried(call, () => look(call, (seen) => seen.met >= 4, "the camera after a shared tab"));
    console.log(`stills, the camera after a shared tab: ${told(low)}`);
    assert.deepEqual(low.seen.missed, []);
    assert.ok(low.share >= 0.8, told(low));
  });

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});
