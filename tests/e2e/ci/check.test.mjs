// The page /check: what a call needs, part by part, on the server's default addresses and where something is missing.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { barriersOfBoth, sticksOut, tabTo } from "../support/barriers.mjs";
import { openPage } from "../support/browser.mjs";
import { until } from "../support/call.mjs";
import { firefoxMissing, openFirefox, ownAddress } from "../support/firefox.mjs";
import { blackHole } from "../support/paths.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

/** Runs the check in a page, and gives its results by name. */
async function checked(page, server, query = "") {
  await page.goto(`${server.url}/check${query}`);
  const results = await until(
    () => page.evaluate(() => window.windlassCheck?.done && window.windlassCheck.results),
    "the check is done",
    30_000,
    () => page.evaluate(() => window.windlassCheck?.results),
  );
  return Object.fromEntries(results.map((result) => [result.name, result]));
}

/** What the page shows of a part. */
const shown = (page, part) => page.locator(`[data-part=${part}]`).innerText();

const outcomes = (results) => Object.fromEntries(Object.entries(results).map(([name, { outcome }]) => [name, outcome]));
const WELL = { socket: "ok", udp: "ok", tcp: "ok", turn: "skipped", camera: "ok", microphone: "ok", decode: "ok", encode: "ok", speed: "ok" };

describe("the check", () => {
  let server;
  let tab;

  before(async () => {
    // The address of the default start, on a free port.
    [server, tab] = await Promise.all([startServer({ udpHost: "0.0.0.0" }), openPage()]);
  });

  after(async () => {
    await tab?.close();
    await server?.stop();
  });

  test("everything works on a server as it starts, and the report says so", async () => {
    const results = await checked(tab.page, server);
    console.log("check:", Object.values(results).map(({ name, detail }) => `${name}: ${detail}`).join(" | "));
    assert.deepEqual(outcomes(results), WELL, JSON.stringify(results));
    assert.match(await tab.page.locator(".summary").innerText(), /Everything that could be tried works/);
    await tab.page.screenshot({ path: "output/check.png", fullPage: true });
    await tab.page.getByRole("button", { name: "Copy report" }).click();
    const report = await until(() => tab.page.evaluate(() => document.querySelector(".report").value), "there is a report");
    assert.match(report, /^Windlass check of http/);
    for (const name of Object.keys(WELL)) assert.ok(report.includes(name), report);
    assert.deepEqual(tab.errors, []);
    await until(async () => (await server.metrics()).windlass_sfu_participants === 0, "nobody is left in a room");
  });

  test("axe finds no barrier, in English and German, it fits on a phone, and Tab leads to its buttons", async () => {
    const { page } = tab;
    for (const [language, all] of [["en", "Everything that could be tried works."], ["de", "Alles, was sich versuchen ließ, geht."]]) {
      await checked(page, server, `?lang=${language}`);
      assert.equal(await page.evaluate(() => document.documentElement.lang), language);
      assert.equal(await page.locator(".summary").innerText(), all);
      assert.deepEqual(await barriersOfBoth(page), []);
      await page.setViewportSize({ width: 360, height: 740 });
      assert.deepEqual(await sticksOut(page), { scrolls: false, wide: [] });
      await page.setViewportSize({ width: 1280, height: 800 });
      await tabTo(page, () => document.activeElement.matches("button.primary"), "the report");
      await tabTo(page, () => document.activeElement.matches("button.secondary"), "the second check");
    }
    assert.deepEqual(tab.errors, []);
  });

  test("a network without UDP: TCP works, and UDP says what to do", async () => {
    const hole = await blackHole();
    const blocked = await startServer({ args: ["--advertise", `127.0.0.1:${hole.port}`], advertiseTcp: "127.0.0.1" });
    try {
      const results = await checked(tab.page, blocked);
      assert.deepEqual(outcomes(results), { ...WELL, udp: "failed" });
      assert.match(results.tcp.detail, new RegExp(`127.0.0.1:${blocked.ports.udp}`));
      assert.match(results.udp.advice, new RegExp(`allow UDP to 127.0.0.1:${hole.port}.*Calls go by TCP`));
      assert.match(await shown(tab.page, "udp"), /administrator to allow UDP/);
      assert.match(await tab.page.locator(".summary").innerText(), /One part does not work\. You can call all the same/);
      await tab.page.screenshot({ path: "output/check-no-udp.png", fullPage: true });
    } finally {
      await blocked.stop();
      hole.close();
    }
  });

  test("without a camera the page says so, and that one can join all the same", async () => {
    const bare = await openPage({ args: ["--use-fake-device-for-media-stream=device-count=0"] });
    try {
      const results = await checked(bare.page, server);
      assert.deepEqual(outcomes(results), { ...WELL, camera: "failed" });
      assert.match(results.camera.detail, /There is no camera/);
      assert.match(results.camera.advice, /Connect one and try again\. You can join without/);
    } finally {
      await bare.close();
    }
  });

  test("a device that was denied says where to allow it", async () => {
    const denied = await openPage({ cameraAllowed: false, args: ["--deny-permission-prompts"] });
    try {
      const { camera, microphone } = await checked(denied.page, server);
      for (const { outcome, advice } of [camera, microphone]) {
        assert.equal(outcome, "failed");
        assert.match(advice, /in the address bar/);
      }
    } finally {
      await denied.close();
    }
  });

  test("a server that has gone leaves a page that says so", async () => {
    const gone = await startServer();
    await tab.page.goto(`${gone.url}/check`);
    await until(() => tab.page.evaluate(() => window.windlassCheck?.done), "the first check is done", 30_000);
    await gone.stop();
    await tab.page.getByRole("button", { name: "Check again" }).click();
    const results = await until(() => tab.page.evaluate(() => window.windlassCheck.done && window.windlassCheck.results), "the check is done", 20_000);
    const [socket, udp] = results;
    assert.equal(socket.outcome, "failed");
    assert.match(socket.detail, /does not answer/);
    assert.deepEqual([udp.outcome, udp.detail], ["skipped", "There is no connection to the server."]);
    assert.match(await tab.page.locator(".summary").innerText(), /No call is possible/);
  });

  const name = "Firefox reaches a server as it starts, which loopback alone would not let it";
  test(name, { skip: skipped(name, firefoxMissing) }, async () => {
    const firefox = await openFirefox();
    try {
      const { page, errors } = await firefox.newPage();
      const results = await checked(page, server);
      assert.deepEqual(outcomes(results), WELL, JSON.stringify(results));
      assert.match(results.udp.detail, new RegExp(ownAddress.replaceAll(".", "\\.")));
      assert.deepEqual(errors, []);
    } finally {
      await firefox.close();
    }
  });
});
