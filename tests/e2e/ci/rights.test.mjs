// Rights while a call runs, on the page: a locked call, a lobby, a camera that a moderator stops, and a ban without a way back.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { nativeFrames, sleep, until } from "../support/call.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { token, TOKEN_KEY } from "../support/token.mjs";

const GUEST = ["publish", "subscribe", "enhance"];

describe("rights while a call runs", () => {
  let server;
  /** Ana sends and moderates, Bo sends, Cy only watches. */
  let ana;
  let bo;
  let cy;
  let other;

  const phase = (page) => page.evaluate(() => window.windlass?.phase);
  const goTo = async (page, identity, { grants = GUEST, source = "none" } = {}) => {
    // Another token alone is no other page.
    await page.goto("about:blank");
    await page.goto(`${server.url}/?room=tea&name=x&auto=1&layers=q&source=${source}&adaptive=0#token=${token("tea", identity, grants)}`);
  };
  const inCall = (page, who) => until(async () => (await phase(page)) === "call", `${who} is in the call`, 20_000);
  const says = (page, pattern) => until(async () => pattern.test(await page.innerText("body")), `the page says ${pattern}`, 8_000);
  const press = (page, name) => page.getByRole("button", { name, exact: true }).first().click();
  const failure = (page) => page.evaluate(() => window.windlass.failure?.code);

  before(async () => {
    const scene = makeScene(fewFrames);
    server = await startServer({ args: [...TOKEN_KEY, "--device=off"] });
    [ana, other] = await Promise.all([openPage({ camera: scene.file }), openPage()]);
    bo = await ana.newPage();
    cy = await other.newPage();
    await goTo(ana.page, "ana", { grants: [...GUEST, "moderate"], source: "camera" });
    await inCall(ana.page, "Ana");
    await goTo(bo.page, "bo", { source: "camera" });
    await inCall(bo.page, "Bo");
  });

  after(async () => {
    await Promise.all([ana?.close(), other?.close()]);
    await server?.stop();
  });

  test("nobody new comes into a locked call, and who is in it does not notice", async () => {
    await press(ana.page, "Moderate");
    await ana.page.getByLabel("Nobody new comes in").check();
    await says(bo.page, /The call is locked/);
    assert.equal(await bo.page.getByRole("button", { name: "Moderate" }).isVisible(), false);
    await goTo(cy.page, "cy");
    await says(cy.page, /The call is locked/);
    assert.equal(await failure(cy.page), "locked");
    const seen = await nativeFrames(ana.page);
    await until(async () => (await nativeFrames(ana.page)) > seen + 10, "Bo is seen");
    await ana.page.getByLabel("Nobody new comes in").uncheck();
    await says(bo.page, /The call is open again/);
  });

  test("who comes waits until a moderator lets them in, or does not", async () => {
    await ana.page.getByLabel("Whoever comes waits until let in").check();
    await until(() => bo.page.evaluate(() => window.windlass.room.entry.lobby), "there is a lobby");
    await goTo(cy.page, "cy");
    await says(cy.page, /Waiting to be let in/);
    assert.equal(await phase(cy.page), "waiting");
    await says(ana.page, /cy waits to be let in/);
    await press(ana.page, "Refuse");
    await says(cy.page, /You were not let in/);
    await goTo(cy.page, "cy-again");
    await says(ana.page, /cy-again waits to be let in/);
    await press(ana.page, "Let in");
    await inCall(cy.page, "Cy");
    await until(async () => (await nativeFrames(cy.page)) > 10, "Cy sees somebody");
  });

  test("a camera that a moderator stops is stopped at once, and begins again only by its owner", async () => {
    const of = (page) => page.evaluate(() => window.windlass.room.tracks.filter((t) => t.kind === "video").length);
    await until(async () => (await of(ana.page)) === 1, "Ana sees Bo");
    const row = ana.page.locator(".moderation .people li", { hasText: /^bo/ });
    await row.getByRole("button", { name: "Stop sending" }).click();
    await until(async () => (await of(ana.page)) === 0, "Bo is seen no more", 2_000);
    await says(bo.page, /A moderator has stopped your camera/);
    assert.equal(await bo.page.evaluate(() => window.windlass.room.published.length), 0);
    assert.equal(await bo.page.evaluate(() => window.windlass.room.may("publish")), false);
    const refused = await bo.page.evaluate(() => window.windlass.room.publish(new MediaStream()).then(() => "done", (e) => e.code));
    assert.equal(refused, "forbidden");
    await row.getByRole("button", { name: "Let send" }).click();
    await says(bo.page, /You may send again/);
    await sleep(500);
    assert.equal(await of(ana.page), 0, "not by itself");
    await press(bo.page, "Send again");
    const seen = await nativeFrames(ana.page);
    await until(async () => (await nativeFrames(ana.page)) > seen + 10, "Bo is seen again");
  });

  test("who may not moderate cannot, whatever their page asks for", async () => {
    const codes = await bo.page.evaluate(async () => {
      const { moderate, participants } = window.windlass.room;
      const tries = [moderate.lock(), moderate.setLobby(false), moderate.ban(participants[0]), moderate.setGrants(participants[0], [])];
      return Promise.all(tries.map((tried) => tried.then(() => "done", (error) => error.code)));
    });
    assert.deepEqual(codes, ["forbidden", "forbidden", "forbidden", "forbidden"]);
    assert.equal(await phase(ana.page), "call");
  });

  test("who is banned is told so and has no way back", async () => {
    const heard = bo.page.evaluate(() => new Promise((resolve) => window.windlass.room.on("removed", ({ reason }) => resolve(reason))));
    await ana.page.locator(".moderation .people li", { hasText: /^bo/ }).getByRole("button", { name: "Ban" }).click();
    assert.equal(await heard, "banned");
    await says(bo.page, /You are banned from this call/);
    await press(bo.page, "Join again");
    await until(async () => (await failure(bo.page)) === "banned" && (await phase(bo.page)) === "start", "it is refused");
    assert.equal(await phase(cy.page), "call");
    assert.equal(await phase(ana.page), "call");
  });
});
