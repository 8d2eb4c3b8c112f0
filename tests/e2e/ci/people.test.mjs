// The demo page as people use it: what they see of themselves before a call, devices, layouts, keys, languages, phones, screen readers.
//
// Runs first, beside any file.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { barriers, barriersOfBoth, sticksOut, tabTo } from "../support/barriers.mjs";
import { openPage } from "../support/browser.mjs";
import { until } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";

const texts = (language) => JSON.parse(readFileSync(new URL(`../../../client-web/src/demo/messages/${language}.json`, import.meta.url), "utf8"));
/** What makes a call of several people on a machine that has other things to do. */
const SMALL = "layers=q&maxNetwork=none";
const PHONE = { width: 360, height: 740 };
const USUAL = { width: 1280, height: 800 };

/** In the page, before its scripts: Chromium's second fake camera is one for depth, whose pictures it does not show. */
const twoCameras = () => {
  const { enumerateDevices } = MediaDevices.prototype;
  MediaDevices.prototype.enumerateDevices = async function () {
    return (await enumerateDevices.call(this)).filter(({ label }) => label !== "fake_device_1");
  };
};

/** In the page: keeps everything that is announced. */
const listen = () => {
  window.announced = [];
  const note = () => {
    const said = [...document.querySelectorAll(".announcer p")].map(({ textContent }) => textContent);
    window.announced.push(...said.filter((text) => !window.announced.includes(text)));
  };
  new MutationObserver(note).observe(document, { childList: true, subtree: true });
};

const phase = (page) => page.evaluate(() => window.windlass?.phase);
const inCall = (page, who) => until(async () => (await phase(page)) === "call", `${who} is in the call`, 20_000);
const named = (page, name, role = "button") => page.getByRole(role, { name });

describe("the demo page for people", () => {
  let server;
  /** Ana has two cameras and joins by hand. */
  let ana;
  /** The others join by their addresses. */
  let bo;
  let cy;

  before(async () => {
    server = await startServer({ args: ["--device=off", "--no-congestion-control"] });
    ana = await openPage({ args: ["--use-fake-device-for-media-stream=device-count=3,fps=10"], init: twoCameras });
  });

  after(async () => {
    await ana?.close();
    await server?.stop();
  });

  const join = async (name, source = "camera") => {
    const tab = await ana.newPage({ init: listen });
    await tab.page.goto(`${server.url}/?room=tea&name=${name}&auto=1&source=${source}&${SMALL}`);
    await inCall(tab.page, name);
    return tab;
  };

  describe("before a call", () => {
    const preview = () =>
      ana.page.evaluate(() => {
        const element = document.querySelector(".preview windlass-video");
        return { label: element.track?.label, time: element.shadowRoot.querySelector("video.plain").currentTime };
      });

    test("one sees oneself and the level of the microphone, at once where both are allowed", async () => {
      await ana.page.context().grantPermissions(["camera", "microphone"]);
      await ana.page.goto(`${server.url}/?room=tea&${SMALL}`);
      const { time } = await until(async () => (await preview()).time > 0 && preview(), "the preview begins");
      await until(async () => (await preview()).time > time, "the preview moves");
      const level = async () => Number(await named(ana.page, "Level of your microphone", "meter").getAttribute("aria-valuenow"));
      // The fake microphone beeps once a second.
      await until(async () => (await level()) > 20, "the meter moves");
    });

    test("the pickers switch camera, microphone and loudspeaker", async () => {
      const first = (await preview()).label;
      const cameras = ana.page.getByLabel("Choose the camera").locator("option");
      assert.equal(await cameras.count(), 2);
      await ana.page.getByLabel("Choose the camera").selectOption({ index: 1 });
      await until(async () => ![first, undefined].includes((await preview()).label), "the other camera is seen");
      assert.equal((await preview()).label, await cameras.nth(1).innerText());
      const kept = () => ana.page.evaluate(() => JSON.parse(localStorage.getItem("windlass")));
      for (const kind of ["microphone", "loudspeaker"]) {
        const select = ana.page.getByLabel(`Choose the ${kind}`);
        await select.selectOption({ index: (await select.locator("option").count()) - 1 });
        const chosen = await select.inputValue();
        await until(async () => (await kept())?.[kind === "microphone" ? kind : "speaker"] === chosen, `the ${kind} is remembered`);
      }
    });

    test("a camera that is switched off is dark, and is on again", async () => {
      await named(ana.page, /^Camera: on/).click();
      await until(async () => (await preview()).label === undefined, "the camera is closed");
      await ana.page.getByText("Your camera is off.").waitFor();
      await named(ana.page, /^Camera: off/).click();
      await until(async () => (await preview()).label !== undefined, "the camera is back");
    });

    test("axe finds no barrier, in light and dark", async () => {
      await ana.page.locator(".more summary").click();
      assert.deepEqual(await barriersOfBoth(ana.page), []);
      await ana.page.locator(".more summary").click();
    });

    test("it fits on a phone", async () => {
      await ana.page.setViewportSize(PHONE);
      assert.deepEqual(await sticksOut(ana.page), { scrolls: false, wide: [] });
      await ana.page.setViewportSize(USUAL);
    });

    test("one joins by keyboard alone, with the devices of the preview, and is asked for a name", async () => {
      await tabTo(ana.page, () => document.activeElement.id === "name", "the name");
      await ana.page.keyboard.press("Enter");
      assert.equal(await phase(ana.page), "start");
      await ana.page.keyboard.type("Ana");
      const { label } = await preview();
      await ana.page.keyboard.press("Enter");
      await inCall(ana.page, "Ana");
      const camera = () => ana.page.evaluate(() => ({ label: window.windlass.room.camera.device?.label, on: window.windlass.room.camera.publication !== null }));
      await until(async () => (await camera()).on, "the camera is sent");
      assert.equal((await camera()).label, label);
    });
  });

  describe("in a call", () => {
    /** Everything that was announced. */
    const said = () => ana.page.evaluate(() => window.announced);
    const announced = (pattern) => until(async () => (await said()).some((text) => pattern.test(text)), `${pattern} is announced`, 15_000, said);
    const tile = (name) => ana.page.locator(`.tile[aria-label="${name}"]`);
    const large = () => ana.page.locator(".tile.large").evaluateAll((tiles) => tiles.map((tile) => tile.getAttribute("aria-label")));

    before(async () => {
      await ana.page.evaluate(listen);
      bo = await join("Bo");
      cy = await join("Cy", "none");
      await tile("Bo").and(ana.page.locator("[data-video=on]")).waitFor();
    });

    test("who comes is announced, and who is muted", async () => {
      await announced(/^Bo has joined\.$/);
      await announced(/^Cy has joined\.$/);
      const told = () => cy.page.evaluate(() => window.announced);
      assert.ok(!(await told()).some((text) => /has joined/.test(text)), "who was there before is no news");
      await bo.page.keyboard.press("m");
      await announced(/^Bo is muted\.$/);
      await tile("Bo").locator(".silent").waitFor({ state: "visible" });
      await bo.page.keyboard.press("m");
      await announced(/^Bo can be heard\.$/);
    });

    test("a tile is pinned, and one speaks in the large place", async () => {
      await tile("Cy").hover();
      await named(ana.page, "Pin: Cy").click();
      assert.deepEqual(await large(), ["Cy"]);
      await named(ana.page, "Unpin: Cy").click();
      assert.deepEqual(await large(), []);
      await named(ana.page, "Speaker").click();
      // Of the two, one alone has a microphone.
      await until(async () => (await large()).join() === "Bo", "Bo is large");
      const [box, strip] = [await tile("Bo").boundingBox(), await tile("Cy").boundingBox()];
      assert.ok(box.height > 2 * strip.height && box.y + box.height <= strip.y, JSON.stringify({ box, strip }));
      await named(ana.page, "Grid").click();
      assert.deepEqual(await large(), []);
    });

    test("how well others come through is on their tiles", async () => {
      const bars = (of) => of.locator(".bars").getAttribute("aria-label");
      for (const name of ["Bo", "Cy"]) {
        await until(async () => (await bars(tile(name))) === "Good connection", `${name} has bars`, 30_000, () => bars(tile(name)));
      }
      await until(async () => (await bars(ana.page.locator(".own"))) === "Good connection", "so has one's own picture", 30_000);
    });

    test("a picture floats, goes on with the better one, and comes back", async () => {
      const floating = () =>
        ana.page.evaluate(() => {
          const video = document.querySelector('.tile[aria-label="Bo"] windlass-video').shadowRoot.pictureInPictureElement;
          return video === null ? null : { part: video.className, plays: !video.paused && video.videoWidth > 0 };
        });
      const float = named(ana.page, "Picture-in-picture: Bo");
      await tile("Bo").hover();
      await float.click();
      await until(async () => (await floating())?.plays, "Bo's picture floats", 10_000, floating);
      // What floats is what the tile shows.
      const shown = (view) => ana.page.evaluate((view) => void (document.querySelector('.tile[aria-label="Bo"] windlass-video').view = view), view);
      await shown("plain");
      await ana.page.evaluate(() => document.querySelector('.tile[aria-label="Bo"] windlass-video').dispatchEvent(new CustomEvent("state")));
      await until(async () => (await floating())?.part === "plain", "the plain picture floats", 10_000, floating);
      await shown("enhanced");
      await tile("Bo").hover();
      await float.click();
      await until(async () => (await floating()) === null, "nothing floats", 10_000, floating);
    });

    test("figures are for engineers, by a key", async () => {
      assert.equal(await tile("Bo").locator(".badge").isVisible(), false);
      assert.equal(await named(ana.page, "Split").first().isVisible(), false);
      await ana.page.keyboard.press("i");
      await tile("Bo").locator(".facts dt").first().waitFor();
      await ana.page.keyboard.press("i");
      assert.equal(await tile("Bo").locator(".facts").isVisible(), false);
    });

    test("the menu goes by arrow keys, and Escape closes it", async () => {
      await tabTo(ana.page, () => document.activeElement.getAttribute("aria-haspopup") === "menu", "the menu");
      const focused = () => ana.page.evaluate(() => document.activeElement.textContent);
      await ana.page.keyboard.press("ArrowDown");
      assert.equal(await focused(), "Settings");
      await ana.page.keyboard.press("ArrowUp");
      assert.equal(await focused(), "Full screen");
      await ana.page.keyboard.press("Escape");
      assert.equal(await ana.page.getByRole("menu").isVisible(), false);
      assert.equal(await focused(), "More");
    });

    test("the settings switch devices during the call, and Escape closes them", async () => {
      await ana.page.keyboard.press("Enter");
      await ana.page.keyboard.press("Enter");
      const label = () => ana.page.evaluate(() => window.windlass.room.camera.device.label);
      const before = await label();
      await ana.page.getByLabel("Choose the camera").selectOption({ index: 0 });
      await until(async () => (await label()) !== before, "the other camera is sent");
      assert.deepEqual(await barriersOfBoth(ana.page), []);
      await ana.page.keyboard.press("Escape");
      await ana.page.locator("dialog").waitFor({ state: "detached" });
      assert.equal(await ana.page.evaluate(() => document.activeElement.getAttribute("aria-haspopup")), "menu");
    });

    test("what one writes is read by the others, and told to who has the chat closed", async () => {
      await bo.page.keyboard.press("t");
      await bo.page.keyboard.type("Shall we begin?");
      await bo.page.keyboard.press("Enter");
      await announced(/^Bo writes: Shall we begin\?$/);
      assert.equal(await ana.page.locator(".chat-button .unread").innerText(), "1");
      await named(ana.page, /^Chat/).click();
      await ana.page.locator(".chat li", { hasText: "Bo" }).getByText("Shall we begin?").waitFor();
      assert.equal(await ana.page.locator(".chat-button .unread").isVisible(), false);
      await ana.page.keyboard.type("<b>Yes</b>");
      await ana.page.keyboard.press("Enter");
      await bo.page.locator(".chat li", { hasText: "Ana" }).getByText("<b>Yes</b>").waitFor();
      assert.equal(await ana.page.locator(".chat li .who").last().innerText(), "You");
      assert.deepEqual(await barriersOfBoth(ana.page), []);
      await ana.page.setViewportSize(PHONE);
      assert.deepEqual(await sticksOut(ana.page), { scrolls: false, wide: [] });
      await ana.page.setViewportSize(USUAL);
      await ana.page.keyboard.press("Escape");
      assert.equal(await ana.page.locator(".chat").isVisible(), false);
      await bo.page.keyboard.press("Escape");
    });

    test("a raised hand is seen until it is taken down, also by who comes later, and reactions pass", async () => {
      await bo.page.keyboard.press("h");
      await announced(/^Bo raises a hand\.$/);
      await tile("Bo").locator(".raised-hand").waitFor({ state: "visible" });
      const dee = await join("Dee", "none");
      await dee.page.locator('.tile[aria-label="Bo"] .raised-hand').waitFor({ state: "visible" });
      await dee.closePage();
      await named(bo.page, "React").click();
      await named(bo.page, "👏").click();
      await tile("Bo").locator(".passing").waitFor();
      await announced(/^Bo: 👏$/);
      await named(bo.page, "Take your hand down").click();
      await tile("Bo").locator(".raised-hand").waitFor({ state: "hidden" });
      await bo.page.keyboard.press("Escape");
    });

    test("axe finds no barrier, in light and dark", async () => {
      assert.deepEqual(await barriersOfBoth(ana.page), []);
    });

    test("it fits on a phone, and every control can be reached there", async () => {
      await ana.page.setViewportSize(PHONE);
      assert.deepEqual(await sticksOut(ana.page), { scrolls: false, wide: [] });
      for (const name of [/^Microphone/, /^Camera/, "Share screen", /^Chat/, "React", "More", "Leave"]) {
        const { x, y, width, height } = await named(ana.page, name).boundingBox();
        assert.ok(x >= 0 && x + width <= PHONE.width && y + height <= PHONE.height && height >= 44, `${name} is at ${x}, ${y}`);
      }
      await ana.page.setViewportSize(USUAL);
    });

    test("who leaves is announced, and one leaves by keyboard alone", async () => {
      await cy.closePage();
      await announced(/^Cy has left\.$/);
      await tabTo(ana.page, () => document.activeElement.textContent === "Leave", "Leave");
      await ana.page.keyboard.press("Enter");
      assert.equal(await ana.page.locator("h1").innerText(), "You have left the call");
      assert.equal(await ana.page.evaluate(() => document.activeElement.textContent), "Join again");
    });
  });

  describe("in German", () => {
    let tab;
    /** English texts that German has not, of two words or more. */
    const english = Object.entries(texts("en")).filter(([key, text]) => text !== texts("de")[key] && /\w \w/.test(text) && !text.includes("{"));
    const left = async () => {
      const shown = await tab.page.evaluate(() => {
        const labels = [...document.querySelectorAll("[aria-label], [title], [placeholder]")];
        const attributes = labels.flatMap((e) => [e.getAttribute("aria-label"), e.title, e.getAttribute("placeholder")]);
        const parts = [...document.querySelectorAll("#app, dialog")].map(({ textContent }) => textContent);
        return [...parts, ...attributes].join("\n");
      });
      return english.filter(([, text]) => shown.includes(text)).map(([, text]) => text);
    };

    before(async () => {
      tab = await ana.newPage({ init: () => Object.defineProperty(Navigator.prototype, "languages", { get: () => ["fr", "de-AT", "en"] }) });
    });

    test("the page speaks the language of the browser", async () => {
      await tab.page.goto(`${server.url}/?room=tee&source=none`);
      await named(tab.page, "Teilnehmen").waitFor();
      assert.equal(await tab.page.locator("html").getAttribute("lang"), "de");
      assert.deepEqual(await left(), []);
    });

    test("so does the call, also what it says of failures", async () => {
      await tab.page.getByLabel("Ihr Name").fill("Uwe");
      await named(tab.page, "Teilnehmen").click();
      await inCall(tab.page, "Uwe");
      await named(tab.page, "Mehr").click();
      await named(tab.page, "Einstellungen", "menuitem").click();
      assert.deepEqual(await left(), []);
    });

    test("another one is chosen in the settings, at once and for later", async () => {
      await tab.page.getByLabel("Sprache").selectOption({ label: "English" });
      await tab.page.keyboard.press("Escape");
      await named(tab.page, "Leave").click();
      assert.equal(await tab.page.locator("h1").innerText(), "You have left the call");
      await tab.page.goto(`${server.url}/?room=tee&source=none`);
      await named(tab.page, "Join the call").waitFor();
      assert.deepEqual(tab.errors, []);
      await tab.closePage();
    });
  });

  describe("more people than a page of tiles holds", () => {
    const NAMES = Array.from({ length: 14 }, (_, at) => `Guest ${String(at + 1).padStart(2, "0")}`);
    let viewer;
    let crowd;

    before(async () => {
      viewer = await ana.newPage();
      await viewer.page.goto(`${server.url}/?room=crowd&name=Ana&auto=1&source=none&${SMALL}`);
      await inCall(viewer.page, "Ana");
      // All in one page, without media: the CPUs are few.
      crowd = await ana.newPage();
      await crowd.page.goto(`${server.url}/check`);
      await crowd.page.evaluate(async (names) => {
        const { join } = await import("/windlass-client.js");
        window.guests = new Map();
        for (const name of names) window.guests.set(name, await join(location.origin, { room: "crowd", name }));
      }, NAMES);
    });

    after(async () => {
      await crowd?.closePage();
      await viewer?.closePage();
    });

    /** Who is on the page of tiles that is shown, in their places; and which page that is. */
    const seen = () =>
      viewer.page.evaluate(() => {
        const tiles = [...document.querySelectorAll(".grid .tile")].filter((tile) => tile.checkVisibility());
        const names = tiles.sort((a, b) => a.style.order - b.style.order).map((tile) => tile.getAttribute("aria-label"));
        const pager = document.querySelector(".pager");
        const ends = [...pager.querySelectorAll("button")].map((button) => button.getAttribute("aria-disabled"));
        return { names, place: pager.hidden ? null : pager.querySelector(".place").textContent, ends };
      });
    const shows = (wanted) => until(async () => JSON.stringify(await seen()) === JSON.stringify(wanted), JSON.stringify(wanted), 20_000, seen);
    const pageOf = (from, to, place, ends) => shows({ names: NAMES.slice(from, to), place, ends });

    test("nine tiles are shown, and the others on the next page", async () => {
      await pageOf(0, 9, "1 / 2", ["true", "false"]);
      assert.deepEqual(await barriersOfBoth(viewer.page), []);
      await viewer.page.keyboard.press("PageDown");
      await pageOf(9, 14, "2 / 2", ["false", "true"]);
      await viewer.page.keyboard.press("PageDown");
      await pageOf(9, 14, "2 / 2", ["false", "true"]);
      await named(viewer.page, "Previous page").click();
      await pageOf(0, 9, "1 / 2", ["true", "false"]);
      await named(viewer.page, "Next page").click();
      await pageOf(9, 14, "2 / 2", ["false", "true"]);
    });

    test("a phone has pages of six", async () => {
      await viewer.page.setViewportSize(PHONE);
      await until(async () => (await seen()).place?.endsWith("/ 3"), "there are three pages", 10_000, seen);
      assert.equal((await seen()).names.length, 6);
      assert.deepEqual(await sticksOut(viewer.page), { scrolls: false, wide: [] });
      await viewer.page.setViewportSize(USUAL);
      await until(async () => (await seen()).place?.endsWith("/ 2"), "there are two pages", 10_000, seen);
    });

    test("who is pinned is large, and the others are in a strip of pages beside it", async () => {
      await viewer.page.keyboard.press("PageUp");
      await viewer.page.locator('.tile[aria-label="Guest 03"]').hover();
      await named(viewer.page, "Pin: Guest 03").click();
      await until(async () => (await seen()).place === "1 / 3", "the strip has three pages", 10_000, seen);
      assert.equal(await viewer.page.locator(".tile.large").getAttribute("aria-label"), "Guest 03");
      await viewer.page.keyboard.press("PageDown");
      await until(async () => (await seen()).place === "2 / 3" && (await seen()).names.includes("Guest 03"), "it stays large on the next page", 10_000, seen);
      await named(viewer.page, "Unpin: Guest 03").click();
      await pageOf(0, 9, "1 / 2", ["true", "false"]);
    });

    test("pages end with who has left", async () => {
      await viewer.page.keyboard.press("PageDown");
      await crowd.page.evaluate(() => [...window.guests.values()].slice(9).forEach((room) => void room.leave()));
      await shows({ names: NAMES.slice(0, 9), place: null, ends: ["true", "true"] });
      assert.deepEqual([...viewer.errors, ...crowd.errors], []);
    });
  });

  test("one may try it alone without a name", async () => {
    await ana.page.goto(`${server.url}/?${SMALL}`);
    await ana.page.getByLabel("Your name").fill("");
    await named(ana.page, "Try it alone").click();
    await inCall(ana.page, "somebody without a name");
    await ana.page.locator(".tile[data-video=on]").waitFor();
    assert.equal(await ana.page.evaluate(() => window.windlass.room.microphone.active), false, "nobody listens");
    await until(async () => (await barriers(ana.page)).length === 0, "axe finds no barrier", 5000, () => barriers(ana.page));
  });

  test("nothing is written to the console as an error", () => assert.deepEqual([...ana.errors, ...bo.errors, ...cy.errors], []));
});
