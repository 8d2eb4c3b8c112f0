import assert from "node:assert/strict";
import { test } from "node:test";
import { Servers } from "./servers.js";

const OWN = "wss://calls.example/ws";
const NODE = "wss://sfu-1.calls.example/ws";
const NEW = "wss://sfu-9.calls.example/ws";
const EVIL = "wss://evil.example/ws";

test("a call goes where the page's own server says", () => {
  const servers = new Servers(OWN);
  assert.equal(servers.isAllowed(NODE), false);
  servers.named(OWN, [NODE]);
  assert.equal(servers.goTo(NODE), NODE);
  assert.deepEqual(servers.first(4), [NODE, OWN]);
});

test("where another server names one that is not known, the page's own is asked", () => {
  const servers = new Servers(OWN);
  servers.named(OWN, [NODE]);
  servers.at(NODE, []);
  servers.named(NODE, [EVIL, NEW]);
  assert.equal(servers.isAllowed(EVIL), false);
  assert.equal(servers.goTo(EVIL), OWN);
  assert.deepEqual(servers.first(4), [OWN, NODE]);
  // The page's own server names the new one.
  servers.named(OWN, [NEW]);
  assert.equal(servers.goTo(NEW), NEW);
});

test("what a server offers for when it is lost is taken if the page's own has named it, and that one is the last", () => {
  const servers = new Servers(OWN);
  servers.named(OWN, [NODE, NEW]);
  servers.at(NODE, [EVIL, NEW]);
  assert.deepEqual(servers.first(4), [NODE, NEW, OWN]);
  assert.equal(servers.second, NEW);
  servers.postpone(1);
  assert.deepEqual(servers.first(4), [NODE, OWN, NEW]);
});

test("a page that came by TLS is sent nowhere without", () => {
  const servers = new Servers(OWN);
  servers.named(OWN, ["ws://sfu-1.calls.example/ws", "ws://calls.example/ws"]);
  assert.equal(servers.goTo("ws://sfu-1.calls.example/ws"), OWN);
  assert.equal(servers.isAllowed("ws://calls.example/ws"), false);
});

test("a page without TLS may be sent to either", () => {
  const servers = new Servers("ws://localhost:7880/ws");
  servers.named("ws://localhost:7880/ws", ["ws://localhost:7890/ws", NODE]);
  assert.ok(servers.isAllowed("ws://localhost:7890/ws") && servers.isAllowed(NODE));
  assert.equal(servers.isAllowed("ws://localhost:7891/ws"), false);
});

test("what is no WebSocket's address is gone to by nobody", () => {
  const servers = new Servers(OWN);
  const wrong = [
    "https://sfu-1.calls.example/ws",
    "wss://me:secret@sfu-1.calls.example/ws",
    "javascript:1",
    "",
    "sfu-1",
  ];
  servers.named(OWN, wrong);
  for (const url of wrong) assert.equal(servers.isAllowed(url), false, url);
});
