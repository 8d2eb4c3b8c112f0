import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Moved } from "./errors.js";
import { handshake, type JoinRequest } from "./handshake.js";
import { SignalSocket } from "./socket.js";
import { pass, startClock, stopClock } from "./testing/clock.js";
import { FakeServer, fatal, startServers, stopServers } from "./testing/server.js";

beforeEach(() => {
  startClock();
  startServers();
});

afterEach(() => {
  stopServers();
  stopClock();
});

/** Opens a socket to `server` and joins by it. */
async function joining(server: FakeServer, changes: Partial<JoinRequest> = {}) {
  const socket = await SignalSocket.open(server.url);
  const waits: string[] = [];
  const request: JoinRequest = {
    room: "standup",
    name: "Ada",
    attributes: {},
    loopback: false,
    token: undefined,
    seat: undefined,
    ticket: undefined,
    waiting: () => waits.push("lobby"),
    signal: undefined,
    ...changes,
  };
  return { socket, waits, welcome: handshake(server.url, socket, request) };
}

test("a join carries its token, ticket and seat where it has them", async () => {
  const server = new FakeServer("a");
  const plain = await joining(server);
  assert.equal((await plain.welcome).participant, "a-1");
  assert.deepEqual(server.last("join"), {
    type: "join",
    version: 1,
    room: "standup",
    name: "Ada",
    loopback: false,
    anchor_codecs: ["htj2k"],
  });
  const full = await joining(server, { token: "T", ticket: "K", seat: "S" });
  await full.welcome;
  const { token, ticket, seat } = server.last("join") ?? {};
  assert.deepEqual([token, ticket, seat], ["T", "K", "S"]);
  plain.socket.close();
  full.socket.close();
});

test("an error rejects the join with its code", async () => {
  const server = new FakeServer("a");
  server.answer = fatal("room_full");
  const { socket, welcome } = await joining(server);
  await assert.rejects(welcome, { code: "room_full" });
  socket.close();
});

test("a server that does not have the room names the one that does", async () => {
  const server = new FakeServer("a");
  server.answer = { type: "moved", url: "wss://b.example/ws", others: ["wss://c.example/ws"] };
  const { socket, welcome } = await joining(server);
  await assert.rejects(welcome, (error) => {
    assert.ok(error instanceof Moved);
    assert.deepEqual([error.url, error.by, error.others], ["wss://b.example/ws", server.url, ["wss://c.example/ws"]]);
    return true;
  });
  socket.close();
});

test("a server that does not answer within 8 s is unreachable", async () => {
  const server = new FakeServer("a");
  server.silent = true;
  const { socket, welcome } = await joining(server);
  const rejected = assert.rejects(welcome, { code: "unreachable" });
  await pass(8000);
  await rejected;
  socket.close();
});

test("the lobby has no time limit, and ends with the welcome", async () => {
  const server = new FakeServer("a");
  server.answer = { type: "waiting" };
  const { socket, waits, welcome } = await joining(server);
  await pass(30_000);
  assert.deepEqual(waits, ["lobby"]);
  server.send(server.makeWelcome());
  assert.equal((await welcome).room, "standup");
  socket.close();
});

test("a page whose `waiting` throws is reported to, and waits all the same", async () => {
  const reported: unknown[] = [];
  Object.assign(globalThis, { reportError: (error: unknown) => reported.push(error) });
  const server = new FakeServer("a");
  server.answer = { type: "waiting" };
  const planted = new Error("planted");
  const waiting = () => {
    throw planted;
  };
  const { socket, welcome } = await joining(server, { waiting });
  await pass(10_000);
  assert.deepEqual(reported, [planted]);
  server.send(server.makeWelcome());
  assert.equal((await welcome).room, "standup");
  socket.close();
});

test("a moderator's refusal in the lobby rejects the join", async () => {
  const server = new FakeServer("a");
  server.answer = { type: "waiting" };
  const { socket, welcome } = await joining(server);
  server.send(fatal("refused"));
  await assert.rejects(welcome, { code: "refused" });
  socket.close();
});

test("an abort leaves the lobby and tells the server", async () => {
  const server = new FakeServer("a");
  server.answer = { type: "waiting" };
  const abort = new AbortController();
  const { socket, welcome } = await joining(server, { signal: abort.signal });
  abort.abort();
  await assert.rejects(welcome, { code: "left" });
  assert.deepEqual(server.types, ["join", "leave"]);
  socket.close();
});

test("a socket that ends rejects the join", async () => {
  const server = new FakeServer("a");
  server.silent = true;
  const { welcome } = await joining(server);
  server.cut();
  await assert.rejects(welcome, { code: "connection_lost" });
});
