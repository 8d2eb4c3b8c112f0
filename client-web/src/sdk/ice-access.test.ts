import assert from "node:assert/strict";
import { test } from "node:test";
import { IceAccess } from "./ice-access.js";
import { parseServerMessage } from "./protocol.js";

test("what ends within a minute is asked for again, and what does not end never", () => {
  let now = 0;
  const access = new IceAccess({ servers: [], ttl_s: 600 }, () => now);
  now = 539_000;
  assert.equal(access.expireSoon(), false);
  now = 541_000;
  assert.equal(access.expireSoon(), true);
  access.renew({ servers: [], ttl_s: 600 });
  assert.equal(access.expireSoon(), false);
  access.renew({ servers: [] });
  now = 1e12;
  assert.equal(access.expireSoon(), false);
});

test("one waits for the new ones, and not for ever", async () => {
  const access = new IceAccess({ servers: [], ttl_s: 0 });
  let asked = 0;
  const waiting = access.renewed(() => asked++, 10_000);
  access.renew({ servers: [], ttl_s: 600 });
  await waiting;
  await access.renewed(() => asked++, 5);
  assert.equal(asked, 2);
});

test("servers are read as the browser takes them, and a welcome without any has none", () => {
  const servers = [{ urls: ["turn:a"], username: "1:p1", credential: "pw" }, { urls: ["stun:a"] }];
  const told = parseServerMessage(JSON.stringify({ type: "ice_servers", ice: { servers, ttl_s: 60 } }));
  assert.deepEqual(told, { type: "ice_servers", ice: { servers, ttl_s: 60 } });
  assert.equal(parseServerMessage('{"type":"ice_servers","ice":{"servers":[{"urls":"turn:a"}]}}'), null);
  const room = {
    participant: "p1",
    room: "r",
    loopback: false,
    budget_ms: 200,
    scale: 2,
    participants: [],
    tracks: [],
  };
  const welcome = parseServerMessage(JSON.stringify({ type: "welcome", ...room }));
  assert.ok(welcome?.type === "welcome" && welcome.ice.servers.length === 0);
});
