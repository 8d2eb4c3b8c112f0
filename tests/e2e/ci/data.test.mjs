// Messages and attributes of three participants of a room on two servers, by the SDK alone: each message comes once and in order, also where a socket or a
// server is lost.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { sleep, until } from "../support/call.mjs";
import { startNats } from "../support/nats.mjs";
import { startServer } from "../support/server.mjs";

/** Keeps a page's sockets where the test finds them. */
const keepSockets = () => {
  window.sockets = [];
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      window.sockets.push(this);
    }
  };
};

describe("what participants of a room on two servers send each other", () => {
  let nats;
  let servers;
  let browser;
  let ana;
  let bo;
  let cy;

  /** A page of a participant, which keeps what it hears. */
  async function join(server, name, options = {}) {
    const tab = browser ? await browser.newPage({ init: keepSockets }) : await openPage({ init: keepSockets });
    browser ??= tab;
    await tab.page.goto(`${server.url}/healthz`);
    await tab.page.evaluate(
      async ([url, name, options]) => {
        const { join } = await import(`${url}/windlass-client.js`);
        const call = await join(url, { room: "tea", name, ...options });
        const result = (promise) => promise.then(() => "done", (error) => error.code);
        Object.assign(window, { call, result, heard: [], changed: [] });
        // A sound has a level where it is played.
        call.on("participant", (who) => document.body.append(who.element));
        call.on("message", ({ topic, from, text, bytes }) => window.heard.push([from.name, topic, text ?? [...bytes]]));
        call.on("participantChanged", (who) => window.changed.push([who.name, who.attributes]));
        window.named = (name) => call.participants.find((who) => who.name === name);
      },
      [server.url, name, options],
    );
    return tab.page;
  }

  const heard = (page) => page.evaluate(() => window.heard);
  /** What a page has heard of a topic. */
  const of = async (page, topic) => (await heard(page)).filter(([, about]) => about === topic).map(([, , text]) => text);
  /** Waits until a page has heard as many of a topic, and a little longer; returns them. */
  const all = async (page, topic, count, timeoutMs) => {
    await until(async () => (await of(page, topic)).length >= count, `${count} of ${topic} are heard`, timeoutMs, () => of(page, topic));
    await sleep(300);
    return of(page, topic);
  };
  const people = (page) => page.evaluate(() => window.call.participants.map(({ name }) => name).sort().join());
  const numbers = (from, to) => Array.from({ length: to - from }, (_, n) => `${from + n}`);

  before(async () => {
    nats = await startNats();
    const args = (ports) => ["--device=off", "--nats", nats.url, "--cluster-token", "a-cluster-of-these-tests", "--node-url", `ws://localhost:${ports.http}/ws`, "--node-listen", "127.0.0.1:0", "--node-max-participants", "1"];
    servers = await Promise.all([0, 1].map(() => startServer({ args })));
    for (const server of servers) await until(async () => (await server.metrics()).windlass_cluster_nodes === 2, "both know each other", 10_000);
    ana = await join(servers[0], "Ana", { microphone: true });
    bo = await join(servers[0], "Bo");
    cy = await join(servers[0], "Cy", { attributes: { pen: "blue" } });
    for (const [page, others] of [[ana, "Bo,Cy"], [bo, "Ana,Cy"], [cy, "Ana,Bo"]]) {
      await until(async () => (await people(page)) === others, `${others} are there`, 10_000, () => people(page));
    }
  });

  after(async () => {
    await browser?.close();
    for (const server of servers ?? []) if (server.alive()) await server.stop();
    nats?.stop();
  });

  test("texts and bytes reach all others, or those they are for", async () => {
    const there = await Promise.all(servers.map(async (s) => (await s.metrics()).windlass_sfu_participants));
    assert.deepEqual(there.sort(), [1, 2], "they are on both servers");
    await ana.evaluate(() => Promise.all([window.call.send("chat", "Tea? ☕"), window.call.send("pen", Uint8Array.of(0, 1, 255), { to: window.named("Bo") })]));
    await cy.evaluate(() => window.call.send("chat", "Yes", { to: [window.named("Ana"), window.named("Bo").id], reliable: false }));
    for (const [page, expected] of [
      [ana, [["Cy", "chat", "Yes"]]],
      [bo, [["Ana", "chat", "Tea? ☕"], ["Ana", "pen", [0, 1, 255]], ["Cy", "chat", "Yes"]]],
      [cy, [["Ana", "chat", "Tea? ☕"]]],
    ]) {
      await until(async () => (await heard(page)).length === expected.length, `${expected.length} messages are heard`);
      assert.deepEqual((await heard(page)).sort(), expected);
    }
  });

  test("what is too large, for nobody, or of no topic, is refused with a code", async () => {
    const codes = await ana.evaluate(() => {
      const { call, result } = window;
      return Promise.all([
        result(call.send("chat", "x".repeat(16 * 1024))),
        result(call.send("chat", "x".repeat(16 * 1024 + 1))),
        result(call.send("chat", "x", { to: "p1" })),
        result(call.send("a chat", "x")),
        result(call.setAttributes({ hand: "x".repeat(257) })),
      ]);
    });
    assert.deepEqual(codes, ["done", "too_large", "unknown_participant", "bad_option", "too_large"]);
  });

  test("a track over the limit is refused with a code, and the call goes on with the others", async () => {
    const { codes, sent, lost } = await ana.evaluate(async () => {
      const { call, result } = window;
      let lost = 0;
      call.on("reconnecting", () => lost++);
      const { stream } = new AudioContext().createMediaStreamDestination();
      const tones = Array.from({ length: 8 }, () => stream.getAudioTracks()[0].clone());
      const codes = [];
      // The microphone is the first of eight that are allowed.
      for (const [n, tone] of tones.entries()) codes.push(await result(call.publish(tone, { name: `tone-${n}` })));
      codes.push(await result(call.send("chat", "Still here")));
      const sent = call.published.filter(({ id }) => id !== null).map(({ name }) => name);
      await Promise.all(call.published.filter(({ name }) => name !== "microphone").map((tone) => call.unpublish(tone)));
      return { codes, sent, lost };
    });
    assert.deepEqual(codes, [...Array(7).fill("done"), "too_large", "done"]);
    assert.deepEqual([sent, lost], [["microphone", ...Array.from({ length: 7 }, (_, n) => `tone-${n}`)], 0]);
  });

  test("two hundred messages at once come in order, as fast as the server takes them", async () => {
    const codes = await bo.evaluate(() => Promise.all(Array.from({ length: 200 }, (_, n) => window.result(window.call.send("count", `${n}`)))));
    assert.deepEqual(new Set(codes), new Set(["done"]));
    for (const page of [ana, cy]) assert.deepEqual(await all(page, "count", 200), numbers(0, 200));
  });

  test("attributes and names are known to who is there and who comes later", async () => {
    await ana.evaluate(() => window.call.setAttributes({ hand: "up" }));
    await until(() => bo.evaluate(() => window.changed.length > 0), "Bo is told");
    assert.deepEqual(await bo.evaluate(() => window.changed), [["Ana", { hand: "up" }]]);
    const dee = await join(servers[1], "Dee");
    await until(async () => (await people(dee)) === "Ana,Bo,Cy", "Dee sees all");
    assert.deepEqual(await dee.evaluate(() => ["Ana", "Bo", "Cy"].map((name) => window.named(name).attributes)), [{ hand: "up" }, {}, { pen: "blue" }]);
    await dee.evaluate(() => window.call.setName("Dora"));
    await until(async () => (await people(ana)) === "Bo,Cy,Dora", "Ana is told");
    await dee.evaluate(() => window.call.leave());
  });

  test("how loud somebody is, is known where it is heard", async () => {
    await until(() => bo.evaluate(() => window.named("Ana").level > 0.2), "Bo hears the beeps of Ana's microphone", 10_000);
    assert.equal(await bo.evaluate(() => window.named("Cy").level), 0);
  });

  test("where a socket is lost, what the server had not answered comes once, before what was sent meanwhile", async () => {
    const codes = await ana.evaluate(async () => {
      const { call, result } = window;
      const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      const socket = window.sockets.findLast(({ readyState }) => readyState === 1);
      const results = [];
      // The server gets these and sends them on, but its answers are lost.
      socket.onmessage = null;
      for (let n = 0; n < 5; n++) results.push(result(call.send("lost", `${n}`)));
      results.push(result(call.send("lost", "pointer", { reliable: false })));
      await pause(500);
      socket.close();
      await new Promise((resolve) => call.on("reconnecting", resolve));
      for (let n = 5; n < 10; n++) results.push(result(call.send("lost", `${n}`)));
      results.push(result(call.send("lost", "late pointer", { reliable: false })));
      return Promise.all(results);
    });
    assert.deepEqual(codes, [...Array(5).fill("done"), "connection_lost", ...Array(5).fill("done"), "connection_lost"]);
    const expected = [...numbers(0, 5), "pointer", ...numbers(5, 10)];
    for (const page of [bo, cy]) {
      assert.deepEqual(await all(page, "lost", expected.length), expected);
      await until(() => page.evaluate(() => window.named("Ana")?.attributes.hand === "up"), "her hand is up still");
    }
  });

  test("where a server is lost, the messages of its participant come once and in order at the other", async () => {
    const at = (page) => page.evaluate(() => window.sockets.findLast(({ readyState }) => readyState === 1).url);
    const pages = [ana, bo, cy];
    let where = await Promise.all(pages.map(at));
    if (new Set(where).size === 1) {
      // She came back where the others are.
      pages.push(await join(servers[0], "Eve"));
      where = await Promise.all(pages.map(at));
    }
    // One who is alone at its server, and one of the others.
    const lone = where.findIndex((url) => where.filter((other) => other === url).length === 1);
    const [sender, witness] = [pages[lone], pages[(lone + 1) % pages.length]];
    const server = servers.find(({ ports }) => where[lone].includes(`:${ports.http}/`));
    const send = (from, to) =>
      sender.evaluate(([from, to]) => Promise.all(Array.from({ length: to - from }, (_, n) => window.result(window.call.send("crash", `${from + n}`)))), [from, to]);
    assert.deepEqual(new Set(await send(0, 10)), new Set(["done"]));
    assert.deepEqual(await all(witness, "crash", 10), numbers(0, 10));
    // It takes no more of what comes.
    process.kill(server.pid, "SIGSTOP");
    const [unanswered, meanwhile] = [send(10, 20), sleep(300).then(() => send(20, 30))];
    await sleep(200);
    const begun = Date.now();
    process.kill(server.pid, "SIGKILL");
    assert.deepEqual(new Set([...(await unanswered), ...(await meanwhile)]), new Set(["done"]));
    console.log(`data: all messages were taken ${Date.now() - begun} ms after a server was killed`);
    assert.deepEqual(await all(witness, "crash", 30), numbers(0, 30));
  });
});
