// Camera, microphone and loudspeaker in a call: the light that goes off, another camera, an unplugged one, a permission taken back, and
// sound that waits for a click.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { sleep, until } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";

/** Chromium's second fake camera is one for depth, whose pictures it does not show; the tests do without it. */
const CAMERAS = "--use-fake-device-for-media-stream=device-count=3,fps=10";
/** A page that a test answers for counts as one from elsewhere, which Chromium lets reach no server of this machine. */
const ANY_ADDRESS = "--disable-features=LocalNetworkAccessChecks";
/** A camera that is unmuted must be sent again within this time, … */
const SENT_MS = 1000;
/** … and be seen within this, by the clock of two browsers on a machine that may be busy. */
const SEEN_MS = 3000;

/** In the page, before its scripts: cameras that are `unplugged` are neither listed nor opened. Chromium's always are. */
const unpluggable = () => {
  window.unplugged = new Set();
  const { enumerateDevices, getUserMedia } = MediaDevices.prototype;
  MediaDevices.prototype.enumerateDevices = async function () {
    const devices = await enumerateDevices.call(this);
    return devices.filter(({ deviceId, label }) => label !== "fake_device_1" && !window.unplugged.has(deviceId));
  };
  MediaDevices.prototype.getUserMedia = async function (constraints) {
    const { video } = constraints;
    if (!video || window.unplugged.size === 0) return getUserMedia.call(this, constraints);
    const left = (await this.enumerateDevices()).filter(({ kind }) => kind === "videoinput").map(({ deviceId }) => deviceId);
    if (left.length === 0) throw new DOMException("Requested device not found", "NotFoundError");
    const exact = video.deviceId?.exact ?? left[0];
    if (!left.includes(exact)) throw new OverconstrainedError("deviceId", "");
    return getUserMedia.call(this, { ...constraints, video: { ...video, deviceId: { exact } } });
  };
};

/** In a page of the server: joins the room, with the inputs of this participant. */
const enter = async ({ name }) => {
  const { join } = await import("/windlass-client.js");
  const room = await join(location.href, { room: "devices", name, maxNetwork: "none" });
  const { devices, camera, microphone } = room;
  window.ended = [];
  camera.on("ended", (ended) => window.ended.push(ended));
  Object.assign(window, { room, devices, camera, microphone });
};

/**
 * In the viewer's page: notes each picture that is shown, with its time and the most red in its middle, and what is told of the tracks.
 * Both cameras turn a green circle there; the first one's has some red in it.
 */
const watch = () => {
  window.seen = { added: 0, removed: 0, frames: [], muted: null };
  const { room, seen } = window;
  const canvas = new OffscreenCanvas(32, 18).getContext("2d", { willReadFrequently: true });
  const video = Object.assign(document.createElement("video"), { muted: true, autoplay: true, width: 320, height: 180 });
  document.body.replaceChildren(video);
  const shown = () => {
    canvas.drawImage(video, 0, 0, 32, 18);
    const { data } = canvas.getImageData(13, 6, 6, 6);
    const red = Math.max(...data.filter((_, i) => i % 4 === 0));
    const green = Math.max(...data.filter((_, i) => i % 4 === 1));
    seen.frames.push({ at: performance.timeOrigin + performance.now(), red, green });
    video.requestVideoFrameCallback(shown);
  };
  video.requestVideoFrameCallback(shown);
  const show = (track) => {
    seen.added++;
    if (track.kind !== "video") return;
    track.setView({ width: 320, height: 180 });
    video.srcObject = new MediaStream([track.plain]);
  };
  for (const track of room.tracks) show(track);
  room.on("trackAdded", show);
  room.on("trackRemoved", () => seen.removed++);
  room.on("trackMuted", ({ track, muted }) => {
    if (track.kind === "video") seen.muted = muted;
  });
};

/** A page of the server that is in no call yet. */
async function openAt(server, options) {
  const tab = await openPage({ args: [CAMERAS], ...options });
  await tab.page.goto(`${server.url}/?source=none`);
  return tab;
}

const framesSince = (page, from) => page.evaluate((from) => window.seen.frames.filter(({ at }) => at >= from), from);
const now = (page) => page.evaluate(() => performance.timeOrigin + performance.now());

describe("the devices of a participant", () => {
  let server;
  let publisher;
  let viewer;

  before(async () => {
    server = await startServer({ args: ["--no-congestion-control", "--device=off"] });
    [publisher, viewer] = await Promise.all([openAt(server, { init: unpluggable }), openAt(server)]);
    await publisher.page.evaluate(enter, { name: "Publisher" });
    await viewer.page.evaluate(enter, { name: "Viewer" });
    await viewer.page.evaluate(watch);
  });

  after(async () => {
    await Promise.all([publisher?.close(), viewer?.close()]);
    await server?.stop();
  });

  /** Waits until the viewer sees that camera. In some pictures the circle has only begun; ten are more than a turn of it. */
  const sees = async (camera) => {
    const from = await now(viewer.page);
    const latest = async () => (await framesSince(viewer.page, from)).slice(-15);
    const shows = (frames) => frames.length === 15 && (camera === "first") === frames.some(({ red }) => red > 45);
    await until(async () => shows(await latest()), `the ${camera} camera is seen`, 10_000, latest);
  };
  const added = () => viewer.page.evaluate(() => window.seen.added);
  const camera = () =>
    publisher.page.evaluate(() => {
      const { camera } = window;
      return { muted: camera.muted, active: camera.active, device: camera.device, track: camera.track?.readyState ?? null };
    });
  const cameras = () => publisher.page.evaluate(async () => (await window.devices.list()).cameras);

  test("are listed with their names once one is allowed, and the camera is seen", async () => {
    await publisher.page.evaluate(() => window.camera.start({ publish: { layers: "q" } }));
    await sees("first");
    const listed = await publisher.page.evaluate(() => window.devices.list());
    assert.equal(listed.cameras.length, 2);
    assert.ok(listed.cameras.every(({ id, label }) => id !== "" && label !== ""), JSON.stringify(listed.cameras));
    assert.ok(listed.microphones.length > 0);
    assert.deepEqual((await camera()).device, { id: listed.cameras[0].id, label: listed.cameras[0].label });
  });

  test("a muted camera's light is off at once and nothing is seen; it is back within a second", async () => {
    const dark = await publisher.page.evaluate(() => {
      const { track } = window.camera;
      window.camera.setMuted(true);
      return track.readyState;
    });
    assert.equal(dark, "ended");
    await until(() => viewer.page.evaluate(() => window.seen.muted === true), "the viewer is told");
    await sleep(500);
    const from = await now(viewer.page);
    await sleep(1000);
    assert.deepEqual(await framesSince(viewer.page, from), []);
    const asked = await now(publisher.page);
    await publisher.page.evaluate(() => window.camera.setMuted(false));
    const opened = await now(publisher.page);
    const [first] = await until(async () => {
      // Black ones would be those of a muted track.
      const frames = (await framesSince(viewer.page, asked)).filter(({ green }) => green > 60);
      return frames.length > 0 && frames;
    }, "the picture is back");
    console.log(`devices: sent again ${Math.round(opened - asked)} ms after the camera was unmuted, seen after ${Math.round(first.at - asked)} ms`);
    assert.ok(opened - asked <= SENT_MS && first.at - asked <= SEEN_MS, `sent after ${opened - asked}, seen after ${first.at - asked} ms`);
    assert.equal(await viewer.page.evaluate(() => window.seen.muted), false);
    assert.equal(await added(), 1);
  });

  test("of many calls to mute the last one holds, here and at the viewer", async () => {
    await publisher.page.evaluate(() => Promise.all([true, false, true, false, true].map((muted) => window.camera.setMuted(muted))));
    await until(() => viewer.page.evaluate(() => window.seen.muted === true), "the viewer is told");
    assert.deepEqual([(await camera()).muted, (await camera()).track], [true, null]);
    await publisher.page.evaluate(() => Promise.all([false, true, false].map((muted) => window.camera.setMuted(muted))));
    await sees("first");
    assert.equal(await viewer.page.evaluate(() => window.seen.muted), false);
  });

  test("another camera is seen by the same track", async () => {
    const [first, second] = await cameras();
    await publisher.page.evaluate((id) => window.camera.switchTo(id), second.id);
    await sees("second");
    assert.equal((await camera()).device.id, second.id);
    await publisher.page.evaluate(() => window.camera.flip());
    await sees("first");
    assert.equal((await camera()).device.id, first.id);
    assert.deepEqual([await added(), await viewer.page.evaluate(() => window.seen.removed)], [1, 0]);
  });

  /** Takes away the camera that is sent: the browser ends its track, and lists it no more. */
  const unplug = () =>
    publisher.page.evaluate(() => {
      const { track, device } = window.camera;
      window.unplugged.add(device.id);
      track.stop();
      track.dispatchEvent(new Event("ended"));
      navigator.mediaDevices.dispatchEvent(new Event("devicechange"));
      return device.id;
    });

  test("an unplugged camera gives way to the other one; after that one the call goes on without, until one is back", async () => {
    const [first, second] = await cameras();
    assert.equal(await unplug(), first.id);
    await sees("second");
    const ended = () => publisher.page.evaluate(() => window.ended);
    assert.deepEqual(await ended(), [{ cause: "unplugged", replacedBy: { id: second.id, label: second.label } }]);
    assert.equal(await unplug(), second.id);
    await until(() => viewer.page.evaluate(() => window.seen.muted === true), "the viewer is told that there is no picture");
    assert.deepEqual((await ended()).at(-1), { cause: "unplugged", replacedBy: null });
    assert.equal((await camera()).muted, true);
    await publisher.page.evaluate((id) => {
      window.unplugged.delete(id);
      navigator.mediaDevices.dispatchEvent(new Event("devicechange"));
    }, first.id);
    await sees("first");
    assert.equal(await viewer.page.evaluate(() => window.seen.muted), false);
    assert.deepEqual([await added(), await viewer.page.evaluate(() => window.seen.removed)], [1, 0]);
  });

  test("the level of the microphone follows what is heard, and is 0 while it is muted", async () => {
    await publisher.page.evaluate(async () => {
      window.levels = [];
      window.microphone.on("level", (level) => window.levels.push(level));
      await window.microphone.start();
    });
    // The fake microphone beeps once a second.
    await until(() => publisher.page.evaluate(() => Math.max(...window.levels) > 0.3), "a beep is measured", 5000, () => publisher.page.evaluate(() => window.levels));
    const muted = await publisher.page.evaluate(async () => {
      await window.microphone.setMuted(true);
      return { level: window.microphone.level, open: window.microphone.track.readyState, enabled: window.microphone.track.enabled };
    });
    assert.deepEqual(muted, { level: 0, open: "live", enabled: false });
    await publisher.page.evaluate(() => window.microphone.setMuted(false));
  });

  test("sound is played on the chosen loudspeaker", async () => {
    const { id, sink, speaker } = await publisher.page.evaluate(async () => {
      const audio = document.createElement("audio");
      window.devices.followSpeaker(audio);
      const { id } = (await window.devices.list()).speakers.at(-1);
      await window.devices.setSpeaker(id);
      return { id, sink: audio.sinkId, speaker: window.devices.speaker };
    });
    assert.deepEqual([sink, speaker], [id, id]);
    const code = await publisher.page.evaluate(() => window.devices.setSpeaker("none such").then(() => "done", (error) => error.code));
    assert.equal(code, "device_missing");
  });

  test("what is stopped is dark and gone", async () => {
    const dark = await publisher.page.evaluate(async () => {
      const tracks = [window.camera.track, window.microphone.track];
      await Promise.all([window.camera.stop(), window.microphone.stop()]);
      return tracks.map(({ readyState }) => readyState);
    });
    assert.deepEqual(dark, ["ended", "ended"]);
    await until(() => viewer.page.evaluate(() => window.room.tracks.length === 0), "the viewer sees nobody");
  });

  test("nothing is written to the console as an error", () => {
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});

describe("a device that may not be used", () => {
  let server;

  before(async () => {
    server = await startServer({ args: ["--device=off"] });
  });

  after(() => server?.stop());

  const start = (page) => page.evaluate(() => window.camera.start({ publish: { layers: "q" } }).then(() => "done", ({ code, hint }) => `${code}: ${hint}`));

  test("by the person", async () => {
    const tab = await openAt(server, { cameraAllowed: false });
    await tab.page.evaluate(enter, { name: "Denied" });
    assert.match(await start(tab.page), /^permission_denied: .*before the address/);
    await tab.close();
  });

  test("by the page's policy", async () => {
    const tab = await openPage({ args: [CAMERAS, ANY_ADDRESS] });
    await tab.page.route((url) => url.pathname === "/", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), "permissions-policy": "camera=()" } });
    });
    await tab.page.goto(`${server.url}/?source=none`);
    await tab.page.evaluate(enter, { name: "Blocked" });
    assert.match(await start(tab.page), /^permission_blocked: .*Permissions-Policy/);
    await tab.close();
  });

  test("any more, as the permission was taken back", async () => {
    const tab = await openAt(server, { cameraAllowed: false });
    const context = tab.page.context();
    await context.grantPermissions(["camera"]);
    await tab.page.evaluate(enter, { name: "Revoked" });
    assert.equal(await start(tab.page), "done");
    await context.clearPermissions();
    await until(() => tab.page.evaluate(() => window.ended.length > 0), "the camera has ended");
    assert.deepEqual(await tab.page.evaluate(() => window.ended), [{ cause: "revoked", replacedBy: null }]);
    assert.equal(await tab.page.evaluate(() => window.camera.muted), true);
    await tab.close();
  });
});

describe("a call that is left while its devices open", () => {
  test("leaves no camera and no microphone open", async () => {
    const server = await startServer({ args: ["--device=off"] });
    const tab = await openAt(server);
    try {
      await tab.page.evaluate(async () => {
        window.opened = [];
        const { getUserMedia } = MediaDevices.prototype;
        MediaDevices.prototype.getUserMedia = async function (...args) {
          const stream = await getUserMedia.apply(this, args);
          window.opened.push(...stream.getTracks());
          return stream;
        };
        const { join } = await import("/windlass-client.js");
        const call = await join(location.href, { room: "short", name: "Ada", camera: true, microphone: true });
        call.leave();
      });
      const ended = () => tab.page.evaluate(() => window.opened.length === 2 && window.opened.every(({ readyState }) => readyState === "ended"));
      await until(ended, "both are closed", 10_000);
      assert.deepEqual(tab.errors, []);
    } finally {
      await tab.close();
      await server.stop();
    }
  });
});

/** In the page, before its scripts: an element that plays a sound, and writes to the console when it is blocked and when it is not. */
const sound = () =>
  addEventListener("DOMContentLoaded", async () => {
    await import("/windlass-client.js");
    const element = document.createElement("windlass-video");
    element.addEventListener("soundblocked", () => console.log("blocked"));
    element.addEventListener("soundplaying", () => console.log("free"));
    document.body.replaceChildren(element);
    [element.sound] = new AudioContext().createMediaStreamDestination().stream.getAudioTracks();
  });

describe("sound that the browser blocks", () => {
  let server;
  let tab;

  before(async () => {
    server = await startServer({ args: ["--device=off"] });
    tab = await openPage({ args: ["--autoplay-policy=document-user-activation-required"] });
  });

  after(async () => {
    await tab?.close();
    await server?.stop();
  });

  // What a test evaluates in a page counts as a gesture: nothing is, before the sound was blocked.
  for (const [what, gesture] of [
    ["is heard after a click anywhere", (page) => page.mouse.click(5, 5)],
    ["is heard after a key", (page) => page.keyboard.press("a")],
    ["is heard after the element's own button", (page) => page.getByRole("button", { name: "Click to hear" }).click()],
  ]) {
    test(what, async () => {
      const { page, closePage } = await tab.newPage({ init: sound });
      const said = (text) => page.waitForEvent("console", { predicate: (message) => message.text() === text });
      const blocked = said("blocked");
      await page.goto(`${server.url}/?source=none`);
      await blocked;
      await Promise.all([said("free"), gesture(page)]);
      assert.equal(await page.locator("windlass-video").getAttribute("sound"), "on");
      assert.equal(await page.locator("windlass-video audio").evaluate((audio) => audio.paused), false);
      await closePage();
    });
  }
});
