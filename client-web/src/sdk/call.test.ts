import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { WindlassError } from "./errors.js";
import { connected, endCalls, makeCall } from "./testing/call.js";
import { pass, settle, startClock, stopClock } from "./testing/clock.js";
import { audio, FakeServer, fatal, startServers, stopServers, video } from "./testing/server.js";
import { publication } from "./testing/transport.js";

const ADA = { id: "ada", name: "Ada" };
const BO = { id: "bo", name: "Bo" };

beforeEach(startClock);
beforeEach(startServers);
afterEach(endCalls);
afterEach(stopServers);
afterEach(stopClock);

/** A server with Ada and her camera, and one to which the room migrates, where she is already. */
function twoServers(): [a: FakeServer, b: FakeServer] {
  const [a, b] = [new FakeServer("a"), new FakeServer("b")];
  for (const server of [a, b]) {
    server.participants = [ADA];
    server.tracks = [video(`${server.name}-camera`, ADA.id)];
  }
  a.welcome = { others: [b.url] };
  return [a, b];
}

const moveTo = (server: FakeServer, ticket = "T") => ({ type: "moved", url: server.url, ticket });

// Joining.

test("participants and tracks are announced after the caller's turn", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA, BO];
  server.tracks = [audio("t1", ADA.id), video("t2", ADA.id)];
  const { call, seen } = makeCall(server);
  await call.start();
  assert.deepEqual(seen(), []);
  await pass(50);
  assert.deepEqual(seen(), ["participantJoined ada", "participantJoined bo", "trackAdded t1", "trackAdded t2"]);
  assert.equal(call.participant, "a-1");
});

test("a join that the server rejects ends the call, with no event", async () => {
  const server = new FakeServer("a");
  server.answer = fatal("room_full");
  const { call, seen } = makeCall(server);
  await assert.rejects(call.start(), { code: "room_full" });
  assert.deepEqual(seen(), ["released"]);
  assert.equal(call.session, null);
  assert.equal(server.open, 0);
});

test("a server that is down is unreachable", async () => {
  const server = new FakeServer("a");
  server.down = true;
  await assert.rejects(makeCall(server).call.start(), { code: "unreachable" });
});

test("the client goes to the server that the page's own names", async () => {
  const [own, node] = [new FakeServer("own"), new FakeServer("node")];
  own.answer = { type: "moved", url: node.url };
  const { call } = makeCall(own);
  await call.start();
  assert.equal(call.session?.url, node.url);
  assert.equal(own.open, 0);
});

test("servers that send the client round in circles are given up after three hops", async () => {
  const [a, b] = [new FakeServer("a"), new FakeServer("b")];
  a.answer = { type: "moved", url: b.url };
  b.answer = { type: "moved", url: a.url };
  await assert.rejects(makeCall(a).call.start(), { code: "moved" });
  assert.equal(a.types.length + b.types.length, 4);
});

test("in the lobby the call waits, and goes on after admission", async () => {
  const server = new FakeServer("a");
  server.answer = { type: "waiting" };
  const { call, seen } = makeCall(server);
  const started = call.start();
  await pass(20_000);
  assert.deepEqual(seen(), ["waiting"]);
  server.send(server.makeWelcome());
  await started;
  assert.equal(call.participant, "a-1");
});

test("an abort in the lobby ends the call", async () => {
  const server = new FakeServer("a");
  server.answer = { type: "waiting" };
  const abort = new AbortController();
  const { call, seen } = makeCall(server);
  const rejected = assert.rejects(call.start(abort.signal), { code: "left" });
  await pass(50);
  abort.abort();
  await rejected;
  assert.deepEqual(seen(), ["waiting", "released"]);
  assert.equal(server.open, 0);
});

test("a signal that aborts after the join ends no call", async () => {
  const server = new FakeServer("a");
  const abort = new AbortController();
  const { call, seen } = makeCall(server);
  await call.start(abort.signal);
  abort.abort();
  server.cut();
  await pass(1000);
  assert.deepEqual(seen(), ["reconnecting 1 500 connection_lost", "reconnected"]);
});

test("what happens between the welcome and its announcement is not lost", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA, BO];
  server.tracks = [video("t1", ADA.id), video("t2", BO.id)];
  const { call, seen } = makeCall(server);
  await call.start();
  server.send({ type: "track_removed", track: "t1" });
  server.send({ type: "participant_left", participant: ADA.id });
  server.send({ type: "track_muted", track: "t2", muted: true });
  await pass(50);
  const events = seen();
  assert.deepEqual(events.slice(-3), ["trackRemoved t1", "participantLeft ada", "trackMuted"]);
  assert.deepEqual(
    call.session?.participants.map(({ id }) => id),
    [BO.id],
  );
});

// Reconnecting.

test("a lost socket is followed by a new session: remote tracks come again, publications are sent again", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA];
  server.tracks = [audio("t1", ADA.id)];
  server.welcome = { seat: "S" };
  const { call, transports, seen } = await connected(server);
  const camera = publication("camera");
  await call.publish([camera]);
  seen();
  server.cut();
  assert.deepEqual(seen(), ["trackRemoved t1", "participantLeft ada", "reconnecting 1 500 connection_lost"]);
  assert.equal(transports.made[0]?.closed, true);
  assert.equal(call.session, null);
  assert.equal(call.participant, "a-1");
  await pass(450);
  assert.equal(transports.made.length, 1);
  await pass(100);
  assert.deepEqual(seen(), ["reconnected", "participantJoined ada", "trackAdded t1"]);
  assert.equal(call.participant, "a-2");
  assert.deepEqual([...transports.latest.sent], [camera]);
  assert.equal(server.last("join")?.["seat"], "S");
});

test("a lost media path is a lost session", async () => {
  const { transports, seen } = await connected(new FakeServer("a"));
  const { unreachable } = await import("./errors.js");
  transports.latest.onLost?.(unreachable());
  assert.deepEqual(seen(), ["reconnecting 1 500 unreachable"]);
});

test("pauses double up to 8 s, and after the last attempt the call is over", async () => {
  const server = new FakeServer("a");
  const { call, seen } = await connected(server, { maxAttempts: 6 });
  server.down = true;
  server.cut();
  await pass(40_000);
  assert.deepEqual(seen(), [
    "reconnecting 1 500 connection_lost",
    "reconnecting 2 1000 unreachable",
    "reconnecting 3 2000 unreachable",
    "reconnecting 4 4000 unreachable",
    "reconnecting 5 8000 unreachable",
    "reconnecting 6 8000 unreachable",
    "released",
    "disconnected unreachable",
  ]);
  assert.equal(call.session, null);
});

test("attempts count from zero once the media path is up, not once the socket is open", async () => {
  const server = new FakeServer("a");
  const { transports, seen } = await connected(server);
  server.cut();
  await pass(600);
  server.cut();
  assert.deepEqual(seen(), [
    "reconnecting 1 500 connection_lost",
    "reconnected",
    "reconnecting 2 1000 connection_lost",
  ]);
  await pass(1100);
  transports.latest.up();
  server.cut();
  assert.deepEqual(seen(), ["reconnected", "reconnecting 1 500 connection_lost"]);
});

test("a participant that was removed does not reconnect", async () => {
  for (const code of ["removed", "banned", "revoked"]) {
    const server = new FakeServer("a");
    const { seen } = await connected(server);
    server.send(fatal(code));
    server.cut();
    assert.deepEqual(seen(), ["released", `removed ${code}`, `disconnected ${code}`]);
    await pass(10_000);
    assert.deepEqual(server.types, ["join"]);
  }
});

test("a participant that joined from elsewhere does not reconnect, and was not removed", async () => {
  const server = new FakeServer("a");
  const { seen } = await connected(server);
  server.send(fatal("replaced"));
  server.cut();
  assert.deepEqual(seen(), ["released", "disconnected replaced"]);
});

test("a full room is tried again by a participant that was in it", async () => {
  const server = new FakeServer("a");
  const { seen } = await connected(server);
  server.answer = fatal("room_full");
  server.cut();
  await pass(600);
  assert.deepEqual(seen(), ["reconnecting 1 500 connection_lost", "reconnecting 2 1000 room_full"]);
  server.answer = null;
  await pass(1100);
  assert.deepEqual(seen(), ["reconnected"]);
});

test("the client goes at once to the server to which a reconnect is sent", async () => {
  const [own, node] = [new FakeServer("own"), new FakeServer("node")];
  const { call, seen } = await connected(own);
  own.answer = { type: "moved", url: node.url };
  own.cut();
  await pass(600);
  assert.deepEqual(seen(), ["reconnecting 1 500 connection_lost", "reconnected"]);
  assert.equal(call.session?.url, node.url);
});

test("where the server of the call is down, another of the cluster is tried first", async () => {
  const [a, b] = twoServers();
  const { call } = await connected(a);
  a.down = true;
  a.cut();
  await pass(600);
  assert.equal(call.session?.url, b.url);
  assert.equal(a.sockets.length, 0);
});

test("tracks that are published without a connection are sent by the next session", async () => {
  const server = new FakeServer("a");
  const { call, transports } = await connected(server);
  server.cut();
  const camera = publication("camera");
  await call.publish([camera]);
  await pass(600);
  assert.deepEqual([...transports.latest.sent], [camera]);
});

test("a publication that the grants forbid is not sent again after a reconnect", async () => {
  const server = new FakeServer("a");
  const { call, transports } = await connected(server);
  await call.publish([publication("camera")]);
  server.send({ type: "grants", grants: ["subscribe"] });
  assert.equal(call.publications.size, 0);
  server.cut();
  await pass(600);
  assert.equal(transports.latest.sent.size, 0);
});

test("a track that the server refuses after a reconnect is dropped, and the call goes on", async () => {
  const server = new FakeServer("a");
  const { call, transports, seen } = await connected(server);
  await call.publish([publication("camera")]);
  transports.refusal = new WindlassError("room_full", "full", "wait");
  server.cut();
  await pass(600);
  assert.deepEqual(seen(), ["reconnecting 1 500 connection_lost", "reconnected", "refused"]);
  assert.equal(call.publications.size, 0);
  assert.notEqual(call.session, null);
});

test("caps hold on the same server, and not on another", async () => {
  const [a, b] = twoServers();
  const { call } = await connected(a);
  call.maxRungs.set("a-camera", "q+");
  a.cut();
  await pass(600);
  assert.equal(call.session?.url, b.url);
  assert.equal(call.maxRungs.size, 0);
  call.maxRungs.set("b-camera", "h");
  a.down = true;
  b.cut();
  await pass(2000);
  assert.equal(call.session?.url, b.url);
  assert.equal(call.maxRungs.get("b-camera"), "h");
});

test("a quiet server is left for another one that answers", async () => {
  const [a, b] = twoServers();
  const { call, seen } = await connected(a);
  seen();
  a.silent = true;
  await pass(4000);
  assert.deepEqual(seen().slice(0, 4), [
    "trackRemoved a-camera",
    "participantLeft ada",
    "reconnecting 1 500 unreachable",
    "reconnected",
  ]);
  assert.equal(call.session?.url, b.url);
});

test("a quiet server is kept while its media still come, and while no other answers", async () => {
  const [a, b] = twoServers();
  const { call, transports, seen } = await connected(a);
  seen();
  b.down = true;
  a.silent = true;
  await pass(4000);
  assert.equal(call.session?.url, a.url);
  b.down = false;
  const { latest } = transports;
  Object.defineProperty(latest, "bytes", { get: () => performance.now() + Math.random() });
  await pass(4000);
  assert.deepEqual(seen(), []);
});

// Leaving.

test("leave tells the server and ends the call once", async () => {
  const server = new FakeServer("a");
  server.participants = [ADA];
  const { call, transports, seen } = await connected(server);
  seen();
  call.leave();
  call.leave();
  assert.deepEqual(seen(), ["participantLeft ada", "released", "disconnected left"]);
  assert.deepEqual(server.types, ["join", "leave"]);
  assert.equal(transports.latest.closed, true);
});

test("leave during a pause ends the attempts", async () => {
  const server = new FakeServer("a");
  const { call, seen } = await connected(server);
  server.cut();
  call.leave();
  await pass(20_000);
  assert.deepEqual(seen(), ["reconnecting 1 500 connection_lost", "released", "disconnected left"]);
  assert.deepEqual(server.types, ["join"]);
});

test("leave while the page is told of a lost connection ends the attempts", async () => {
  for (const event of ["reconnecting", "participantLeft"]) {
    const server = new FakeServer("a");
    server.participants = [ADA];
    const heard = (name: string) => name === event && made.call.leave();
    const made = await connected(server, { heard });
    made.seen();
    server.cut();
    await pass(20_000);
    assert.deepEqual(made.seen().slice(-2), ["released", "disconnected left"], event);
    assert.deepEqual(server.types, ["join"], event);
  }
});

test("leave in the lobby leaves it", async () => {
  const server = new FakeServer("a");
  const { call } = await connected(server);
  server.answer = { type: "waiting" };
  server.cut();
  await pass(600);
  assert.equal(server.open, 1);
  call.leave();
  await pass(0);
  assert.equal(server.types.at(-1), "leave");
  assert.equal(server.open, 0);
});

test("leave during an attempt closes what the attempt opens", async () => {
  const server = new FakeServer("a");
  const { call, transports, seen } = await connected(server);
  server.answer = { type: "waiting" };
  server.cut();
  await pass(600);
  call.leave();
  server.send(server.makeWelcome());
  await pass(1000);
  assert.deepEqual(seen(), ["reconnecting 1 500 connection_lost", "waiting", "released", "disconnected left"]);
  assert.equal(server.open, 0);
  assert.ok(transports.made.every(({ closed }) => closed));
});

// Migrating.

test("a migration is make-before-break: the switch waits until each track has a picture", async () => {
  const [a, b] = twoServers();
  const { call, transports, seen } = await connected(a);
  const camera = publication("camera");
  await call.publish([camera]);
  seen();
  a.send(moveTo(b));
  await pass(1000);
  const [former, successor] = transports.made;
  assert.equal(b.last("join")?.["ticket"], "T");
  assert.equal(former?.frozen, true);
  assert.deepEqual([former?.sent.has(camera), successor?.sent.has(camera)], [true, true]);
  assert.equal(call.session?.url, a.url);
  assert.equal(call.sender?.url, b.url);
  assert.deepEqual(seen(), []);
  successor?.up();
  await pass(100);
  assert.deepEqual(seen(), ["trackAdded b-camera for a-camera", "trackRemoved a-camera", "moved"]);
  assert.equal(call.session?.url, b.url);
  assert.equal(call.participant, "b-1");
  assert.deepEqual(
    call.session?.tracks.map(({ replaces }) => replaces),
    [null],
  );
});

test("the former server learns of the switch after 300 ms, and its session ends after 7 s", async () => {
  const [a, b] = twoServers();
  const { transports, seen } = await connected(a);
  a.send(moveTo(b));
  await pass(100);
  transports.latest.up();
  await pass(100);
  seen();
  assert.equal(a.types.includes("arrived"), false);
  await pass(300);
  assert.equal(a.types.at(-1), "arrived");
  await pass(6500);
  assert.equal(transports.made[0]?.closed, false);
  await pass(200);
  assert.equal(transports.made[0]?.closed, true);
  assert.deepEqual([a.open, b.open], [0, 1]);
  assert.deepEqual(seen(), []);
});

test("a former session that its server ends after the switch is no loss", async () => {
  const [a, b] = twoServers();
  const { call, transports, seen } = await connected(a);
  a.send(moveTo(b));
  await pass(100);
  transports.latest.up();
  await pass(100);
  seen();
  a.cut();
  await pass(1000);
  assert.deepEqual(seen(), []);
  assert.equal(call.session?.url, b.url);
  assert.equal(transports.made[0]?.closed, true);
});

test("once each track has a picture, better ones are waited for, for 1.5 s", async () => {
  const [a, b] = twoServers();
  const { transports, seen } = await connected(a);
  transports.latest.listeners.get("a-camera")?.state("enhanced", null);
  seen();
  a.send(moveTo(b));
  await pass(100);
  transports.latest.up();
  await pass(1500);
  assert.deepEqual(seen(), []);
  await pass(150);
  assert.equal(seen().at(-1), "moved");
});

test("a track that is as good as before ends that wait", async () => {
  const [a, b] = twoServers();
  const { transports, seen } = await connected(a);
  transports.latest.listeners.get("a-camera")?.state("enhanced", null);
  a.send(moveTo(b));
  await pass(100);
  transports.latest.up();
  await pass(300);
  transports.latest.listeners.get("b-camera")?.state("rebuilt", null);
  await pass(100);
  assert.equal(seen().at(-1), "moved");
});

test("tracks that do not come are waited for, for 4.5 s", async () => {
  const [a, b] = twoServers();
  b.tracks = [];
  const { transports, seen } = await connected(a);
  seen();
  a.send(moveTo(b));
  await pass(100);
  transports.latest.up();
  await pass(4300);
  assert.deepEqual(seen(), []);
  await pass(200);
  assert.deepEqual(seen(), ["trackRemoved a-camera", "moved"]);
});

test("participants that are on one server only join or leave with the switch", async () => {
  const [a, b] = twoServers();
  a.participants = [ADA, BO];
  b.participants = [ADA, { id: "cy", name: "Cy" }];
  const { transports, seen } = await connected(a);
  seen();
  a.send(moveTo(b));
  await pass(100);
  transports.latest.up();
  await pass(100);
  assert.deepEqual(seen(), [
    "participantJoined cy",
    "trackAdded b-camera for a-camera",
    "trackRemoved a-camera",
    "participantLeft bo",
    "moved",
  ]);
});

test("where no media come from the new server, the call stays, and its changes count again", async () => {
  const [a, b] = twoServers();
  const { call, transports, seen } = await connected(a);
  seen();
  a.send(moveTo(b));
  await pass(1000);
  const camera = publication("camera");
  await call.publish([camera]);
  const [former, successor] = transports.made;
  assert.equal(former?.sent.has(camera), false);
  await pass(4000);
  assert.equal(successor?.closed, true);
  assert.equal(b.types.at(-1), "leave");
  assert.equal(former?.frozen, false);
  assert.equal(former?.sent.has(camera), true);
  assert.equal(call.session?.url, a.url);
  assert.equal(call.sender?.url, a.url);
  assert.deepEqual(seen(), []);
});

test("where the new server is unreachable, the call stays", async () => {
  const [a, b] = twoServers();
  b.down = true;
  const { call, servers, transports, seen } = await connected(a);
  seen();
  a.send(moveTo(b));
  await pass(1000);
  assert.equal(call.session?.url, a.url);
  assert.deepEqual(servers.first(1), [a.url]);
  assert.equal(transports.made[0]?.frozen, false);
  assert.deepEqual(seen(), []);
  // A second request finds it up.
  b.down = false;
  a.send(moveTo(b));
  await pass(100);
  assert.equal(call.sender?.url, b.url);
});

test("a former session that is lost in the overlap switches at once", async () => {
  const [a, b] = twoServers();
  const { call, seen } = await connected(a);
  seen();
  a.send(moveTo(b));
  await pass(100);
  a.cut();
  assert.deepEqual(seen(), ["trackAdded b-camera for a-camera", "trackRemoved a-camera", "moved"]);
  assert.equal(call.session?.url, b.url);
});

test("a successor that is lost in the overlap is given up", async () => {
  const [a, b] = twoServers();
  const { call, transports, seen } = await connected(a);
  seen();
  a.send(moveTo(b));
  await pass(100);
  b.cut();
  await pass(5000);
  assert.deepEqual(seen(), []);
  assert.equal(call.session?.url, a.url);
  assert.equal(transports.made[0]?.frozen, false);
});

test("a former session that is lost before the new server answers is followed by a reconnect", async () => {
  const [a, b] = twoServers();
  b.answer = { type: "waiting" };
  const { call, seen } = await connected(a);
  seen();
  a.send(moveTo(b));
  await pass(100);
  a.cut();
  assert.deepEqual(seen().at(-1), "reconnecting 1 500 connection_lost");
  // The attempt to migrate succeeds too late, and is left.
  b.send(b.makeWelcome());
  await pass(50);
  assert.equal(b.types.at(-1), "leave");
  b.answer = null;
  await pass(1000);
  assert.notEqual(call.session, null);
});

test("a migration that succeeds too late changes no seat", async () => {
  const [a, b] = twoServers();
  a.welcome = { ...a.welcome, seat: "A" };
  b.welcome = { seat: "B" };
  b.answer = { type: "waiting" };
  await connected(a);
  a.send(moveTo(b));
  await pass(100);
  a.cut();
  b.send(b.makeWelcome());
  await pass(50);
  b.answer = null;
  const joins = () => [a, b].flatMap(({ received }) => received).filter(({ type }) => type === "join");
  assert.equal(joins().length, 2);
  await pass(1000);
  assert.equal(joins().length, 3);
  assert.ok(joins().every(({ seat }) => seat !== "B"));
});

test("a successor that is given up leaves the seat of the former session", async () => {
  const [a, b] = twoServers();
  a.welcome = { ...a.welcome, seat: "A" };
  b.welcome = { seat: "B" };
  await connected(a);
  a.send(moveTo(b));
  await pass(100);
  b.cut();
  await pass(5000);
  a.cut();
  await pass(1000);
  const joins = [a, b].flatMap(({ received }) => received).filter(({ type }) => type === "join");
  assert.deepEqual([joins.length, joins.filter(({ seat }) => seat === "B").length], [3, 0]);
});

test("a request to migrate during a migration is followed after it", async () => {
  const [a, b] = twoServers();
  const c = new FakeServer("c");
  a.welcome = { others: [b.url, c.url] };
  const { call, transports } = await connected(a);
  a.send(moveTo(b));
  await pass(100);
  b.send(moveTo(c));
  await pass(500);
  assert.deepEqual(c.types, []);
  transports.latest.up();
  await pass(200);
  assert.equal(call.session?.url, b.url);
  assert.deepEqual(c.types, ["join"]);
  transports.latest.up();
  await pass(5000);
  assert.equal(call.session?.url, c.url);
});

test("a successor that carries the call before it is ready follows a request to migrate once it is", async () => {
  const [a, b] = twoServers();
  const c = new FakeServer("c");
  a.welcome = { others: [b.url, c.url] };
  const { call, transports } = await connected(a);
  await call.publish([publication("camera")]);
  a.send(moveTo(b));
  await pass(100);
  a.cut();
  b.send(moveTo(c));
  await pass(1000);
  assert.equal(call.session?.url, b.url);
  assert.deepEqual(c.types, []);
  transports.latest.up();
  await pass(100);
  assert.deepEqual(c.types, ["join"]);
});

test("a removal ends the call in every state of a migration", async () => {
  for (const when of ["overlapping", "draining"]) {
    const [a, b] = twoServers();
    const { transports, seen } = await connected(a);
    a.send(moveTo(b));
    await pass(100);
    if (when === "draining") transports.latest.up();
    await pass(100);
    seen();
    a.send(fatal("banned"));
    a.cut();
    assert.deepEqual(seen().slice(-3), ["released", "removed banned", "disconnected banned"], when);
    assert.ok(transports.made.every(({ closed }) => closed));
  }
});

test("leave during a migration leaves both servers", async () => {
  const [a, b] = twoServers();
  const { call, transports, seen } = await connected(a);
  a.send(moveTo(b));
  await pass(100);
  call.leave();
  assert.deepEqual([a.types.at(-1), b.types.at(-1)], ["leave", "leave"]);
  assert.ok(transports.made.every(({ closed }) => closed));
  await pass(10_000);
  assert.equal(seen().at(-1), "disconnected left");
});

test("leave while the new server is being joined closes that attempt", async () => {
  const [a, b] = twoServers();
  b.answer = { type: "waiting" };
  const { call } = await connected(a);
  a.send(moveTo(b));
  await pass(100);
  call.leave();
  b.send(b.makeWelcome());
  await pass(100);
  assert.deepEqual([a.open, b.open], [0, 0]);
});

test("an unpublished track ends on both servers", async () => {
  const [a, b] = twoServers();
  const { call, transports } = await connected(a);
  const camera = publication("camera");
  await call.publish([camera]);
  a.send(moveTo(b));
  await pass(100);
  await call.unpublish(camera);
  assert.deepEqual(
    transports.made.map(({ sent }) => sent.size),
    [0, 0],
  );
});

test("a cap moves to the track that succeeds its track", async () => {
  const [a, b] = twoServers();
  const { call, transports } = await connected(a);
  call.maxRungs.set("a-camera", "q+");
  a.send(moveTo(b));
  await pass(100);
  transports.latest.up();
  await pass(100);
  assert.deepEqual([...call.maxRungs], [["b-camera", "q+"]]);
  assert.equal(transports.latest.maxRungs.get("b-camera"), "q+");
});

test("a server that the page's own has not named is not gone to: the own one is asked", async () => {
  const own = new FakeServer("own");
  const node = new FakeServer("node");
  const evil = new FakeServer("evil");
  own.answer = { type: "moved", url: node.url };
  const { call } = await connected(own);
  assert.equal(call.session?.url, node.url);
  own.received.length = 0;
  node.send({ type: "moved", url: evil.url, ticket: "T" });
  await pass(500);
  assert.deepEqual(evil.types, []);
  assert.deepEqual(own.types, ["join"]);
  await settle();
});
