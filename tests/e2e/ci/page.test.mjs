// The demo page: alone and in a call, what each failure says, and what remains when a part of the browser is missing.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { enhanced, nativeFrames, remote, subscribe, until } from "../support/call.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { standing } from "../support/standing.mjs";

const OUT = "output/page";
/** The tile of the one who sends a picture. */
const TILE = '.tile[data-video="on"]';
const PLAIN = `${TILE} video.plain`;
const ENHANCED = `${TILE} video.enhanced`;

/** What an element of the page says; empty while it is hidden. */
const text = (page, selector) => page.locator(`${selector}:visible`).first().innerText({ timeout: 1000 }).catch(() => "");

/** Waits until an element of the page says something that matches. */
const says = (page, selector, pattern, timeoutMs) =>
  until(
    async () => {
      const said = await text(page, selector);
      if (!pattern.test(said)) throw new Error(`“${said}”`);
      return said;
    },
    `${selector} says ${pattern}`,
    timeoutMs,
  );

/** Size, mean and deviation of the luma of what a video element shows. */
function picture(page, selector) {
  // A locator also finds what is in the shadow of an element.
  return page.locator(selector).first().evaluate((video) => {
    const { videoWidth: width, videoHeight: height } = video;
    if (width === 0) return { width, height, mean: 0, deviation: 0 };
    const context = new OffscreenCanvas(64, 36).getContext("2d");
    context.drawImage(video, 0, 0, 64, 36);
    const { data } = context.getImageData(0, 0, 64, 36);
    const luma = Array.from({ length: 64 * 36 }, (_, i) => 0.3 * data[4 * i] + 0.6 * data[4 * i + 1] + 0.1 * data[4 * i + 2]);
    const mean = luma.reduce((a, b) => a + b) / luma.length;
    const deviation = Math.sqrt(luma.reduce((sum, y) => sum + (y - mean) ** 2, 0) / luma.length);
    return { width, height, mean, deviation };
  });
}

/** Waits until a video element shows something that is neither black nor flat, and gives its size. */
const shows = (page, selector) =>
  until(
    async () => {
      const found = await picture(page, selector);
      if (found.mean < 20 || found.deviation < 8) throw new Error(JSON.stringify(found));
      return found;
    },
    `${selector} shows a picture`,
    20_000,
  );

/** Waits until `read` gives a number that is greater by `by` than it was. */
async function grows(read, by, what) {
  const from = await read();
  await until(async () => (await read()) >= from + by, `${what} grows by ${by} from ${from}`);
}

/** The rows of the first tile's figures, by their names. */
const figures = (page) =>
  page.evaluate(() => {
    const words = (tag) => [...document.querySelectorAll(`.tile .facts ${tag}`)].map((e) => e.textContent);
    const values = words("dd");
    return Object.fromEntries(words("dt").map((name, i) => [name, values[i]]));
  });

describe("the demo page", () => {
  let server;
  let scene;
  /** A browser with a camera. */
  let publisher;
  /** A browser whose pages only watch. */
  let viewer;

  before(async () => {
    scene = makeScene(fewFrames);
    server = await startServer();
    [publisher, viewer] = await Promise.all([openPage({ camera: scene.file }), openPage()]);
  });

  after(async () => {
    await Promise.all([publisher?.close(), viewer?.close()]);
    await server?.stop();
  });

  describe("alone", () => {
    let page;

    before(async () => {
      ({ page } = publisher);
      await page.goto(`${server.url}/?name=Ada&auto=1&loopback=1&layers=qh`);
      await enhanced(page);
    });

    test("one's own low layer is shown plain and, larger, enhanced", async () => {
      const [plain, better] = [await shows(page, PLAIN), await shows(page, ENHANCED)];
      assert.deepEqual([plain.width, plain.height], [scene.width / 4, scene.height / 4]);
      // Two or four times as large, as the machine is fast.
      assert.ok([2, 4].some((scale) => better.width === scale * plain.width && better.height === scale * plain.height), JSON.stringify(better));
      assert.equal(await page.locator(".tile windlass-video").getAttribute("view"), "split");
    });

    test("either side of the divider says what it is and how large", async () => {
      const size = async (selector) => {
        const { width, height } = await shows(page, selector);
        return `${width}×${height}`;
      };
      await says(page, "[slot=left]", new RegExp(`^Plain\\s+${await size(PLAIN)}, enlarged by the browser$`));
      await says(page, "[slot=right]", new RegExp(`^Rebuilt.*\\s+${await size(ENHANCED)}$`));
    });

    test("the tile fills the screen, and goes back", async () => {
      const full = () => page.evaluate(() => document.fullscreenElement === document.querySelector(".tile"));
      const button = page.getByRole("button", { name: /^Full screen/ });
      await button.click();
      await until(full, "the tile fills the screen");
      await button.click();
      await until(async () => !(await full()), "the tile is back in the page");
    });

    test("the divider moves by keyboard and by pointer", async () => {
      const divider = page.getByRole("slider");
      const at = async () => Number(await divider.getAttribute("aria-valuenow"));
      await divider.focus();
      await page.keyboard.press("ArrowRight");
      assert.equal(await at(), 55);
      await page.keyboard.press("Home");
      assert.equal(await at(), 0);
      await page.keyboard.press("End");
      assert.equal(await at(), 100);
      await page.keyboard.press("ArrowLeft");
      const box = await divider.boundingBox();
      const stage = await page.locator(".stage").boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 3);
      await page.mouse.down();
      await page.mouse.move(stage.x + stage.width / 4, box.y + box.height / 3, { steps: 3 });
      await page.mouse.up();
      assert.equal(await at(), 25);
    });

    test("the figures tell rung, sizes, rates and latency", async () => {
      const rows = await until(async () => {
        const found = await figures(page);
        return Number.parseFloat(found.Anchors) > 0 && found.Rung === "q+" && found;
      }, "figures of q+ with anchors");
      const expected = {
        Size: /^160×90 → (320×180|640×360)$/,
        "Shown / enhanced": /^\d+ \/ \d+ fps$/,
        "Video + anchors": /^\d+ \+ \d+ kbit\/s$/,
        Anchors: /^\d+\.\d \/s$/,
        "Anchor p50 / p95": /^[\d.]+ \/ [\d.]+ ms$/,
      };
      for (const [name, pattern] of Object.entries(expected)) assert.match(rows[name] ?? "", pattern, name);
    });

    test("the switch shows the plain picture only, and all of the enhanced one", async () => {
      const opacity = () => page.locator(ENHANCED).evaluate((e) => getComputedStyle(e).opacity);
      await page.getByRole("button", { name: "Plain", exact: true }).click();
      await until(async () => (await opacity()) === "0", "the enhanced picture is hidden");
      await page.getByRole("button", { name: "Enhanced", exact: true }).click();
      assert.equal(await page.getByRole("slider").isVisible(), false);
    });

    test("nothing is written to the console as an error", () => assert.deepEqual(publisher.errors, []));
  });

  describe("a video file as the camera", () => {
    test("is played to the server and comes back", async () => {
      mkdirSync(OUT, { recursive: true });
      const file = path.resolve(OUT, "camera.webm");
      const source = "testsrc2=size=640x360:rate=15:duration=1";
      const made = spawnSync("ffmpeg", ["-v", "error", "-y", "-f", "lavfi", "-i", source, "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", file]);
      assert.equal(made.status, 0, `${made.stderr}`);
      const tab = await viewer.newPage();
      await tab.page.goto(`${server.url}/?name=File&source=none`);
      await tab.page.getByLabel("Video file").check();
      await tab.page.locator("input[type=file]").setInputFiles(file);
      await tab.page.getByRole("button", { name: "Try it alone" }).click();
      await until(() => tab.page.evaluate(() => window.windlass.phase === "call"), "the call begins");
      assert.equal((await shows(tab.page, PLAIN)).width, 160);
      await grows(() => nativeFrames(tab.page), 20, "the count of frames");
      await tab.closePage();
    });

    test("that is no video is refused in words", async () => {
      const tab = await viewer.newPage();
      await tab.page.goto(`${server.url}/?name=File&source=none`);
      await tab.page.getByLabel("Video file").check();
      await tab.page.locator("input[type=file]").setInputFiles({ name: "notes.mp4", mimeType: "video/mp4", buffer: Buffer.from("no video") });
      await says(tab.page, ".problem", /“notes\.mp4” cannot be played\. Choose another video/);
      await tab.closePage();
    });
  });

  describe("what keeps one from joining is said", () => {
    const refusedBy = (name) => `navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("", "${name}"))`;

    test("no permission for the camera", async () => {
      const denied = await openPage({ cameraAllowed: false });
      await denied.page.goto(`${server.url}/?room=denied&name=Ada&auto=1`);
      await says(denied.page, ".problem", /may not use your camera.*Allow camera for this page/);
      assert.equal(await denied.page.evaluate(() => window.windlass.phase), "start");
      await denied.close();
    });

    for (const { name, pattern } of [
      { name: "NotAllowedError", pattern: /may not use your camera/ },
      { name: "NotFoundError", pattern: /no camera on this machine.*join without a camera/ },
      { name: "NotReadableError", pattern: /camera does not start.*Close other programs/ },
    ]) {
      test(`the camera answers ${name}`, async () => {
        const tab = await viewer.newPage({ init: refusedBy(name) });
        await tab.page.goto(`${server.url}/?room=none&name=Ada&auto=1`);
        await says(tab.page, ".problem", pattern);
        await tab.closePage();
      });
    }

    test("no VP9", async () => {
      const tab = await viewer.newPage({ init: "RTCRtpReceiver.getCapabilities = () => ({ codecs: [], headerExtensions: [] })" });
      await tab.page.goto(`${server.url}/?room=none&name=Ada&auto=1&source=none`);
      await says(tab.page, ".problem", /cannot join.*current Chrome/);
      assert.equal((await tab.page.evaluate(() => window.windlass.failure)).code, "no_codec");
      await tab.closePage();
    });

    test("a full room, and later a server that is gone", async (t) => {
      const small = await startServer({ args: ["--max-participants", "1"] });
      t.after(() => small.stop());
      const inside = await viewer.newPage();
      await inside.page.clock.install(); // to pass the waits between attempts
      await inside.page.goto(`${small.url}/?room=small&name=First&auto=1&source=none`);
      await until(() => inside.page.evaluate(() => window.windlass.phase === "call"), "the first is in");
      const outside = await viewer.newPage();
      await outside.page.goto(`${small.url}/?room=small&name=Second&auto=1&source=none`);
      await says(outside.page, ".problem", /^The room is full\. \S/);
      assert.equal((await outside.page.evaluate(() => window.windlass.failure)).code, "room_full");

      await small.stop();
      await says(inside.page, ".banner", /\. Reconnecting.*… Stay on this page/);
      await outside.page.getByRole("button", { name: /Join the call/ }).click();
      await says(outside.page, ".problem", /server does not answer.*Check your connection/);
      await until(async () => {
        await inside.page.clock.runFor(9000);
        return inside.page.evaluate(() => window.windlass.phase === "over");
      }, "the page gives up");
      assert.equal(await text(inside.page, ".over h1"), "The server does not answer");
      assert.match(await text(inside.page, ".over p"), /Check your connection/);
      await Promise.all([inside.closePage(), outside.closePage()]);
    });
  });

  describe("a call of two", () => {
    /** Lets a test close the page's sockets, and keeps what its banner says. */
    const init = () => {
      window.sockets = [];
      window.WebSocket = class extends WebSocket {
        constructor(...args) {
          super(...args);
          window.sockets.push(this);
        }
      };
      window.said = [];
      addEventListener("DOMContentLoaded", () => {
        new MutationObserver(() => {
          const banner = document.querySelector(".banner:not([hidden])");
          if (banner !== null) window.said.push(banner.textContent);
        }).observe(document.body, { subtree: true, childList: true, attributes: true });
      });
    };
    let page;
    let watching;

    before(async () => {
      const [, watcher] = await Promise.all([
        publisher.page.goto(`${server.url}/?room=call&name=Publisher&auto=1&layers=qh`),
        subscribe(server, { browser: viewer, init, query: "&figures=1" }),
      ]);
      watching = watcher;
      ({ page } = watcher);
      await enhanced(page);
    });

    test("the enhanced picture is shown, and the tile says whose it is", async () => {
      await until(async () => (await picture(page, ENHANCED)).width === scene.width, "pictures of full size", 25_000);
      await shows(page, ENHANCED);
      assert.equal(await text(page, ".tile .name"), "Publisher");
      // A machine with other work may say in between that it shows the plain picture: with the enhanced one nothing is said.
      const noted = () =>
        page.evaluate(() => ({
          state: document.querySelector(".tile windlass-video").getAttribute("state"),
          notice: document.querySelector(".tile .notice").textContent,
        }));
      const { notice } = await until(
        async () => {
          const now = await noted();
          return now.state === "enhanced" && now;
        },
        "the enhanced picture",
        25_000,
      );
      assert.equal(notice, "");
    });

    test("the other is heard", async () => {
      const bytes = () =>
        page.evaluate(async () => {
          for (const s of (await window.windlass.room.connectionStats()).values()) {
            if (s.type === "inbound-rtp" && s.kind === "audio") return s.bytesReceived;
          }
          return 0;
        });
      await grows(bytes, 1000, "the sound received");
      const playing = await page.locator(".tile audio").evaluate((a) => a.srcObject !== null && !a.paused);
      assert.ok(playing, "the sound is not played");
    });

    test("a muted microphone and camera are seen", async () => {
      const press = (name) => publisher.page.getByRole("button", { name }).click();
      await press(/^Microphone: on/);
      await page.locator(".tile .silent").waitFor({ state: "visible" });
      await press(/^Microphone: off/);
      await page.locator(".tile .silent").waitFor({ state: "hidden" });
      await press(/^Camera: on/);
      await page.locator('.tile[data-video="off"] .avatar').waitFor({ state: "visible" });
      await press(/^Camera: off/);
      await page.locator('.tile[data-video="on"]').waitFor();
      await enhanced(page);
    });

    test("after a lost socket the call is back by itself, enhanced again", async () => {
      await page.evaluate(() => window.sockets.at(-1).close());
      await until(() => page.evaluate(() => window.said.some((s) => /connection .* was lost\. Reconnecting/.test(s))), "the page says so");
      await until(() => page.evaluate(() => window.said.includes("Connected again.")), "the page is back", 30_000);
      await enhanced(page);
      await grows(() => nativeFrames(page), 20, "the count of frames");
      assert.equal(await page.locator(".tile").count(), 1);
    });

    test("without its decoder the page shows the native picture, and says so", async () => {
      const broken = () => {
        const real = window.fetch;
        window.fetch = (url, ...rest) =>
          `${url}`.endsWith("/windlass.wasm") ? Promise.resolve(new Response("rubbish")) : real(url, ...rest);
      };
      const tab = await subscribe(server, { browser: viewer, name: "Broken", init: broken, query: "&figures=1" });
      await shows(tab.page, PLAIN);
      await says(tab.page, ".notice", /^Plain picture: the decoder for enhancement did not load$/);
      const darkest = await tab.page.locator(`${TILE} .stage`).evaluate(async (stage) => {
        // What lies on top must be the native picture, in every frame.
        const [plain, better] = stage.querySelectorAll("video");
        const context = new OffscreenCanvas(16, 9).getContext("2d", { willReadFrequently: true });
        let darkest = 255;
        for (let i = 0; i < 20; i++) {
          await new Promise((r) => plain.requestVideoFrameCallback(r));
          if (getComputedStyle(better).opacity !== "0") return "covered";
          context.drawImage(plain, 0, 0, 16, 9);
          const { data } = context.getImageData(0, 0, 16, 9);
          darkest = Math.min(darkest, data.reduce((a, b) => a + b) / data.length);
        }
        return darkest;
      });
      assert.ok(darkest > 80, `${darkest}`); // alpha alone gives 64
      await tab.closePage();
    });

    for (const output of ["canvas", "post"]) {
      test(`output=${output}: pictures arrive`, async () => {
        const tab = await subscribe(server, { browser: viewer, name: output, query: `&output=${output}` });
        await enhanced(tab.page);
        const { width } = await shows(tab.page, ENHANCED);
        assert.equal(width, (await picture(tab.page, PLAIN)).width * 2);
        const shown = () => tab.page.locator(ENHANCED).evaluate((video) => video.getVideoPlaybackQuality().totalVideoFrames);
        await grows(shown, 15, "the count of enhanced pictures");
        assert.deepEqual(tab.errors, []);
        await tab.closePage();
      });
    }

    test("people with cameras come and go, and the call goes on", async () => {
      for (let round = 0; round < 3; round++) {
        const third = await publisher.newPage();
        await third.page.goto(`${server.url}/?room=call&name=Third&auto=1&layers=q`);
        for (const other of [publisher.page, page]) {
          await until(() => other.evaluate(() => window.windlass.remoteVideos().length > 0), "the third is received");
        }
        await shows(publisher.page, PLAIN);
        await third.closePage();
        await publisher.page.locator('.tile[aria-label="Third"]').waitFor({ state: "detached" });
      }
      assert.equal(await publisher.page.evaluate(() => window.windlass.phase), "call");
    });

    test("a publisher limited to its smallest layer is seen as q+", async () => {
      await until(async () => (await remote(page)).rung.startsWith("h"), "the half layer", 25_000);
      await publisher.page.getByRole("button", { name: "More" }).click();
      await publisher.page.getByRole("menuitem", { name: "Settings" }).click();
      await publisher.page.getByLabel("Sending").selectOption({ label: "Very weak" });
      await publisher.page.keyboard.press("Escape");
      const state = () => standing(server, publisher, { page });
      await until(async () => (await remote(page)).rung === "q+", "the rung is q+", 25_000, state);
      await enhanced(page);
      await until(async () => (await picture(page, ENHANCED)).width === scene.width / 2, "pictures of half size");
      assert.equal(await text(page, ".tile .badge"), "q+");
    });

    test("who leaves is gone from the page of the other", async () => {
      await publisher.page.getByRole("button", { name: "Leave" }).click();
      assert.equal(await text(publisher.page, ".over h1"), "You have left the call");
      await page.locator(".tile").waitFor({ state: "detached" });
      assert.equal(await text(page, ".empty h2"), "You are the only one here");
    });

    test("nothing is written to the console as an error", () => assert.deepEqual([...publisher.errors, ...watching.errors], []));
  });
});
