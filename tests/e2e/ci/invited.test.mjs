// A server with a token key: what its page says without a token, and a link that lets in.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { until } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";

const windlass = (...args) => execFileSync(process.env.WINDLASS_BIN, args, { encoding: "utf8" });
const phase = (page) => page.evaluate(() => window.windlass?.phase);

describe("the page of a server with a token key", () => {
  let folder;
  let key;
  let server;
  let tab;

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "windlass-key-"));
    windlass("key", path.join(folder, "k1"));
    key = `k1=@${path.join(folder, "k1")}`;
    server = await startServer({ args: ["--token-key", key, "--device=off"] });
    tab = await openPage();
  });

  after(async () => {
    await tab?.close();
    await server?.stop();
    rmSync(folder, { recursive: true });
  });

  test("says plainly that a link with a token is needed, and who makes it by which command", async () => {
    await tab.page.goto(`${server.url}/?room=tea&name=Ana&auto=1&source=none`);
    await until(() => tab.page.locator(".problem:visible").count(), "the page says something");
    const said = await tab.page.locator(".problem").innerText();
    assert.match(said, /This call needs an invitation/);
    assert.match(said, /Open the link that you were sent/);
    assert.ok(said.includes(`windlass token --key KEY --room tea --identity NAME --page ${server.url}`), said);
    assert.equal(await phase(tab.page), "start");
  });

  test("lets in whoever comes by a link, though it differs in what follows the sign alone", async () => {
    const link = windlass("token", "--key", key, "--room", "tea", "--identity", "ana", "--page", server.url).trim();
    await tab.page.goto(`${server.url}/#tea`);
    await tab.page.evaluate((link) => (location.href = link), link);
    await until(() => tab.page.locator("#room").inputValue().then((room) => room === "tea"), "the link's page");
    await tab.page.locator(".more summary").click();
    await tab.page.locator("input[name=origin][value=none]").check({ force: true });
    await tab.page.locator("#name").fill("Ana");
    await tab.page.locator("form button.primary").click();
    await until(async () => (await phase(tab.page)) === "call", "Ana is in the call");
    assert.ok(!tab.page.url().includes("token"), "an address that is passed on has no token");
  });

  test("lets the tab in again after the page was loaded again, and another tab not", async () => {
    await tab.page.goto(`${server.url}/?room=tea&name=Ana&auto=1&source=none`);
    await until(async () => (await phase(tab.page)) === "call", "Ana is in the call again");
    const other = await tab.newPage();
    await other.page.goto(tab.page.url());
    await until(() => other.page.locator(".problem:visible").count(), "the other tab is told");
    assert.match(await other.page.locator(".problem").innerText(), /This call needs an invitation/);
    await other.closePage();
  });

  test("takes a newer invitation while the call goes on, and copies a link without it", async () => {
    const link = windlass("token", "--key", key, "--room", "tea", "--identity", "ana", "--ttl", "2h", "--page", server.url).trim();
    const newer = new URL(link).hash;
    await tab.page.evaluate((hash) => (location.hash = hash), newer);
    await until(async () => (await tab.page.locator(".banner").innerText()).includes("new invitation is kept"), "the page says so");
    assert.equal(await phase(tab.page), "call");
    assert.ok(!tab.page.url().includes("token"));
    const { token } = await tab.page.evaluate(() => JSON.parse(sessionStorage.getItem("windlass-token")));
    assert.ok(newer.includes(token));
    await tab.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await tab.page.locator(".bar .copy").click();
    await until(async () => /Guests need an invitation/.test(await tab.page.locator(".bar .copy").innerText()), "it is copied");
    assert.equal(await tab.page.evaluate(() => navigator.clipboard.readText()), `${server.url}/?room=tea`);
  });
});
