// A room that is on three of four servers, because each wants one participant of it: what one publishes is relayed once to each of the others, enhanced
// where it is published.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { enhanced, nativeFrames, publish, sleep, subscribe, until } from "../support/call.mjs";
import { startNats } from "../support/nats.mjs";
import { pictureGap, roomEvents, watchPicture, watchRoom } from "../support/picture.mjs";
import { makeScene, smallFrames } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

describe("a room on three of four servers", () => {
  let nats;
  let worker;
  let servers;
  let publisher;
  let viewers;

  const of = (metric) => Promise.all(servers.map(async (s) => (await s.metrics().catch(() => ({ [metric]: 0 })))[metric]));
  const names = (page) => page.evaluate(() => [...window.windlass.room.participants].map((p) => p.name).sort());
  const goesOn = async (page, what, timeoutMs) => {
    const seen = await nativeFrames(page);
    await until(async () => (await nativeFrames(page)) > seen + 10, what, timeoutMs);
  };

  before(async () => {
    const scene = makeScene(smallFrames);
    nats = await startNats();
    worker = spawn(process.env.WINDLASS_BIN, ["enhance", "--listen", "127.0.0.1:0", "--nats", nats.url, "--cluster-token", "a-cluster-of-these-tests"], { stdio: "inherit" });
    const args = (ports) => ["--no-congestion-control", "--nats", nats.url, "--cluster-token", "a-cluster-of-these-tests", "--node-url", `ws://localhost:${ports.http}/ws`, "--node-listen", "127.0.0.1:0", "--node-max-participants", "1", "--drain-timeout", "10s"];
    servers = await Promise.all([0, 1, 2, 3].map(() => startServer({ args })));
    await until(async () => (await of("windlass_cluster_nodes")).every((n) => n === 4), "each knows four servers", 10_000);
    publisher = await publish(servers[0], scene, { layers: "qh" });
    viewers = [await subscribe(servers[0], { name: "Ben" }), await subscribe(servers[0], { name: "Cora" })];
    for (const { page } of viewers) await until(async () => (await nativeFrames(page)) > 30, "the picture is received", 30_000);
  });

  after(async () => {
    for (const viewer of viewers ?? []) await viewer.close();
    await publisher?.close();
    for (const server of servers ?? []) if (server.alive()) await server.stop();
    worker?.kill("SIGKILL");
    nats?.stop();
  });

  test("a server of it that is to end sends its own to another, and all pictures go on", async () => {
    const at = (await of("windlass_sfu_participants")).findLastIndex((n) => n === 1);
    assert.ok(at > 0);
    for (const tab of [publisher, ...viewers]) await watchRoom(tab.page);
    for (const tab of viewers) await watchPicture(tab.page);
    await sleep(2000);
    const before = await Promise.all(viewers.map(({ page }) => pictureGap(page)));
    process.kill(servers[at].pid, "SIGTERM");
    await until(() => !servers[at].alive(), "it has ended", 15_000);
    const gaps = await Promise.all(viewers.map(({ page }) => pictureGap(page)));
    console.log(`spread: longest time without a new picture in ms: ${before} as a rule, ${gaps} while a server ended`);
    for (const gap of gaps) assert.ok(gap < 1000, `${gap} ms`);
    const told = await Promise.all([publisher, ...viewers].map(({ page }) => roomEvents(page)));
    assert.deepEqual(told.map((t) => t.reconnecting), [0, 0, 0]);
    assert.deepEqual(told.map((t) => t.moved).sort(), [0, 0, 1]);
    servers.splice(at, 1);
  });

  test("each has one of the three, who all see each other", async () => {
    assert.deepEqual(await of("windlass_sfu_participants"), [1, 1, 1]);
    for (const [at, { page }] of [publisher, ...viewers].entries()) {
      const others = ["Publisher", "Ben", "Cora"].filter((_, n) => n !== at).sort();
      await until(async () => JSON.stringify(await names(page)) === JSON.stringify(others), `${others} are seen`, 5_000);
    }
  });

  test("what is published goes once to each server, whoever watches there", async () => {
    const before = [await of("windlass_sfu_rtp_in_total"), await of("windlass_sfu_relay_packets_in_total")];
    await sleep(3000);
    const after = [await of("windlass_sfu_rtp_in_total"), await of("windlass_sfu_relay_packets_in_total")];
    const [[published], [, ...relayed]] = [0, 1].map((n) => after[n].map((v, at) => v - before[n][at]));
    console.log(`spread: ${published} packets published, ${relayed} relayed to the others, in 3 s`);
    for (const packets of relayed) assert.ok(packets > published / 4 && packets <= published * 1.1, `${packets} of ${published}`);
    assert.deepEqual(await of("windlass_relay_links"), [2, 2, 2]);
    assert.deepEqual(await of("windlass_sfu_relay_unknown_total"), [0, 0, 0]);
  });

  test("it is enhanced once, where it is published, for all of them", async () => {
    for (const { page } of viewers) await enhanced(page);
    assert.deepEqual(await of("windlass_sfu_taps"), [1, 0, 0]);
    const before = [await of("windlass_sfu_anchors_in_total"), await of("windlass_sfu_anchors_out_total")];
    const since = async () => {
      const after = [await of("windlass_sfu_anchors_in_total"), await of("windlass_sfu_anchors_out_total")];
      return [0, 1].map((n) => after[n].map((v, at) => v - before[n][at]));
    };
    const begun = performance.now();
    await sleep(2000);
    // Three servers and three browsers leave a busy machine little time for anchors; some are under way when the servers are asked.
    const close = (came) => came.slice(1).every((n) => Math.abs(n - came[0]) <= 2);
    const enough = async () => {
      const [came, went] = await since();
      return came[0] > 3 && close(came) && went[1] > 3 && went[2] > 3 && [came, went];
    };
    const [came, went] = await until(enough, "four anchors went their way", 20_000, async () => ({ counts: await since(), taps: await of("windlass_sfu_taps") }));
    console.log(`spread: anchors in ${Math.round(performance.now() - begun)} ms, by server: ${came} came, ${went} went to viewers`);
    assert.equal(went[0], 0, "nobody watches where it is published");
  });

  test("a server that is lost takes only its own along, and they come again", async () => {
    const at = await Promise.all(viewers.map(({ page }) => page.evaluate(() => window.windlass.room.servers.first(1)[0])));
    const [there, lost] = at[0].includes(`:${servers[1].ports.http}/`) ? [...viewers].reverse() : viewers;
    const begun = Date.now();
    process.kill(servers[1].pid, "SIGKILL");
    await goesOn(there.page, "the other goes on", 5_000);
    await until(async () => (await of("windlass_sfu_participants")).reduce((a, b) => a + b) === 3, "it is back", 15_000);
    await goesOn(lost.page, "frames come again", 15_000);
    console.log(`spread: frames again ${Date.now() - begun} ms after its server was killed`);
  });

  test("where its owner is lost, the room is another's", async () => {
    const begun = Date.now();
    process.kill(servers[0].pid, "SIGKILL");
    await until(async () => (await of("windlass_sfu_participants")).reduce((a, b) => a + b) === 3, "all are on the last server", 15_000);
    for (const { page } of viewers) await goesOn(page, "frames come again", 15_000);
    console.log(`spread: all on the last server ${Date.now() - begun} ms after the others were killed`);
  });
});
