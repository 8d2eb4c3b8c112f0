// Whoever waits alone in a room has nothing to send or receive. The server lets nobody stay without a connection, so the SDK
// brings one up all the same.
//
// Runs beside any file.
import { test } from "node:test";
import { subscribe, until } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";

test("somebody who waits alone in a room has a connection", async () => {
  const server = await startServer({ args: ["--device=off"] });
  let waiting;
  try {
    waiting = await subscribe(server, { name: "Early" });
    const connected = async () => (await server.metrics()).windlass_sfu_connected === 1;
    await until(connected, "it is connected", 20_000);
  } finally {
    await waiting?.close();
    await server.stop();
  }
});
