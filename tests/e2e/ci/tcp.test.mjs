// A call from a network that lets no UDP through.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { until } from "../support/call.mjs";
import { blackHole, selectedPair } from "../support/paths.mjs";
import { callOver } from "../support/reach.mjs";
import { startServer } from "../support/server.mjs";

describe("a network that lets no UDP through", () => {
  test("the call goes by TCP, both ways, and is enhanced", async () => {
    const hole = await blackHole();
    const { pairs, seen, metrics, errors } = await callOver(
      { args: ["--advertise", `127.0.0.1:${hole.port}`], advertiseTcp: "127.0.0.1" },
      5_000,
    );
    hole.close();
    console.log("tcp:", JSON.stringify({ pairs, seen, swallowed: hole.swallowed() }));
    for (const { local, remote } of pairs) assert.deepEqual([local.protocol, remote.protocol], ["tcp", "tcp"]);
    assert.ok(hole.swallowed() > 0, "UDP was tried, and led nowhere");
    assert.ok(seen.fps >= 8 && seen.frozen < 0.2, JSON.stringify(seen));
    assert.ok(metrics.windlass_sfu_tcp_frames_in_total > 100 && metrics.windlass_sfu_tcp_frames_out_total > 100);
    assert.ok(metrics.windlass_sfu_tcp_connections_open >= 2);
    assert.equal(metrics.windlass_sfu_datagrams_out_total, 0);
    assert.deepEqual(errors, []);
  });

  test("so does a page's that may not use the camera, whose addresses the browser hides behind names", async () => {
    const hole = await blackHole();
    const server = await startServer({ args: ["--advertise", `127.0.0.1:${hole.port}`], advertiseTcp: "127.0.0.1" });
    const noteOffers = () => {
      const { send } = WebSocket.prototype;
      window.offers = [];
      WebSocket.prototype.send = function (text) {
        if (text.includes('"offer"')) window.offers.push(JSON.parse(text).sdp);
        return send.call(this, text);
      };
    };
    const tab = await openPage({ cameraAllowed: false, init: noteOffers });
    try {
      await tab.page.goto(`${server.url}/?room=names&name=Viewer&auto=1&source=none`);
      const paint = () => window.windlass.room.publish(document.createElement("canvas").captureStream(5));
      await until(() => tab.page.evaluate(() => window.windlass?.phase === "call"), "the viewer joins", 20_000);
      await tab.page.evaluate(paint);
      await until(() => selectedPair(tab.page), "media has a path", 20_000);
      await tab.page.evaluate(paint);
      const named = () => tab.page.evaluate(() => window.offers.join("").match(/a=candidate:.*\.local .*/g));
      await until(named, "an offer has names");
      assert.equal((await selectedPair(tab.page)).remote.protocol, "tcp");
      // A path comes first, then the handshake over it.
      const metrics = await until(async () => {
        const metrics = await server.metrics();
        return metrics.windlass_sfu_connected === 1 && metrics;
      }, "media is connected");
      assert.equal(metrics.windlass_sfu_offers_refused_total, 0);
    } finally {
      await tab.close();
      await server.stop();
      hole.close();
    }
  });
});
