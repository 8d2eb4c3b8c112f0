// The page /demo: a clip through the real server, seen plain and rebuilt side by side, without a camera or a permission.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { barriersOfBoth, sticksOut, tabTo } from "../support/barriers.mjs";
import { openPage } from "../support/browser.mjs";
import { sleep, until } from "../support/call.mjs";
import { firefoxMissing, framesShown, openFirefox } from "../support/firefox.mjs";
import { startServer } from "../support/server.mjs";
import { setUplink } from "../support/show.mjs";
import { skipped } from "../support/skips.mjs";

/** What the page shows and measures now. */
const seen = (page) =>
  page.evaluate(() => {
    const video = document.querySelector("windlass-video");
    const { room, figures, failure } = window.windlassShow;
    const state = video?.getAttribute("state");
    const frames = ["plain", "enhanced"].map((part) => video?.shadowRoot.querySelector(`video.${part}`).getVideoPlaybackQuality().totalVideoFrames ?? 0);
    return { state, frames, split: video?.split, figures, failure, room: room !== null };
  });

/** Mean and deviation of the brightness of both halves of the loupe, at one moment. */
const halves = (page) =>
  page.locator(".loupe canvas").evaluateAll((all) =>
    all.map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const luma = Array.from({ length: data.length / 4 }, (_, p) => (data[4 * p] + data[4 * p + 1] + data[4 * p + 2]) / 3);
      const mean = luma.reduce((a, b) => a + b) / luma.length;
      return { mean, deviation: Math.sqrt(luma.reduce((sum, y) => sum + (y - mean) ** 2, 0) / luma.length) };
    }),
  );

describe("the demonstration", () => {
  let server;
  let tab;

  before(async () => {
    // Neither a camera nor a permission: the page needs none.
    [server, tab] = await Promise.all([startServer({ udpHost: "0.0.0.0" }), openPage({ cameraAllowed: false, viewport: { width: 1280, height: 900 } })]);
  });

  after(async () => {
    await tab?.close();
    await server?.stop();
  });

  test("both halves move within five seconds of the page's load", async () => {
    const { page } = tab;
    const moves = async () => {
      const { state, frames } = await seen(page);
      return state !== "native" && frames.every((count) => count > 5);
    };
    let seconds = Infinity;
    // What else a machine does may make it late once.
    for (let loads = 0; seconds > 5 && loads < 3; loads++) {
      const from = Date.now();
      await page.goto(`${server.url}/demo`);
      await until(moves, "both halves move", 20_000, () => seen(page));
      seconds = (Date.now() - from) / 1000;
      console.log(`demo: both halves moved after ${seconds.toFixed(1)} s`);
    }
    assert.ok(seconds <= 5, `${seconds} s`);
  });

  test("the handle moves, by pointer and by key", async () => {
    const { page } = tab;
    const swayed = async () => Math.abs((await seen(page)).split - 50) > 3;
    await until(swayed, "it sways by itself", 15_000, () => seen(page));
    // The focus stops it.
    await page.locator("windlass-video .divider").focus();
    const stood = (await seen(page)).split;
    await sleep(500);
    assert.equal((await seen(page)).split, stood);
    const box = await page.locator(".scene").boundingBox();
    const at = (part) => [box.x + box.width * part, box.y + box.height / 2];
    await page.mouse.move(...at(stood / 100));
    await page.mouse.down();
    await page.mouse.move(...at(0.25), { steps: 3 });
    await page.mouse.up();
    const { split } = await seen(page);
    assert.ok(Math.abs(split - 25) < 2, `${split} %`);
    await page.keyboard.press("ArrowRight");
    assert.ok(Math.abs((await seen(page)).split - split - 5) < 0.1);
  });

  test("the loupe shows the same place of both halves", async () => {
    const { page } = tab;
    const box = await page.locator(".scene").boundingBox();
    await page.mouse.move(box.x + 0.55 * box.width, box.y + 0.75 * box.height);
    // The clip moves, and one may be a frame behind the other.
    const alike = async () => {
      const [plain, rebuilt] = await halves(page);
      return plain.deviation > 10 && rebuilt.deviation > 10 && Math.abs(plain.mean - rebuilt.mean) < 12;
    };
    await until(alike, "both halves of the loupe show something, and the same", 10_000, () => halves(page));
    const before = await page.locator(".loupe-frame").boundingBox();
    await page.locator(".loupe").focus();
    await page.keyboard.press("ArrowLeft");
    await until(async () => (await page.locator(".loupe-frame").boundingBox()).x < before.x - 5, "the key moves its place");
  });

  test("the page measures what it sends, and that the rebuilt half is closer to the clip", async () => {
    const { page } = tab;
    const measured = async () => {
      const { figures } = await seen(page);
      return figures?.sentKbps < 200 && figures.plain > 25 && figures.rebuilt > figures.plain && figures;
    };
    const { sentKbps, plain, rebuilt } = await until(measured, "the rebuilt half is closer", 15_000, () => seen(page));
    console.log(`demo: ${sentKbps.toFixed(0)} kbit/s, ${plain.toFixed(1)} dB plain, ${rebuilt.toFixed(1)} dB rebuilt`);
    assert.match(await page.locator(".said").innerText(), /Sent: \d+ kbit\/s.*dB closer to the clip/s);
  });

  test("the slider lets more be sent, and takes it down at once", async () => {
    const { page } = tab;
    const sent = async () => (await seen(page)).figures.sentKbps;
    await setUplink(page, 700);
    await until(async () => (await sent()) > 200, "more than 200 kbit/s are sent", 15_000, () => seen(page));
    await setUplink(page, 100);
    const from = Date.now();
    await until(async () => (await sent()) < 130, "less than 130 kbit/s are sent", 6000, () => seen(page));
    console.log(`demo: below 130 kbit/s after ${((Date.now() - from) / 1000).toFixed(1)} s`);
    await sleep(1500);
    const kbps = await sent();
    assert.ok(kbps > 20 && kbps < 140, `${kbps} kbit/s`);
  });

  test("small text is sent instead, and nothing of the clip stays behind", async () => {
    const { page } = tab;
    await setUplink(page, 150);
    await page.getByText("Small text", { exact: true }).click();
    const text = async () => (await halves(page))[0].mean > 190 && (await seen(page)).state !== "native";
    await until(text, "the text is seen, rebuilt", 10_000, () => seen(page));
    assert.equal((await server.metrics()).windlass_sfu_participants, 1);
    await page.screenshot({ path: "output/demo-text.png" });
    assert.deepEqual(tab.errors, []);
  });

  test("axe finds no barrier, in light and dark, and it fits on a phone", async () => {
    const { page } = tab;
    assert.deepEqual(await barriersOfBoth(page), []);
    await page.setViewportSize({ width: 360, height: 740 });
    assert.deepEqual(await sticksOut(page), { scrolls: false, wide: [] });
  });

  test("it speaks German, keeps the handle still for who wants no motion, and Tab leads to handle and slider", async () => {
    const { page } = tab;
    await page.emulateMedia({ reducedMotion: "reduce" });
    await page.goto(`${server.url}/demo?lang=de`);
    assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
    await until(async () => /Gesendet: \d+ kbit\/s/.test(await page.locator(".said").innerText()), "it says what it sends", 20_000, () => seen(page));
    await sleep(500);
    assert.equal((await seen(page)).split, 50);
    await tabTo(page, () => document.activeElement.shadowRoot?.activeElement?.matches(".divider") === true, "the handle");
    await page.keyboard.press("ArrowRight");
    assert.equal((await seen(page)).split, 55);
    await tabTo(page, () => document.activeElement.id === "uplink", "the slider");
    const before = await page.locator("#uplink").inputValue();
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await page.locator("#uplink").inputValue(), before);
    assert.deepEqual(await barriersOfBoth(page), []);
    assert.deepEqual(await sticksOut(page), { scrolls: false, wide: [] });
  });

  const name = "in Firefox both halves move too";
  test(name, { skip: skipped(name, firefoxMissing) }, async () => {
    const firefox = await openFirefox();
    try {
      const { page, errors } = await firefox.newPage();
      const from = Date.now();
      await page.goto(`${server.url}/demo`);
      const moves = async () => {
        const [frames = []] = await framesShown(page);
        const { state } = await seen(page);
        return state !== "native" && frames.length === 2 && frames.every((count) => count > 5);
      };
      await until(moves, "both halves move", 30_000, () => seen(page));
      console.log(`demo: in Firefox both halves moved after ${((Date.now() - from) / 1000).toFixed(1)} s`);
      assert.deepEqual(errors, []);
    } finally {
      await firefox.close();
    }
  });
});
