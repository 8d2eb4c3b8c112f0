// A publisher's knobs follow its uplink in a call (`--captured` with `adapt`): what the server says reaches the sender's parameters, and is
// undone when nobody watches any more.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { nativeFrames, publish, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** By RID: whether the camera's layer is sent, its most kbit/s and its most frames a second. */
const layers = (page) =>
  page.evaluate(() => {
    const camera = window.senders.find((sender) => sender.track?.kind === "video" && sender.getParameters().encodings.length > 1);
    const of = (e) => [e.rid, { active: e.active, kbps: Math.round(e.maxBitrate / 1000), fps: e.maxFramerate ?? null }];
    return camera === undefined ? null : Object.fromEntries(camera.getParameters().encodings.map(of));
  });

/** Keeps every sender that the page makes. */
const keepSenders = () => {
  window.senders = [];
  const add = RTCPeerConnection.prototype.addTransceiver;
  RTCPeerConnection.prototype.addTransceiver = function (...args) {
    const made = add.apply(this, args);
    window.senders.push(made.sender);
    return made;
  };
};

describe("knobs that follow the uplink", () => {
  let server;
  let publisher;
  let viewer;

  before(async () => {
    const scene = makeScene({ clip: "d13" });
    server = await startServer({ args: ["--captured=layers,stills,learn,adapt", "--no-congestion-control"], path: {} });
    publisher = await publish(server, scene, { layers: "qh", query: "&detail=1", init: keepSenders });
    viewer = await subscribe(server);
    await until(async () => (await nativeFrames(viewer.page)) > 30, "the picture is received", 30_000);
  });

  after(async () => {
    await Promise.all([viewer?.close(), publisher?.close()]);
    await server?.stop();
  });

  test("the server's word reaches the sender", async () => {
    await until(async () => (await server.metrics()).windlass_enhancer_knobs_total >= 1, "the server tells what to send", 30_000);
    const told = await until(async () => {
      const { h } = await layers(publisher.page);
      return h.active && h.kbps <= 500 && h;
    }, "the half layer is sent by it", 10_000);
    assert.ok(told.fps !== null, JSON.stringify(told));
  });

  test("the quarter layer, which nobody holds, leaves its bits to the half layer", async () => {
    const small = await until(async () => {
      const { q } = await layers(publisher.page);
      return q.kbps === 30 && q;
    }, "the quarter layer stands by", 30_000);
    assert.ok(small.active, "whoever needs it has it at once");
  });

  test("less uplink means fewer bits for the low layer, which goes on", async () => {
    const { h: before } = await layers(publisher.page);
    server.proxy.uplinkKbps = 130;
    const low = await until(async () => {
      const { q, h } = await layers(publisher.page);
      return (!h.active || h.kbps < Math.min(130, before.kbps)) && { q, h };
    }, "it is told to send less", 60_000);
    const frames = await nativeFrames(viewer.page);
    await until(async () => (await nativeFrames(viewer.page)) > frames + 30, "frames go on", 30_000);
    console.log(`knobs at 130 kbit/s: ${JSON.stringify(low)}, before ${JSON.stringify(before)}`);
  });

  test("all is undone when nobody watches", async () => {
    await viewer.close();
    // On an uplink that stays narrow the page's own choice goes on: the layer that leads.
    server.proxy.uplinkKbps = Infinity;
    const free = await until(async () => {
      const { q, h } = await layers(publisher.page);
      return q.active && h.active && q.kbps === 150 && h.kbps === 500 && { q, h };
    }, "its layers are as the page has them", 30_000);
    assert.deepEqual([free.q.active, free.h.active], [true, true]);
    assert.deepEqual(publisher.errors, []);
  });
});
