// Calls over IPv6, and of a server that has both families.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { blackHole, ipv6 } from "../support/paths.mjs";
import { callOver } from "../support/reach.mjs";
import { skipped } from "../support/skips.mjs";

const v6 = ipv6();

describe("IPv6", { only: true, skip: skipped("IPv6", v6 === undefined && "this machine has no IPv6 address") }, () => {
  test("one socket carries a call over IPv6, and TCP is advertised beside it", { only: true }, async () => {
    const { pairs, seen, errors } = await callOver({ udpHost: "[::]", args: ["--advertise", v6] });
    console.log("ipv6:", JSON.stringify({ pairs, seen }));
    for (const { remote } of pairs) assert.deepEqual([remote.protocol, remote.address], ["udp", v6]);
    assert.ok(seen.fps >= 8, JSON.stringify(seen));
    assert.deepEqual(errors, []);
  });

  test("where UDP is blocked, TCP goes over IPv6", async () => {
    const hole = await blackHole(v6);
    const { pairs, seen } = await callOver({
      udpHost: "[::]",
      args: ["--advertise", `[${v6}]:${hole.port}`],
      advertiseTcp: v6,
    });
    hole.close();
    console.log("tcp over ipv6:", JSON.stringify({ pairs, seen }));
    for (const { remote } of pairs) assert.deepEqual([remote.protocol, remote.address], ["tcp", v6]);
    assert.ok(seen.fps >= 8, JSON.stringify(seen));
  });

  test("a server of both families is told by both, and either carries a call", async () => {
    const { pairs, seen } = await callOver({ udpHost: "[::]", args: ["--advertise", v6, "--advertise", "127.0.0.1"] });
    console.log("both families:", JSON.stringify({ pairs, seen }));
    for (const { remote } of pairs) assert.ok([v6, "127.0.0.1"].includes(remote.address), remote.address);
    assert.ok(seen.fps >= 8, JSON.stringify(seen));
  });
});
