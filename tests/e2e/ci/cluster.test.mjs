// Three servers that share rooms out by NATS: a room lives on one of them, whoever is asked for it sends one there, and where it is lost
// its participants are on another soon, by the SDK alone.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { nativeFrames, publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { startNats } from "../support/nats.mjs";
import { pictureGap, roomEvents, watchPicture, watchRoom } from "../support/picture.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

describe("a room on one of three servers", () => {
  let nats;
  let servers;
  let keeper;
  let publisher;
  let viewer;
  let silent = -1;

  const participants = () => Promise.all(servers.map(async (s, n) => (s.alive() && n !== silent ? (await s.metrics()).windlass_sfu_participants : 0)));
  const owner = async () => {
    const there = await participants();
    return there.filter((n) => n > 0).length === 1 ? there.findIndex((n) => n > 0) : -1;
  };

  /** Milliseconds until the viewer is shown new frames by a server that is none of `not`. */
  const backElsewhere = async (begun, not) => {
    await until(async () => ![-1, not].includes(await owner()), "both are on another server", 20_000);
    const seen = await nativeFrames(viewer.page);
    await until(async () => (await nativeFrames(viewer.page)) > seen, "frames come", 10_000);
    return Date.now() - begun;
  };

  before(async () => {
    const scene = makeScene(fewFrames);
    nats = await startNats();
    const args = (ports) => ["--device=off", "--nats", nats.url, "--cluster-token", "a-cluster-of-these-tests", "--node-url", `ws://localhost:${ports.http}/ws`, "--drain-timeout", "10s"];
    servers = await Promise.all([0, 1, 2].map(() => startServer({ args })));
    const known = async (s) => (await s.metrics()).windlass_cluster_nodes === 3;
    for (const server of servers) await until(() => known(server), "each knows three servers", 10_000);
    // Whoever comes first decides where the room is; the others' pages are the third server's.
    keeper = await subscribe(servers[0], { name: "Keeper" });
    publisher = await publish(servers[2], scene, { layers: "qh" });
    viewer = await subscribe(servers[2]);
    await until(async () => (await nativeFrames(viewer.page)) > 30, "the picture is received", 30_000);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await keeper?.close();
    for (const server of servers ?? []) if (server.alive()) await server.stop();
    nats?.stop();
  });

  test("who comes by another server is sent to the room's own", async () => {
    assert.deepEqual(await participants(), [3, 0, 0]);
    await keeper.close();
  });

  test("where the server is lost, both are on another soon and see each other", async () => {
    const begun = Date.now();
    process.kill(servers[0].pid, "SIGKILL");
    const took = await backElsewhere(begun, 0);
    console.log(`cluster: frames again ${took} ms after the server was killed`);
    assert.ok((await remote(viewer.page)) !== undefined);
    assert.ok(took < 10_000, `${took} ms`);
  });

  test("where the server says nothing any more, as one whose machine has lost its power, both are on another soon", async () => {
    const from = await owner();
    const begun = Date.now();
    process.kill(servers[from].pid, "SIGSTOP");
    silent = from;
    const took = await backElsewhere(begun, from);
    console.log(`cluster: frames again ${took} ms after the server fell silent`);
    process.kill(servers[from].pid, "SIGCONT");
    silent = -1;
    assert.ok(took < 10_000, `${took} ms`);
    await until(async () => (await participants()).filter((n) => n > 0).length === 1, "nobody is left where they were", 20_000);
  });

  test("a server that is to end gives its rooms to others first, and the picture goes on", async () => {
    const from = await owner();
    for (const tab of [viewer, publisher]) await watchRoom(tab.page);
    await watchPicture(viewer.page);
    await sleep(3000);
    const before = await pictureGap(viewer.page);
    const track = await remote(viewer.page);
    process.kill(servers[from].pid, "SIGTERM");
    await until(() => !servers[from].alive(), "it has ended", 15_000);
    assert.notEqual(await owner(), from);
    const moving = await pictureGap(viewer.page);
    console.log(`cluster: longest time without a new picture in ms: ${before} as a rule, ${moving} while the server ended`);
    assert.ok(moving < 1000, `${moving} ms`);
    for (const tab of [viewer, publisher]) assert.deepEqual(await roomEvents(tab.page), { reconnecting: 0, moved: 1 });
    assert.notEqual((await remote(viewer.page)).id, track.id);
    const people = (page) => page.evaluate(() => [window.windlass.room.participants.length, document.querySelectorAll(".tile").length]);
    assert.deepEqual(await people(viewer.page), [1, 1]);
  });
});

describe("two servers without NATS", () => {
  let nats;
  let servers;
  let publisher;
  let viewer;

  const of = (metric) => Promise.all(servers.map(async (s) => (await s.metrics())[metric]));

  before(async () => {
    nats = await startNats();
    const args = (ports) => ["--device=off", "--nats", nats.url, "--cluster-token", "a-cluster-of-these-tests", "--node-url", `ws://localhost:${ports.http}/ws`];
    servers = await Promise.all([0, 1].map(() => startServer({ args })));
    await until(async () => (await of("windlass_cluster_nodes")).every((n) => n === 2), "each knows two servers", 10_000);
    nats.stop();
    await until(async () => (await of("windlass_cluster_nats_connected")).every((n) => n === 0), "both are cut off", 10_000);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    for (const server of servers ?? []) if (server.alive()) await server.stop();
    nats?.stop();
  });

  test("a new room is served by whoever is asked, and is one again when NATS is back, without a break", async () => {
    viewer = await subscribe(servers[0], { room: "new" });
    publisher = await publish(servers[1], makeScene(fewFrames), { room: "new", layers: "qh" });
    await sleep(2000);
    assert.deepEqual(await of("windlass_sfu_participants"), [1, 1]);
    assert.equal(await remote(viewer.page), undefined);
    for (const tab of [viewer, publisher]) await watchRoom(tab.page);
    nats = await startNats(nats.port);
    const begun = Date.now();
    await until(async () => (await nativeFrames(viewer.page)) > 10, "the viewer sees the publisher", 20_000);
    console.log(`cluster: a room on two servers was one again ${Date.now() - begun} ms after NATS`);
    await until(async () => (await of("windlass_sfu_participants")).sort().join() === "0,2", "all are on one server", 10_000);
    const told = await Promise.all([viewer, publisher].map(({ page }) => roomEvents(page)));
    assert.deepEqual(told.map((t) => t.reconnecting), [0, 0]);
    assert.deepEqual(told.map((t) => t.moved).sort(), [0, 1]);
    assert.deepEqual((await of("windlass_cluster_rooms")), [1, 1]);
  });
});
