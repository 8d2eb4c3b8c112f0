// A call over HTTPS at an address that is not localhost, where pages get a camera by nothing else.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { after, before, describe, test } from "node:test";
import { nativeFrames, publish, subscribe, until } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

/** An address of this machine that is not its loopback's, if it has one. */
const address = Object.values(networkInterfaces())
  .flat()
  .find((a) => a.family === "IPv4" && !a.internal)?.address;

describe("a server with a development certificate", { only: true, skip: skipped("a server with a development certificate", !address && "no address but localhost") }, () => {
  let server;
  let publisher;
  let viewer;

  before(async () => {
    // The certificate is the server's own.
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    server = await startServer({ host: address, secure: true, args: ["--tls=self-signed", "--open-rooms"] });
  });

  after(async () => {
    await Promise.all([publisher?.close(), viewer?.close()]);
    await server?.stop();
  });

  test("gives pages a camera and carries their calls", { only: true }, async () => {
    publisher = await publish(server, {});
    const seen = await publisher.page.evaluate(() => [location.protocol, location.hostname, isSecureContext]);
    assert.deepEqual(seen, ["https:", address, true]);
    viewer = await subscribe(server);
    await until(async () => (await nativeFrames(viewer.page)) > 30, "the viewer sees the camera", 30_000);
    const metrics = await server.metrics();
    assert.ok(metrics['windlass_tls_handshakes_total{outcome="done"}'] > 2, "secure connections");
    assert.equal(metrics["windlass_sfu_participants"], 2);
  });
});
