/** Messages and attributes over the sessions of a call. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { connected, endCalls, makeCall } from "./testing/call.js";
import { pass, startClock, stopClock } from "./testing/clock.js";
import { audio, FakeServer, fatal, type Json, startServers, stopServers } from "./testing/server.js";

const ADA = { id: "ada", name: "Ada" };
const BO = { id: "bo", name: "Bo" };

beforeEach(startClock);
beforeEach(startServers);
afterEach(endCalls);
afterEach(stopServers);
afterEach(stopClock);

/** A message of a participant, as a server sends it. */
const data = (from: string, number: number, text: string): Json => ({
  type: "data",
  from,
  seq: number,
  number,
  topic: "chat",
  text,
});

const sent = (server: FakeServer) => server.all("send").map(({ text, number, to }) => [text, number, to]);

/** What became of promises, in words. */
function results() {
  const list: string[] = [];
  const watch = (name: string, promise: Promise<unknown>) =>
    void promise.then(
      () => list.push(name),
      ({ code }: { code: string }) => list.push(`${name}: ${code}`),
    );
  return { watch, seen: () => list.splice(0) };
}

test("a message right after the join is sent once the page knows who is there", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA];
  const { call } = makeCall(server);
  const { watch, seen } = results();
  await call.start();
  watch("sent", call.send("chat", "Tea?", {}));
  watch("pointer", call.send("chat", "x", { reliable: false }));
  assert.deepEqual(sent(server), []);
  await pass(50);
  assert.deepEqual(sent(server), [
    ["Tea?", 1, undefined],
    ["x", 2, undefined],
  ]);
  assert.deepEqual(seen(), ["sent", "pointer"]);
});

test("what is sent wrongly is refused before it is sent", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA];
  const { call } = await connected(server);
  await pass(50);
  await assert.rejects(call.send("chat", "x".repeat(16 * 1024 + 1), {}), { code: "too_large" });
  await assert.rejects(call.send("a topic", "x", {}), { code: "bad_option" });
  await assert.rejects(call.send("chat", "x", { to: "nobody" }), { code: "unknown_participant" });
  await call.send("chat", "x", { to: "ada" });
  assert.deepEqual(sent(server), [["x", 1, ["ada"]]]);
  server.refusals.push("rate_limited");
  await assert.rejects(call.send("chat", "x", {}), { code: "rate_limited" });
});

test("without the right nothing is sent, and with it again", async () => {
  const server = new FakeServer("a");
  server.welcome = { grants: ["subscribe"] };
  const { call } = await connected(server);
  await assert.rejects(call.send("chat", "x", {}), { code: "forbidden" });
  await assert.rejects(call.describe({ hand: "up" }), { code: "forbidden" });
  server.send({ type: "grants", grants: ["subscribe", "data"] });
  await pass(50);
  await call.send("chat", "x", {});
  await call.describe({ hand: "up" });
});

test("what a lost socket did not answer is sent again after the reconnect, and what came meanwhile follows", async () => {
  const server = new FakeServer("a");
  server.welcome = { seat: "S" };
  const { call } = await connected(server);
  const { watch, seen } = results();
  await pass(50);
  server.mute = true;
  watch("1", call.send("chat", "1", {}));
  watch("pointer", call.send("chat", "x", { reliable: false }));
  await pass(50);
  server.cut();
  await pass(50);
  watch("2", call.send("chat", "2", {}));
  watch("late pointer", call.send("chat", "x", { reliable: false }));
  await pass(50);
  assert.deepEqual(seen(), ["pointer: connection_lost", "late pointer: connection_lost"]);
  server.received.length = 0;
  server.mute = false;
  await pass(600);
  assert.equal(server.last("join")?.["seat"], "S", "by which receivers know the sender again");
  assert.deepEqual(sent(server), [
    ["1", 1, undefined],
    ["2", 3, undefined],
  ]);
  assert.deepEqual(seen(), ["1", "2"]);
});

test("after a move messages go to the other server, once the former one has answered", async () => {
  const [a, b] = [new FakeServer("a"), new FakeServer("b")];
  const { call, transports } = await connected(a);
  await pass(50);
  a.mute = true;
  const { watch, seen } = results();
  watch("1", call.send("chat", "1", {}));
  await pass(50);
  a.send({ type: "moved", url: b.url, ticket: "T" });
  await pass(50);
  watch("2", call.send("chat", "2", {}));
  transports.latest.up();
  await pass(1000);
  assert.equal(call.session?.url, b.url);
  watch("3", call.send("chat", "3", {}));
  await pass(50);
  assert.deepEqual([sent(a).length, sent(b)], [1, []]);
  a.send({ type: "done", id: a.last("send")?.["id"] });
  await pass(50);
  assert.deepEqual(sent(b), [
    ["2", 2, undefined],
    ["3", 3, undefined],
  ]);
  assert.deepEqual(seen(), ["1", "2", "3"]);
});

test("what waits when the call ends is refused", async () => {
  const server = new FakeServer("a");
  const { call } = await connected(server);
  const { watch, seen } = results();
  await pass(50);
  server.mute = true;
  watch("1", call.send("chat", "1", {}));
  server.send(fatal("removed"));
  server.cut();
  await pass(50);
  watch("2", call.send("chat", "2", {}));
  await pass(50);
  assert.deepEqual(seen(), ["1: removed", "2: ended"]);
});

test("messages that come before the participants are announced follow them", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA];
  const { call, seen } = makeCall(server);
  await call.start();
  server.send(data("ada", 1, "Tea?"));
  await pass(50);
  assert.deepEqual(seen(), ["participantJoined ada", "message ada chat Tea?"]);
});

test("a sender that came back is known, and what it sends again comes once", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA];
  const { seen } = await connected(server);
  seen();
  server.send(data("ada", 1, "one"));
  server.send(data("ada", 2, "two"));
  server.send({ type: "participant_left", participant: "ada" });
  server.send({ type: "participant_joined", participant: "ada2", name: "Ada", was: "ada" });
  server.send(data("ada2", 2, "two"));
  server.send(data("ada2", 3, "three"));
  server.send({ type: "participant_joined", participant: "bo", name: "Bo" });
  server.send(data("bo", 1, "one of Bo"));
  assert.deepEqual(seen(), [
    "message ada chat one",
    "message ada chat two",
    "participantLeft ada",
    "participantJoined ada2",
    "message ada2 was ada chat three",
    "participantJoined bo",
    "message bo chat one of Bo",
  ]);
});

test("during a move each message comes once, by whichever server it comes, also from who moved before", async () => {
  const [a, b] = [new FakeServer("a"), new FakeServer("b")];
  a.participants = [ADA, BO];
  b.participants = [BO, { ...ADA, id: "ada2", was: "ada" }];
  const { call, seen, transports } = await connected(a);
  seen();
  a.send({ type: "moved", url: b.url, ticket: "T" });
  await pass(50);
  b.send(data("bo", 1, "one"));
  a.send(data("bo", 1, "one"));
  b.send(data("ada2", 7, "moved"));
  a.send({ type: "participant_joined", participant: "ada2", name: "Ada", was: "ada" });
  a.send(data("ada2", 7, "moved"));
  a.send(data("bo", 2, "two"));
  transports.latest.up();
  await pass(1000);
  assert.equal(call.session?.url, b.url);
  b.send(data("bo", 2, "two"));
  a.send(data("bo", 3, "three"));
  b.send(data("bo", 3, "three"));
  const messages = seen().filter((line) => line.startsWith("message"));
  assert.deepEqual(messages, [
    "message bo chat one",
    "message ada2 was ada chat moved",
    "message bo chat two",
    "message bo chat three",
  ]);
});

test("a message that cannot be read is passed over", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA];
  const { seen } = await connected(server);
  seen();
  server.send({ type: "data", from: "ada", seq: 1, topic: "pen", bytes: "?" });
  server.send({ type: "data", from: "ada", seq: 1, topic: "pen" });
  server.send({ type: "data", from: "ada", seq: "1", topic: "pen", text: "x" });
  server.send({ type: "data", from: "ada", seq: 2, topic: "pen", bytes: "AAH/" });
  assert.deepEqual(seen(), ["message ada pen 0,1,255"]);
});

test("what others say of themselves is reported, by those who wait for their turn too", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA];
  const { call, seen } = await connected(server);
  seen();
  const change = { type: "participant_changed", name: "Ada", attributes: { hand: "up" } };
  server.send({ ...change, participant: "ada" });
  server.send({ ...change, participant: "nobody" });
  server.send({ type: "participant_joined", participant: "ada2", name: "Ada", was: "ada" });
  server.send({ ...change, participant: "ada2", name: "Countess" });
  assert.deepEqual(seen(), ["participantChanged ada"]);
  assert.deepEqual(call.session?.participants, [{ ...ADA, attributes: { hand: "up" } }]);
  server.send({ type: "participant_left", participant: "ada" });
  assert.deepEqual(seen(), ["participantJoined ada2", "participantLeft ada"]);
  assert.deepEqual(call.session?.participants[0]?.name, "Countess");
});

test("name and attributes are said again at each join, and to both servers during a move", async () => {
  const [a, b] = [new FakeServer("a"), new FakeServer("b")];
  const { call } = await connected(a);
  assert.equal(a.last("join")?.["attributes"], undefined);
  await call.describe({ hand: "up" }, "Countess");
  assert.deepEqual(a.last("attributes")?.["set"], { hand: "up" });
  a.welcome = { attributes: { hand: "up", pen: "red" } };
  a.cut();
  const later = call.describe({ pen: "red" });
  await pass(600);
  const joined = a.last("join");
  assert.deepEqual([joined?.["name"], joined?.["attributes"]], ["Countess", { hand: "up", pen: "red" }]);
  await later;
  a.received.length = 0;
  b.welcome = { attributes: { hand: "up", pen: "red" } };
  a.send({ type: "moved", url: b.url, ticket: "T" });
  await pass(50);
  assert.deepEqual(b.last("join")?.["attributes"], { hand: "up", pen: "red" });
  await call.describe({ hand: null });
  await pass(50);
  assert.deepEqual(
    [a, b].map((server) => server.last("attributes")?.["set"]),
    [{ hand: null }, { hand: null }],
  );
});

test("where the two differ, the switch tells what the successor knows", async () => {
  const [a, b] = [new FakeServer("a"), new FakeServer("b")];
  a.participants = [ADA, BO];
  b.participants = [{ ...ADA, attributes: { hand: "up" } }, BO];
  const { seen, transports } = await connected(a);
  seen();
  a.send({ type: "moved", url: b.url, ticket: "T" });
  await pass(50);
  transports.latest.up();
  await pass(1000);
  assert.deepEqual(seen(), ["participantChanged ada", "moved"]);
});

test("a message of a newcomer at the next server waits until the page knows who that is", async () => {
  const [a, b] = [new FakeServer("a"), new FakeServer("b")];
  a.participants = [ADA];
  b.participants = [ADA];
  a.tracks = [audio("a1", "ada")];
  b.tracks = [audio("b1", "ada")];
  const { call, seen, transports } = await connected(a);
  seen();
  a.send({ type: "moved", url: b.url, ticket: "T" });
  await pass(50);
  for (const id of ["bo", "cy"]) b.send({ type: "participant_joined", participant: id, name: id });
  b.send(data("bo", 1, "one"));
  b.send(data("cy", 1, "by both"));
  assert.deepEqual(seen(), []);
  a.send({ type: "participant_joined", participant: "cy", name: "cy" });
  a.send(data("cy", 1, "by both"));
  b.send(data("cy", 2, "two"));
  assert.deepEqual(seen(), ["participantJoined cy", "message cy chat by both", "message cy chat two"]);
  transports.latest.up();
  await pass(1000);
  assert.equal(call.session?.url, b.url);
  b.send(data("bo", 2, "two"));
  const told = seen().filter((line) => !line.startsWith("track"));
  assert.deepEqual(told, ["participantJoined bo", "message bo chat one", "moved", "message bo chat two"]);
});

test("a change that the next join is refused for does not end the call", async () => {
  const server = new FakeServer("a");
  const { call, profile } = await connected(server);
  const { watch, seen } = results();
  server.cut();
  watch("name", call.describe({}, "Ada\u202e"));
  server.answer = { type: "error", code: "malformed", message: "`name`", hint: "" };
  server.onJoin = () => {
    server.answer = null;
  };
  await pass(600);
  assert.equal(call.session?.url, server.url);
  assert.deepEqual([seen(), profile.wanted.name, server.last("join")?.["name"]], [["name: malformed"], "Me", "Me"]);
});

test("the grant that comes later tells what was said at the join", async () => {
  const server = new FakeServer("a");
  const { profile } = await connected(server);
  server.send({ type: "grants", grants: ["subscribe"] });
  profile.wanted = { name: "Me", attributes: { hand: "up" } };
  server.send({ type: "grants", grants: ["subscribe", "data"] });
  await pass(50);
  assert.deepEqual(server.last("attributes")?.["set"], { hand: "up" });
});
