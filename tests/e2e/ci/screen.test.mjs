// A shared screen beside or without a camera: small print on a narrow uplink, as a reader of letters reads it.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { sleep, subscribe, until } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const OUT = path.resolve("output/screen");
/** What is shared: the whole tab, of this size. */
const SIZE = { width: 1280, height: 720 };
/** Rate of the uplink, kbit/s. */
const UPLINK_KBPS = 150;

const reader = /^eng$/m.test(spawnSync("tesseract", ["--list-langs"], { encoding: "utf8" }).stdout ?? "");
/** Max time until a screen is readable, seconds: twelve on an idle machine. */
const READABLE_S = 40;

const WORDS = `Forwarding units decide which layer goes to whom. A publisher on a narrow uplink sends its smallest layer and,
where the person agreed, a few stills of full size. Each viewer rebuilds the rest: filters enlarge the small picture, and pixels
that were sent before are carried along while nothing moves. Letters stay readable, because they stand still for seconds.
Measured bitrates are those of the network, retransmissions included. Nothing here was typed by hand to suit a reader.`;

/** Fills the page with text of 11 px. */
const fill = (words) => {
  const sheet = document.createElement("pre");
  sheet.id = "sheet";
  sheet.textContent = words;
  Object.assign(sheet.style, {
    position: "fixed", inset: 0, margin: 0, padding: "24px", zIndex: 1_000_000, background: "#fff", color: "#111",
    font: "11px/16px 'DejaVu Sans', sans-serif", whiteSpace: "pre-wrap",
  });
  document.body.append(sheet);
};

/** What a video of the viewer shows at the size of the tab, as PNG. */
const shot = async (page, selector) => {
  const url = await page.locator(`.tile windlass-video[source=screen] ${selector}`).evaluate((video, { width, height }) => {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(video, 0, 0, width, height);
    return canvas.toDataURL("image/png");
  }, SIZE);
  return Buffer.from(url.split(",")[1], "base64");
};

/** Share of the words that are read in a picture. */
function read(name, png) {
  const file = path.join(OUT, `${name}.png`);
  writeFileSync(file, png);
  const large = path.join(OUT, `${name}-large.png`);
  spawnSync("ffmpeg", ["-v", "error", "-y", "-i", file, "-vf", "crop=1280:140:0:0,scale=iw*3:ih*3:flags=bicubic", large]);
  const { stdout } = spawnSync("tesseract", [large, "-", "--psm", "6"], { encoding: "utf8", env: { ...process.env, OMP_THREAD_LIMIT: "1" } });
  const found = new Set(stdout.toLowerCase().match(/[a-z0-9]+/g) ?? []);
  const words = [...new Set(WORDS.toLowerCase().match(/[a-z0-9]+/g))];
  return words.filter((word) => found.has(word)).length / words.length;
}

/** PSNR of the luma of two pictures where the text is, dB. */
function psnr(a, b) {
  const grey = (png) => {
    const { stdout } = spawnSync("ffmpeg", ["-v", "error", "-i", "-", "-vf", "crop=1280:140:0:0", "-f", "rawvideo", "-pix_fmt", "gray", "-"], { input: png, maxBuffer: 1 << 26 });
    return stdout;
  };
  const [x, y] = [grey(a), grey(b)];
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += (x[i] - y[i]) ** 2;
  return 10 * Math.log10((255 * 255 * x.length) / sum);
}

describe("a shared screen", () => {
  let server;
  let publisher;
  let viewer;

  before(async () => {
    mkdirSync(OUT, { recursive: true });
    server = await startServer({ path: {} });
    publisher = await openPage({ viewport: SIZE, args: ["--use-fake-device-for-media-stream=display-media-type=browser"] });
    await publisher.page.goto(`${server.url}/?room=call&name=Ada&auto=1&source=none&detail=1`);
    await until(() => publisher.page.evaluate(() => window.windlass?.phase === "call"), "the publisher joins", 20_000);
    await publisher.page.evaluate(fill, WORDS);
    viewer = await subscribe(server);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  /** What the viewer reads of the tab, and how near its picture is, once it reads most of it or after so many seconds. */
  async function seen(name, seconds) {
    const since = performance.now();
    await viewer.page.locator(".tile windlass-video[source=screen][video=on]").waitFor();
    await viewer.page.evaluate((size) => window.windlass.remoteVideos().find(({ name }) => name === "screen").setView(size), SIZE);
    let found;
    do {
      await sleep(2000);
      found = await look(name);
    } while (found.read < 0.95 && performance.now() - since < 1000 * seconds);
    found.seconds = Math.round((performance.now() - since) / 1000);
    console.log(`screen, ${name}:`, JSON.stringify(found));
    return found;
  }

  async function look(name) {
    const shown = await viewer.page.evaluate(() => {
      const { state, rung } = window.windlass.remoteVideos().find(({ name }) => name === "screen");
      return { state, rung: rung?.rung };
    });
    const png = await shot(viewer.page, shown.state === "native" ? "video.plain" : "video.enhanced");
    return { ...shown, read: read(name, png), db: psnr(png, await publisher.page.screenshot()) };
  }

  const share = () => publisher.page.getByRole("button", { name: "Share screen" }).evaluate((button) => button.click());

  test("is readable within seconds on an uplink of 150 kbit/s, where a camera's layers are not", { skip: skipped("small print", !reader && "no tesseract (apt-get install tesseract-ocr)") }, async () => {
    server.proxy.uplinkKbps = UPLINK_KBPS;
    await publisher.page.evaluate(async () => {
      const { room } = window.windlass;
      window.shared = await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: 15 } });
      [window.sent] = await room.publish(window.shared, { name: "screen", content: "camera", layers: "qhf" });
    });
    const camera = await seen("as-a-camera", 12);
    await publisher.page.evaluate(async () => {
      await window.windlass.room.unpublish(window.sent);
      for (const track of window.shared.getTracks()) track.stop();
    });
    await viewer.page.locator(".tile windlass-video[source=screen]").waitFor({ state: "detached" });
    await share();
    const screen = await seen("as-a-screen", READABLE_S);
    assert.ok(screen.read >= 0.95, `${screen.read} of the words are read`);
    assert.ok(screen.read > camera.read && screen.db >= camera.db + 5, JSON.stringify({ camera, screen }));
    await publisher.page.getByRole("button", { name: "Stop sharing" }).evaluate((button) => button.click());
    await viewer.page.locator(".tile windlass-video[source=screen]").waitFor({ state: "detached" });
  });

  test("has a tile of its own, which says whose screen it is", async () => {
    await share();
    await viewer.page.locator(".tile windlass-video[source=screen][video=on]").waitFor();
    assert.deepEqual(await viewer.page.locator(".tile .name").allTextContents(), ["Ada", "Ada’s screen"]);
    const who = await viewer.page.evaluate(() => window.windlass.room.participants.map((who) => [who.name, who.camera, who.screen?.name]));
    assert.deepEqual(who, [["Ada", null, "screen"]]);
  });

  test("ends with the browser's own button", async () => {
    const button = publisher.page.getByRole("button", { name: "Stop sharing" });
    await button.waitFor({ state: "attached" });
    // What the browser does when its own button is pressed.
    await publisher.page.evaluate(() => {
      const { track } = window.windlass.room.published.find(({ name }) => name === "screen");
      track.stop();
      track.dispatchEvent(new Event("ended"));
    });
    await button.waitFor({ state: "detached" });
    await viewer.page.locator(".tile windlass-video[source=screen]").waitFor({ state: "detached" });
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
