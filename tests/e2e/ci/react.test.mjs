// The React example, as Vite serves and as it builds it: two participants see and hear each other, mute and leave.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { until } from "../support/call.mjs";
import { noBundlers, packSdk } from "../support/packed.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const EXAMPLE = path.join(import.meta.dirname, "../../../client-web/examples/react");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The tile of a participant, by the name in its caption. */
const tile = (tab, name) => tab.page.locator("figure", { has: tab.page.locator("figcaption", { hasText: name }) });
const button = (tab, name) => tab.page.getByRole("button", { name, exact: true });
const participants = async (server) => (await server.metrics()).windlass_sfu_participants;

/** Pictures that a tile has shown. */
const shown = (tab, name) =>
  tile(tab, name)
    .locator("windlass-video")
    .evaluate((element) => {
      const [plain, enhanced] = element.shadowRoot.querySelectorAll("video");
      const best = element.getAttribute("state") === "native" ? plain : enhanced;
      return best.getVideoPlaybackQuality().totalVideoFrames;
    });

/** What `axe` finds of consequence in the page as it stands. */
async function faults(tab) {
  await tab.page.evaluate(AXE);
  const found = await tab.page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
  return found.violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`);
}

/** How far the page is wider than its window. */
const overflow = (tab) => tab.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

const skip = skipped("the React example", noBundlers());

describe("the React example", { skip }, () => {
  let sdk;
  let server;
  const pages = [];
  const tabs = {};

  before(async () => {
    sdk = packSdk({ react: true });
    const app = sdk.app("react", EXAMPLE);
    app.run("vite", "build", "--logLevel", "warn");
    const vite = (...args) => app.serve("vite", ...args, "--port", "0", "--host", "localhost");
    [server, pages[0], pages[1]] = await Promise.all([startServer(), vite(), vite("preview")]);
    // Ada's page mounts twice, as React does in development; Bob's is what users get, on a phone.
    const opened = await Promise.all([openPage({ colorScheme: "dark" }), openPage({ viewport: { width: 360, height: 740 } })]);
    [tabs.Ada, tabs.Bob] = opened;
    for (const [at, tab] of opened.entries()) {
      tab.sockets = [];
      tab.page.on("websocket", (socket) => socket.url().startsWith(server.url.replace("http", "ws")) && tab.sockets.push(socket.url()));
      await tab.page.goto(`${pages[at].url}/?server=${server.url}/`);
    }
  });

  after(async () => {
    await Promise.all(Object.values(tabs).map((tab) => tab.close()));
    for (const page of pages) page?.close();
    await server?.stop();
    sdk?.remove();
  });

  test("the page before the call shows camera, devices and level", async () => {
    for (const tab of Object.values(tabs)) {
      const ready = async () => (await tab.page.locator("select").count()) === 2 && (await tab.page.locator("meter").evaluate(({ value }) => value)) > 0;
      await until(ready, "devices are named, and the microphone hears", 20_000, async () => [await tab.page.textContent("#app"), tab.errors]);
      const [opened] = await tab.page.locator("windlass-video").evaluateAll((videos) => videos.map(({ track }) => track?.readyState));
      assert.equal(opened, "live");
      assert.deepEqual(await faults(tab), []);
      assert.equal(await overflow(tab), 0);
    }
  });

  test("two join, once each though React mounts twice, and see and hear each other", async () => {
    for (const [name, tab] of Object.entries(tabs)) {
      await tab.page.getByLabel("Your name").fill(name);
      await tab.page.keyboard.press("Enter");
    }
    for (const [name, other] of [["Ada", "Bob"], ["Bob", "Ada"]]) {
      const tab = tabs[name];
      const moves = async () => (await shown(tab, other)) > 20;
      await until(moves, `${name} sees ${other} move`, 30_000, async () => [await tab.page.textContent("#app"), tab.errors]);
      const heard = () => tile(tab, other).locator("audio").evaluate(({ currentTime }) => currentTime);
      const from = await heard();
      await until(async () => (await heard()) > from, `${name} hears ${other}`, 10_000);
      assert.equal(tab.sockets.length, 1, `${name} has joined once`);
    }
    assert.equal(await participants(server), 2);
    const first = tabs.Ada.page.getByText("Bob joined.");
    const second = tabs.Bob.page.getByText("Ada joined.");
    await until(async () => (await first.count()) + (await second.count()) > 0, "who comes later is announced");
  });

  test("the call is usable by everybody, and on a phone", async () => {
    for (const tab of Object.values(tabs)) {
      await tab.page.locator("summary").click();
      await until(async () => (await tab.page.locator("details select:visible").count()) >= 2, "devices can be chosen");
      assert.deepEqual(await faults(tab), []);
      assert.equal(await overflow(tab), 0);
      await tab.page.keyboard.press("Escape");
      assert.equal(await tab.page.locator("details select:visible").count(), 0);
      assert.equal(await tab.page.locator("summary:focus").count(), 1);
    }
  });

  test("what is muted is muted for the other, and is back", async () => {
    const [ada, bob] = [tabs.Ada, tabs.Bob];
    const seen = () => tile(bob, "Ada").evaluate((figure) => [figure.querySelector("figcaption").textContent, figure.querySelector("windlass-video").getAttribute("video")]);
    const press = async (name, pressed) => {
      await button(ada, name).focus();
      await ada.page.keyboard.press("Space");
      await until(async () => (await button(ada, name).getAttribute("aria-pressed")) === String(pressed), `${name} is ${pressed ? "on" : "off"}`);
    };
    await press("Microphone", false);
    await press("Camera", false);
    await until(async () => (await seen()).join() === "Ada, muted,off", "Bob sees that Ada is muted", 10_000, seen);
    await press("Microphone", true);
    await press("Camera", true);
    await until(async () => (await seen()).join() === "Ada,on", "Ada is back", 10_000, seen);
  });

  test("who leaves is gone, and may come back", async () => {
    const [ada, bob] = [tabs.Ada, tabs.Bob];
    await button(bob, "Leave").click();
    await until(async () => (await ada.page.locator("figure").count()) === 1, "Ada is alone", 10_000);
    await until(async () => (await participants(server)) === 1, "the server knows");
    await until(async () => (await ada.page.getByText("Bob left.").count()) === 1, "Ada is told");
    assert.equal(await bob.page.getByLabel("Your name").inputValue(), "Bob", "the name is kept");
    await button(bob, "Join").click();
    await until(async () => (await shown(ada, "Bob")) > 0, "Bob is back", 20_000);
    assert.deepEqual(Object.values(tabs).map(({ errors }) => errors), [[], []]);
  });

  test("a server that does not answer is told, with what to do", async () => {
    await server.stop();
    const bob = await tabs.Bob.newPage();
    await bob.page.goto(`${pages[1].url}/?server=${server.url}/`);
    await bob.page.getByLabel("Your name").fill("Bob");
    await button(bob, "Join").click();
    const alert = bob.page.getByRole("alert");
    await until(async () => /The server does not answer. Check your connection/.test(await alert.textContent()), "the failure is told", 20_000, () => alert.textContent());
    assert.equal(await button(bob, "Try again").count(), 1);
    await button(bob, "Leave").click();
    await until(async () => (await button(bob, "Join").count()) === 1, "the page before the call is back");
  });
});
