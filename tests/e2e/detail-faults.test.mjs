// What goes wrong with a detail stream on its way and at its publisher: no anchor shows another frame, and the low layer goes on.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enhancedAt, remote, sleep, until } from "./support/call.mjs";
import { capture, numbers, quality } from "./support/capture.mjs";
import { detailCall, flow, look, paused, sending, stills, withVideo } from "./support/detail.mjs";
import { makeScene } from "./support/scene.mjs";
import { ofDataChannels, ssrcOf } from "./support/udp_proxy.mjs";

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

const detailFrames = async ({ server }) => (await server.metrics()).windlass_sfu_detail_frames_total;

describe("detail packets that come late and out of order to the server", { timeout: 200_000 }, () => {
  let call;

  before(async () => {
    call = await detailCall(makeScene({ clip: "d13", out: "output" }));
    await sending(call.publisher.page);
    await look(call, (seen) => seen.met >= 2, "before packets are held", 40_000);
  });

  after(() => call?.close());

  for (const ms of [80, 2000]) {
    test(`each held for up to ${ms} ms: what is put together shows its own frame, and the low layer goes on`, async () => {
      const { proxy } = call.server;
      const ssrc = await withVideo(call.publisher.page, async (video) => {
        for (const s of (await video.detailSender.getStats()).values()) if (s.type === "outbound-rtp") return s.ssrc;
      });
      const held = proxy.counts.held;
      proxy.hold = (data, up) => (up && ssrcOf(data) === ssrc ? ms * proxy.next() : 0);
      const low = await carried(call, () => look(call, (seen) => seen.met >= 4, `packets held for up to ${ms} ms`));
      proxy.hold = () => 0;
      console.log(`detail, ${proxy.counts.held - held} packets held for up to ${ms} ms: ${told(low)}`);
      assert.ok(proxy.counts.held - held >= 8, "packets were held");
      assert.deepEqual(low.seen.missed, []);
      assert.ok(low.share >= 0.8, told(low));
    });
  }

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});

describe("anchors that come late and out of order to the subscriber", { timeout: 200_000 }, () => {
  let call;

  const counted = async () => (await remote(call.viewer.page)).stats;

  before(async () => {
    // Within the budget the server waits for what is on its way.
    call = await detailCall(makeScene({ clip: "d13", out: "output" }), { serverArgs: ["--no-congestion-control", "--budget-ms", "2000"] });
    await sending(call.publisher.page);
    await look(call, (seen) => seen.met >= 2, "before anchors are late", 40_000);
    await enhancedAt(call.viewer.page, call.scene.width);
  });

  after(() => call?.close());

  /** Holds all that goes to the viewer's data channel for up to `ms` until `enough`; no anchor may show another frame. */
  async function late(ms, enough, what) {
    const { proxy } = call.server;
    const before = { ...(await counted()), frames: await detailFrames(call) };
    proxy.hold = (data, up) => (!up && ofDataChannels(data) ? ms * proxy.next() : 0);
    const low = await carried(call, () =>
      look(call, async () => enough(before, { ...(await counted()), frames: await detailFrames(call) }), what),
    );
    const { anchorsUsed, anchorsLate, anchorsLost, anchorsNeedingWhole, anchorsDuplicate, faults } = await counted();
    console.log(`detail, ${what}: ${told(low)}; ${JSON.stringify({ anchorsUsed, anchorsLate, anchorsLost, anchorsNeedingWhole, anchorsDuplicate })}`);
    assert.deepEqual(low.seen.missed, []);
    assert.equal(faults, 0);
    assert.ok(low.share >= 0.8, told(low));
  }

  test("up to a second: they are used and counted as late, and the low layer goes on", () =>
    late(1000, (before, now) => now.anchorsLate >= before.anchorsLate + 4 && now.frames >= before.frames + 6, "anchors up to a second late"));

  test("the picture that they are used for is the right one", async () => {
    const captured = await capture(call.viewer.page, 3);
    const q = quality(captured, call.scene);
    console.log(`detail, anchors up to a second late: PSNR-Y over ${q.pairs} frames: ${q.enhanced.toFixed(2)} dB, bicubic ${q.bicubic.toFixed(2)} dB`);
    assert.deepEqual(numbers(captured.enhanced, call.scene).filter((n) => n < 0), []);
    assert.ok(q.pairs >= 5 && q.enhanced > q.bicubic, JSON.stringify(q));
  });

  test("up to four seconds: most are given up, and the low layer goes on", async () => {
    await late(4000, (before, now) => now.frames >= before.frames + 8, "anchors up to four seconds late");
    assert.notEqual((await remote(call.viewer.page)).state, "native");
  });

  test("in time again they are used again", async () => {
    call.server.proxy.hold = () => 0;
    const { missed } = await look(call, (seen) => seen.met >= 4, "anchors in time again");
    assert.deepEqual(missed, []);
  });

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});

describe("a publisher short of processor time", { timeout: 200_000 }, () => {
  let call;

  before(async () => {
    call = await detailCall(makeScene({ clip: "d13", out: "output" }));
    await sending(call.publisher.page);
    await look(call, (seen) => seen.met >= 2, "before it is short", 40_000);
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
    test(`detail yields first when ${what}, the layers stay, and it comes back`, async () => {
      await sending(call.publisher.page);
      const layers = await layersOn();
      await report(change);
      const low = await carried(call, async () => {
        const state = await paused(call.publisher.page, "processor");
        const frames = await detailFrames(call);
        await sleep(3000);
        return { state, after: (await detailFrames(call)) - frames };
      });
      console.log(`detail, ${what}: ${JSON.stringify(low.seen)}; ${told(low)}`);
      assert.ok(low.seen.after <= 1, `${low.seen.after} frames after the pause`);
      assert.deepEqual(await layersOn(), layers);
      assert.ok(low.share >= 0.8, told(low));
      await reportTruly();
      await sending(call.publisher.page);
      const { missed } = await look(call, (seen) => seen.met >= 3, `after ${what}`);
      assert.deepEqual(missed, []);
    });
  }

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});

describe("a camera whose size changes", { timeout: 200_000 }, () => {
  let call;

  before(async () => {
    call = await detailCall(makeScene({ clip: "d13", out: "output" }));
    await sending(call.publisher.page);
    await look(call, (seen) => seen.met >= 2, "before the size changes", 40_000);
  });

  after(() => call?.close());

  /** Gives the camera another size and waits for anchors of `width` pixels that meet their frames. */
  const resized = async (size, width, timeoutMs) => {
    const low = await carried(call, async () => {
      await withVideo(call.publisher.page, (video, size) => video.track.applyConstraints(size), size);
      let before = null;
      return look(call, (seen) => {
        if (before === null && seen.last === width) before = seen.met;
        return before !== null && seen.met >= before + 3;
      }, `a camera of ${size.width}x${size.height}`, timeoutMs);
    });
    console.log(`detail, a camera of ${size.width}x${size.height}: ${told(low)}`);
    assert.deepEqual(low.seen.missed, []);
    return low;
  };

  test("made smaller: detail follows with the best layer that Chromium still sends", async () => {
    // Of 320x180 Chromium sends one layer alone, a quarter as wide.
    const low = await resized({ width: 320, height: 180 }, 160);
    assert.ok(low.share >= 0.5, told(low));
    assert.equal((await remote(call.viewer.page)).rung, "q+");
  });

  test("made larger again: detail is full-size again", async () => {
    const low = await resized({ width: 640, height: 360 }, 640);
    assert.ok(low.share >= 0.5, told(low));
    assert.equal((await remote(call.viewer.page)).rung, "h+");
  });

  // Chromium cuts the layers of 480x270 to 240x134: twice that is not the size of the detail stream.
  test("a height that no layer divides: detail that fits no low layer is no longer asked for", async () => {
    await withVideo(call.publisher.page, (video) => video.track.applyConstraints({ width: 480, height: 270 }));
    await until(async () => (await stills(call.publisher.page)).detail === null, "the server asks for none", 60_000);
    const before = await flow(call);
    await until(async () => (await flow(call)).decoded >= before.decoded + 60, "the low layer goes on", 30_000);
  });

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});

describe("a shared tab instead of a camera", { timeout: 200_000 }, () => {
  let call;

  before(async () => {
    const browser = { viewport: { width: 640, height: 360 }, args: ["--use-fake-device-for-media-stream=display-media-type=browser"] };
    call = await detailCall(makeScene({ clip: "d13", out: "output" }), { browser });
    await sending(call.publisher.page);
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
  /** Whether the detail stream is sent of a clone of the tab. */
  const ofTab = () => withVideo(call.publisher.page, (video) => video.detailSender.track?.getSettings().displaySurface === "browser");

  test("detail follows from the camera to the tab, and its anchors meet their frames", async () => {
    await replaced("tab");
    await until(ofTab, "detail is of the tab");
    const { missed } = await look(call, (seen) => seen.met >= 4, "a shared tab");
    assert.deepEqual(missed, []);
  });

  test("the low layer has the tab's frame rate and not that of detail", async () => {
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
    console.log(`detail, a shared tab: it showed ${shown} frames, of which ${decoded} were decoded`);
    assert.ok(decoded >= 0.5 * shown, `${decoded} of ${shown}`);
  });

  test("detail follows back to the camera, and the low layer goes on", async () => {
    await replaced("camera");
    await until(async () => (await stills(call.publisher.page)).detail && !(await ofTab()), "detail is of the camera");
    const low = await carried(call, () => look(call, (seen) => seen.met >= 4, "the camera after a shared tab"));
    console.log(`detail, the camera after a shared tab: ${told(low)}`);
    assert.deepEqual(low.seen.missed, []);
    assert.ok(low.share >= 0.8, told(low));
  });

  test("nothing is written to the console as an error", () => assert.deepEqual(call.errors(), []));
});
