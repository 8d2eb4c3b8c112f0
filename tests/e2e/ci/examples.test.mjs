// The examples, as a reader would start them: an SFU in a program of one's own, a page of a few lines, a publisher by WHIP, a file.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { until } from "../support/call.mjs";
import { firefoxMissing, framesShown, openFirefox } from "../support/firefox.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

/** Where the examples are built: beside the server. */
const example = (name) => path.join(path.dirname(process.env.WINDLASS_BIN), "examples", name);

/** One of the SDK's examples, as a browser runs it. */
function script(name) {
  const sdk = path.join(import.meta.dirname, "../../../client-web");
  const { transformSync } = createRequire(path.join(sdk, "package.json"))("esbuild");
  return transformSync(readFileSync(path.join(sdk, "examples", `${name}.ts`), "utf8"), { loader: "ts" }).code;
}

/** Pictures that the page's elements have shown, of each participant. */
const shown = (tab) =>
  tab.page.evaluate(() =>
    [...document.querySelectorAll("windlass-video")].map((element) => {
      const [plain, enhanced] = element.shadowRoot.querySelectorAll("video");
      const shown = element.getAttribute("state") === "native" ? plain : enhanced;
      return shown.getVideoPlaybackQuality().totalVideoFrames;
    }),
  );

describe("the examples", () => {
  let program;
  let url;
  const tabs = [];

  async function open(page) {
    const tab = await openPage();
    tabs.push(tab);
    await tab.page.goto(new URL(page, url).href);
    return tab;
  }

  before(async () => {
    program = spawn(example("embed"), ["0"], { stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    program.stdout.on("data", (data) => (said += data));
    url = await until(() => said.match(/^http:\S+$/m)?.[0], "the example says where it is");
  });

  after(async () => {
    await Promise.all(tabs.map((tab) => tab.close()));
    program?.kill("SIGINT");
  });

  test("who opens the page sees all others in the call, a publisher by WHIP among them", async () => {
    const first = await open("/");
    const second = await open("/");
    for (const tab of [first, second]) {
      const moves = async () => (await shown(tab)).filter((frames) => frames > 10).length === 1;
      await until(moves, "one other's picture moves", 20_000, () => tab.page.textContent("#status"));
      assert.equal(await tab.page.textContent("#status"), "In the call.");
    }
    const publisher = await open("/whip.html");
    await until(async () => (await publisher.page.textContent("#status")) === "connected", "the WHIP publisher is connected", 15_000, () =>
      publisher.page.textContent("#status"),
    );
    await until(async () => (await shown(first)).filter((frames) => frames > 10).length === 2, "its picture moves too", 20_000);
    await publisher.page.goto("about:blank");
    await until(async () => (await shown(first)).length === 1, "its session ends with its page", 15_000);
    assert.deepEqual(tabs.map((tab) => tab.errors), [[], [], []]);
  });

  test("ends when it is interrupted", async () => {
    program.kill("SIGINT");
    await until(() => program.exitCode === 0, "the program ends");
  });
});

describe("the page of a few lines, at a server that enhances", () => {
  const html = readFileSync(path.join(import.meta.dirname, "../../../client-web/examples/call.html"), "utf8");
  let server;
  const tabs = [];

  before(async () => {
    server = await startServer();
  });

  after(async () => {
    await Promise.all(tabs.map((tab) => tab.close()));
    await server?.stop();
  });

  async function open() {
    // As if it lay beside the server's own page. What a test answers counts as from elsewhere, and such pages reach no server of this machine.
    const tab = await openPage({ args: ["--disable-features=LocalNetworkAccessChecks"] });
    tabs.push(tab);
    await tab.page.route("**/five-lines", (route) => route.fulfill({ contentType: "text/html", body: html }));
    await tab.page.goto(`${server.url}/five-lines`);
    return tab;
  }

  const states = (tab) =>
    tab.page.evaluate(() => [...document.querySelectorAll("windlass-video")].map((e) => e.getAttribute("reason") ?? e.getAttribute("state")));

  test("three participants see and hear each other, rebuilt where the picture is smaller than its place", async () => {
    for (let n = 0; n < 3; n++) await open();
    for (const tab of tabs) {
      const settled = async () => (await states(tab)).filter((state) => ["rebuilt", "enhanced", "fills", "too-large", "too-slow"].includes(state)).length === 2;
      await until(settled, "two others are as they shall be", 40_000, async () => [await states(tab), await tab.page.textContent("#status")]);
      const heard = () =>
        tab.page.evaluate(() => [...document.querySelectorAll("windlass-video")].map((e) => e.shadowRoot.querySelector("audio").currentTime));
      const before = await heard();
      assert.equal(before.length, 2);
      await until(async () => (await heard()).every((time, at) => time > before[at]), "both are heard", 10_000);
      const from = Math.min(...(await shown(tab)));
      await until(async () => Math.min(...(await shown(tab))) > from + 20, "both pictures move", 15_000);
    }
  });

  test("of an element that is taken out of the page nothing is sent, and in another document it goes on", async () => {
    const { page } = tabs[0];
    await page.evaluate(() => {
      const element = document.querySelector("windlass-video");
      const watched = document.createElement("video");
      watched.muted = true;
      watched.srcObject = new MediaStream([element.track.plain]);
      document.body.append(watched);
      watched.play();
      element.remove();
      Object.assign(window, { element, watched });
    });
    const frames = () => page.evaluate(() => window.watched.getVideoPlaybackQuality().totalVideoFrames);
    const stands = async () => {
      const before = await frames();
      await new Promise((resolve) => setTimeout(resolve, 1000));
      return (await frames()) === before;
    };
    await until(stands, "no more frames come", 15_000, frames);
    const before = await frames();
    await page.evaluate(() => {
      const frame = document.createElement("iframe");
      document.body.prepend(frame);
      frame.contentDocument.body.append(window.element);
    });
    await until(async () => (await frames()) > before + 20, "frames come again", 15_000, frames);
    const looks = await page.evaluate(() => {
      const { element } = window;
      const stage = element.shadowRoot.querySelector(".stage").getBoundingClientRect();
      const style = element.ownerDocument.defaultView.getComputedStyle(element);
      return { display: style.display, wide: stage.width / stage.height > 1.3, playing: !element.shadowRoot.querySelector("video").paused };
    });
    assert.deepEqual(looks, { display: "block", wide: true, playing: true });
    await page.evaluate(() => document.body.append(window.element));
  });

  test("what a page puts into the slot for captions is seen in the lower part of the picture", async () => {
    const { page } = tabs[0];
    const seen = await page.evaluate(() => {
      const element = document.querySelector("windlass-video");
      const line = document.createElement("p");
      Object.assign(line, { slot: "captions", textContent: "Tea at five?" });
      element.append(line);
      const [place, text] = [element, line].map((shown) => shown.getBoundingClientRect());
      const inside = text.left >= place.left && text.right <= place.right && text.bottom <= place.bottom;
      const { name } = line.assignedSlot ?? {};
      const [visible, low] = [text.width > 0 && text.height > 0, text.top > place.top + place.height / 2];
      line.remove();
      return { name, visible, inside, low };
    });
    assert.deepEqual(seen, { name: "captions", visible: true, inside: true, low: true });
  });

  test("the README's examples of messages and devices do what they say", async () => {
    const [ana, ben] = tabs.map((tab) => tab.page);
    const code = { messages: script("messages"), devices: script("devices") };
    for (const [page, name] of [[ana, "Ana"], [ben, "Ben"]]) {
      await page.evaluate(
        async ({ name, code }) => {
          const { join } = await import("/windlass-client.js");
          const loaded = (text) => import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
          const [{ talk }, { film }] = [await loaded(code.messages), await loaded(code.devices)];
          const call = await join(location.href, { room: "readme", name });
          Object.assign(window, { call, talk, film, said: [], hands: [] });
        },
        { name, code },
      );
    }
    const others = (page) => page.evaluate(() => window.call.participants.map((who) => who.name));
    await until(async () => (await others(ana))[0] === "Ben" && (await others(ben))[0] === "Ana", "they are in one room");
    const talk = () => {
      const page = { add: (...line) => window.said.push(line), show: (...hand) => window.hands.push(hand) };
      return window.talk(window.call, page, window.call.participants[0], new Uint8Array(3));
    };
    for (const page of [ben, ana]) await page.evaluate(talk);
    const heard = () => ben.evaluate(() => ({ said: window.said, hands: window.hands }));
    await until(async () => (await heard()).hands.length > 0, "Ben sees Ana's hand", 10_000, heard);
    assert.deepEqual(await heard(), { said: [["Ana", "Hello"]], hands: [["Ana", "up"]] });
    const filmed = await ana.evaluate(async () => {
      const preview = document.createElement("windlass-video");
      const { camera } = window.call;
      await window.film(window.call, preview, () => undefined);
      const { muted } = camera;
      await camera.setMuted(false);
      return { muted, shown: preview.track !== null && preview.track === camera.track };
    });
    assert.deepEqual(filmed, { muted: true, shown: true });
    for (const page of [ana, ben]) await page.evaluate(() => window.call.leave());
  });

  test("who leaves is gone from the others' pages", async () => {
    await tabs[2].page.goto("about:blank");
    for (const tab of tabs.slice(0, 2)) await until(async () => (await states(tab)).length === 1, "one is left", 15_000);
    assert.deepEqual(tabs.map((tab) => tab.errors), [[], [], []]);
  });
});

const withFirefox = "the page of a few lines, with Firefox";

describe(withFirefox, { skip: skipped(withFirefox, firefoxMissing) }, () => {
  const page = readFileSync(path.join(import.meta.dirname, "../../../client-web/examples/call.html"), "utf8");
  // Small pictures: three browsers of two kinds share one machine.
  const html = page.replace("camera: true", 'camera: { width: 320, height: 180, publish: { layers: "q" } }');
  let server;
  let firefox;
  const tabs = [];

  before(async () => {
    [server, firefox] = await Promise.all([startServer({ udpHost: "0.0.0.0" }), openFirefox()]);
  });

  after(async () => {
    await Promise.all([firefox?.close(), ...tabs.map((tab) => tab.close?.())]);
    await server?.stop();
  });

  async function openInFirefox() {
    const tab = await firefox.newPage();
    tabs.push(tab);
    await tab.page.setRequestInterception(true);
    tab.page.on("request", (request) => {
      if (new URL(request.url()).pathname === "/five-lines") request.respond({ contentType: "text/html", body: html });
      else request.continue();
    });
    await tab.page.goto(`${server.url}/five-lines`);
  }

  async function openInChromium() {
    const tab = await openPage({ args: ["--disable-features=LocalNetworkAccessChecks"] });
    tabs.push(tab);
    await tab.page.route("**/five-lines", (route) => route.fulfill({ contentType: "text/html", body: html }));
    await tab.page.goto(`${server.url}/five-lines`);
  }

  /** The others as a page has them: their states, frames shown of the better picture, and seconds of sound. */
  async function others({ page }) {
    const frames = await framesShown(page);
    const all = await page.evaluate(() =>
      [...document.querySelectorAll("windlass-video")].map((element) => ({
        state: element.getAttribute("state"),
        seconds: element.shadowRoot.querySelector("audio").currentTime,
      })),
    );
    return all.map((other, at) => ({ ...other, frames: frames[at]?.[other.state === "native" ? 0 : 1] ?? 0 }));
  }

  test("three participants, one in Firefox, see and hear each other", async () => {
    for (const open of [openInFirefox, openInChromium, openInChromium]) await open();
    for (const tab of tabs) {
      const there = async () => (await others(tab)).length === 2;
      await until(there, "two others are there", 40_000, () => tab.page.evaluate(() => document.querySelector("#status").textContent));
      const from = await others(tab);
      const go = async () => (await others(tab)).every(({ frames, seconds }, at) => frames > from[at].frames + 20 && seconds > from[at].seconds);
      await until(go, "both pictures move, and both are heard", 30_000, () => others(tab));
    }
    console.log("with Firefox:", (await Promise.all(tabs.map(others))).flat().map(({ state }) => state).join(" "));
    assert.deepEqual(tabs.map((tab) => tab.errors), [[], [], []]);
  });
});

test("a file is enhanced offline", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "windlass-"));
  try {
    const [low, high] = [path.join(import.meta.dirname, "../../../hybrid/vp9/tests/fixtures/realtime.ivf"), path.join(folder, "high.y4m")];
    execFileSync(example("enhance_file"), [low, high]);
    const made = readFileSync(high);
    const header = made.subarray(0, made.indexOf(10) + 1).toString();
    assert.equal(header, "YUV4MPEG2 W322 H182 F30:1 Ip C420\n");
    const frames = readFileSync(low).readUInt32LE(24);
    assert.equal(made.length, header.length + frames * ("FRAME\n".length + 322 * 182 + 2 * 161 * 91));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
