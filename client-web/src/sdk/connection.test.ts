import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { filesOf } from "./assets.js";
import { Connection } from "./connection.js";
import { WindlassError } from "./errors.js";
import { NetworkLimit } from "./network-limit.js";
import type { Rung } from "./protocol.js";
import type { Publication } from "./publication.js";
import type { Relay } from "./relay.js";
import type { SignalSocket } from "./socket.js";
import { pass, startClock, stopClock } from "./testing/clock.js";
import { FakePeerConnection } from "./testing/peer-connection.js";
import { audio } from "./testing/server.js";

interface Offer {
  subscribe: { mid: string; track: string; max?: Rung }[];
  publish: { mid: string; name: string }[];
}

const real = globalThis.RTCPeerConnection;
const connections: Connection[] = [];

beforeEach(() => {
  startClock();
  Object.assign(globalThis, { RTCPeerConnection: FakePeerConnection });
});

afterEach(() => {
  for (const connection of connections.splice(0)) connection.close();
  Object.assign(globalThis, { RTCPeerConnection: real });
  stopClock();
});

/** A connection whose server answers each offer, with the errors of `answers` first. */
function makeConnection(answers: string[] = [], maxRungs = new Map<string, Rung>(), sdp = "v=0\r\n") {
  const offers: Offer[] = [];
  const sent: unknown[] = [];
  const socket = {
    request(offer: Offer) {
      offers.push(offer);
      const code = answers.shift();
      const tracks = offer.publish.map(({ mid, name }) => ({ mid, track: `own ${name}` }));
      if (code === undefined) return Promise.resolve({ type: "answer", id: 1, sdp, tracks });
      return Promise.reject(new WindlassError(code as "internal", code, ""));
    },
    send: (message: unknown) => void sent.push(message),
  };
  const relay = { onLost: new Set<() => void>(), works: false, encrypts: false };
  const connection = new Connection(
    socket as unknown as SignalSocket,
    filesOf({}, "ws://localhost/ws", "http://localhost/"),
    relay as unknown as Relay,
    { output: "auto", networkBackend: "auto", networks: new NetworkLimit("xs", async () => null) },
    { scale: 2, lr_pixels: 1 },
    maxRungs,
    { servers: [] },
  );
  connections.push(connection);
  const lost: string[] = [];
  connection.onLost = (error) => lost.push(error.code);
  return { connection, pc: FakePeerConnection.latest, relay, offers, sent, lost };
}

const tracks = ({ subscribe }: Offer) => subscribe.map(({ track }) => track);
const names = ({ publish }: Offer) => publish.map(({ name }) => name);

/** A sound that is sent, and what became of it. */
function sound(name: string) {
  const state = { attached: false, id: null as string | null };
  const fake = {
    kind: "audio",
    name,
    backupOf: null,
    attach: () => void Object.assign(state, { attached: true }),
    detach: () => void Object.assign(state, { attached: false, id: null }),
    entry: () => (state.attached ? { mid: name, kind: "audio", name } : null),
    mid: () => (state.attached ? name : null),
    idAt: () => state.id,
    setId: (_: unknown, id: string) => void Object.assign(state, { id }),
  };
  return { publication: fake as unknown as Publication, state };
}

// Negotiation.

test("all changes of one task are in one offer", async () => {
  const { connection, offers } = makeConnection();
  connection.subscribe(audio("t1", "ada"));
  connection.subscribe(audio("t2", "bo"));
  await connection.settled();
  assert.deepEqual(offers.map(tracks), [["t1", "t2"]]);
});

test("a change during a negotiation is in the next offer", async () => {
  const { connection, offers } = makeConnection();
  connection.subscribe(audio("t1", "ada"));
  await pass(0);
  connection.subscribe(audio("t2", "bo"));
  await connection.settled();
  assert.deepEqual(offers.map(tracks), [["t1"], ["t1", "t2"]]);
});

test("the section of a track that has ended carries the next one", async () => {
  const { connection, pc, offers } = makeConnection();
  connection.subscribe(audio("t1", "ada"));
  await connection.settled();
  connection.unsubscribe("t1");
  await connection.settled();
  assert.equal(pc.transceivers[0]?.direction, "inactive");
  connection.subscribe(audio("t2", "bo"));
  await connection.settled();
  assert.equal(pc.transceivers.length, 1);
  assert.deepEqual(offers.at(-1)?.subscribe, [{ mid: "0", track: "t2" }]);
});

test("a cap is in the offer of its subscription", async () => {
  const { connection, offers } = makeConnection([], new Map([["t1", "q+"]]));
  connection.subscribe(audio("t1", "ada"));
  await connection.settled();
  assert.deepEqual(offers[0]?.subscribe, [{ mid: "0", track: "t1", max: "q+" }]);
});

test("a cap on the uplink is negotiated at once where something is sent, and is in every later answer", async () => {
  const answer = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 98\r\na=recvonly\r\n";
  const { connection, pc, offers } = makeConnection([], new Map(), answer);
  const publication = {
    attach: () => undefined,
    detach: () => undefined,
    entry: () => null,
    mid: () => null,
    idAt: () => null,
  };
  connection.setMaxUplink(150);
  await connection.settled();
  assert.equal(offers.length, 0);
  await connection.publish(publication as unknown as Publication);
  assert.match(pc.remoteDescription?.sdp ?? "", /b=AS:150/);
  connection.setMaxUplink(100);
  connection.setMaxUplink(100);
  await connection.settled();
  assert.equal(offers.length, 2);
  assert.match(pc.remoteDescription?.sdp ?? "", /b=AS:100/);
  connection.setMaxUplink(null);
  await connection.settled();
  assert.doesNotMatch(pc.remoteDescription?.sdp ?? "", /b=AS/);
});

test("an offer with a track that has just ended is repeated, three times at most", async () => {
  const { connection, pc, offers, lost } = makeConnection(["unknown_track", "unknown_track"]);
  connection.subscribe(audio("t1", "ada"));
  await pass(300);
  assert.equal(offers.length, 3);
  assert.equal(pc.rollbacks, 2);
  assert.deepEqual(lost, []);
  const other = makeConnection(Array(4).fill("unknown_track"));
  other.connection.subscribe(audio("t1", "ada"));
  await pass(2000);
  assert.equal(other.offers.length, 4);
  assert.deepEqual(other.lost, ["unknown_track"]);
});

test("after a rate limit the next offer waits for a second", async () => {
  const { connection, offers, lost } = makeConnection(["rate_limited"]);
  connection.subscribe(audio("t1", "ada"));
  await pass(950);
  assert.equal(offers.length, 1);
  await pass(100);
  assert.equal(offers.length, 2);
  assert.deepEqual(lost, []);
});

test("an offer that is refused although nothing new is sent by it ends the connection", async () => {
  for (const code of ["bad_sdp", "too_large"]) {
    const { connection, offers, lost } = makeConnection([code]);
    connection.subscribe(audio("t1", "ada"));
    await connection.settled();
    assert.deepEqual([offers.length, lost], [1, [code]]);
  }
});

test("an error that is none of the tracks' ends the connection", async () => {
  const { connection, lost } = makeConnection(["bad_sdp"]);
  await assert.rejects(connection.publish(sound("new").publication), { code: "bad_sdp" });
  assert.deepEqual(lost, ["bad_sdp"]);
});

test("without tracks an offer is made after 5 s all the same", async () => {
  const { offers } = makeConnection();
  await pass(4950);
  assert.equal(offers.length, 0);
  await pass(50);
  assert.equal(offers.length, 1);
});

test("a frozen connection negotiates nothing until it thaws", async () => {
  const { connection, offers } = makeConnection();
  connection.freeze();
  connection.subscribe(audio("t1", "ada"));
  await pass(1000);
  assert.equal(offers.length, 0);
  connection.thaw();
  await connection.settled();
  assert.deepEqual(offers.map(tracks), [["t1"]]);
});

test("a publication takes its id from the announcement where the answer has none", () => {
  const { connection } = makeConnection();
  const ids: (string | null)[] = [];
  const fake = {
    kind: "audio",
    name: "microphone",
    backupOf: null,
    attach: () => undefined,
    detach: () => undefined,
    entry: () => null,
    mid: () => null,
    idAt: () => ids.at(-1) ?? null,
    setId: (_: unknown, id: string) => void ids.push(id),
  };
  void connection.publish(fake as unknown as Publication).catch(() => undefined);
  connection.learnOwn(audio("t8", "me", "tone"));
  connection.learnOwn(audio("t9", "me"));
  assert.deepEqual(ids, ["t9"]);
});

test("tracks that the server refuses are not sent, and what is sent already goes on", async () => {
  for (const code of ["room_full", "too_large", "forbidden", "malformed", "no_codec"]) {
    const answers: string[] = [];
    const { connection, pc, offers, lost } = makeConnection(answers);
    const [former, refused] = [sound("former"), sound("refused")];
    await connection.publish(former.publication);
    answers.push(code);
    connection.subscribe(audio("t1", "ada"));
    await assert.rejects(connection.publish(refused.publication), { code });
    assert.deepEqual(offers.map(names), [["former"], ["former", "refused"], ["former"]]);
    assert.deepEqual(offers.map(tracks), [[], ["t1"], ["t1"]]);
    assert.deepEqual([former.state.id, refused.state.attached, pc.rollbacks, lost], ["own former", false, 1, []]);
  }
});

test("a track that is published during a refused offer is in the next one", async () => {
  const { connection, offers, lost } = makeConnection(["room_full"]);
  const refused = assert.rejects(connection.publish(sound("first").publication), { code: "room_full" });
  while (offers.length === 0) await Promise.resolve();
  const later = connection.publish(sound("later").publication);
  await refused;
  await later;
  assert.deepEqual(offers.map(names), [["first"], ["later"]]);
  assert.deepEqual(lost, []);
});

test("where the grant is lost during an offer, its track is refused and the rest is offered again", async () => {
  const { connection, offers, lost } = makeConnection(["forbidden"]);
  const { publication } = sound("new");
  const refused = assert.rejects(connection.publish(publication), { code: "forbidden" });
  while (offers.length === 0) await Promise.resolve();
  await connection.unpublish(publication);
  await refused;
  assert.deepEqual(offers.map(names), [["new"], []]);
  assert.deepEqual(lost, []);
});

test("a track that was refused is given up without an offer", async () => {
  const { connection, offers } = makeConnection(["too_large"]);
  const { publication } = sound("new");
  await assert.rejects(connection.publish(publication), { code: "too_large" });
  await connection.unpublish(publication);
  assert.equal(offers.length, 2);
});

// The media path.

test("a media path that is not up 15 s after the first answer is lost", async () => {
  const { connection, lost } = makeConnection();
  connection.subscribe(audio("t1", "ada"));
  await pass(14_950);
  assert.deepEqual(lost, []);
  await pass(100);
  assert.deepEqual(lost, ["media_failed"]);
});

test("a media path that fails before it was up is lost at once", () => {
  const { pc, lost } = makeConnection();
  pc.becomes("disconnected");
  assert.deepEqual(lost, []);
  pc.becomes("failed");
  assert.deepEqual(lost, ["media_failed"]);
});

test("an outage restarts ICE at once and again, and ends when the path is up", async () => {
  const { connection, pc, offers, lost } = makeConnection();
  let ups = 0;
  connection.onUp = () => ups++;
  pc.becomes("connected");
  pc.becomes("disconnected");
  await pass(100);
  assert.deepEqual([pc.iceRestarts, offers.length], [1, 1]);
  pc.becomes("failed");
  assert.equal(pc.iceRestarts, 1);
  await pass(3300);
  assert.equal(pc.iceRestarts, 2);
  pc.becomes("connected");
  await pass(20_000);
  assert.equal(pc.iceRestarts, 2);
  assert.equal(ups, 2);
  assert.deepEqual(lost, []);
});

/** Lets packets come for a while, twenty a second. */
async function packetsFor(pc: FakePeerConnection, ms: number) {
  for (let passed = 0; passed < ms; passed += 50) {
    pc.packetsReceived = (pc.packetsReceived ?? 0) + 1;
    await pass(50);
  }
}

test("a path from which nothing comes is an outage before the browser says so", async () => {
  const { connection, pc, offers, lost } = makeConnection();
  let ups = 0;
  connection.onUp = () => ups++;
  pc.becomes("connected");
  await packetsFor(pc, 6000);
  assert.deepEqual([pc.iceRestarts, pc.probes], [0, 0]);
  const before = offers.length;
  await pass(3800);
  assert.deepEqual([pc.iceRestarts, offers.length], [1, before + 1]);
  await packetsFor(pc, 1000);
  assert.equal(ups, 2);
  await packetsFor(pc, 20_000);
  assert.deepEqual([pc.iceRestarts, lost], [1, []]);
});

test("a path from which nothing comes is lost in the end, whatever the browser says", async () => {
  const { pc, lost } = makeConnection();
  pc.packetsReceived = 0;
  pc.becomes("connected");
  await pass(3800);
  assert.ok(pc.iceRestarts > 0);
  await pass(14_000);
  assert.deepEqual(lost, ["media_failed"]);
});

test("a path that answers probes is up, though nobody sends anything", async () => {
  const { pc } = makeConnection();
  pc.packetsReceived = 0;
  pc.becomes("connected");
  for (let answered = 0; answered < 10; answered = pc.probes) {
    await pass(50);
    if (pc.probes > answered) pc.packetsReceived++;
  }
  assert.equal(pc.iceRestarts, 0);
});

test("a call in which nobody sends comes back with the answer to a probe", async () => {
  const { connection, pc, lost } = makeConnection();
  let ups = 0;
  connection.onUp = () => ups++;
  pc.packetsReceived = 0;
  pc.becomes("connected");
  await pass(4000);
  const probes = pc.probes;
  await pass(4000);
  assert.ok(pc.probes > probes, "it goes on asking");
  pc.packetsReceived++;
  await pass(400);
  assert.deepEqual([ups, lost], [2, []]);
});

test("after an outage the path is up with a packet, not with the browser's word", async () => {
  const { connection, pc } = makeConnection();
  let ups = 0;
  connection.onUp = () => ups++;
  pc.packetsReceived = 0;
  pc.becomes("connected");
  await pass(3800);
  const restarts = pc.iceRestarts;
  pc.becomes("disconnected");
  pc.becomes("connected");
  await pass(400);
  assert.deepEqual([pc.iceRestarts, ups], [restarts, 1]);
  pc.packetsReceived++;
  await pass(400);
  assert.equal(ups, 2);
});

test("an outage that goes on over a freeze is lost in its time", async () => {
  const { connection, pc, lost } = makeConnection();
  pc.becomes("connected");
  pc.becomes("disconnected");
  await pass(1000);
  connection.freeze();
  await pass(1000);
  connection.thaw();
  await pass(14_200);
  assert.deepEqual(lost, ["media_failed"]);
});

test("an outage of 14 s loses the connection", async () => {
  const { pc, lost } = makeConnection();
  pc.becomes("connected");
  pc.becomes("failed");
  await pass(13_900);
  assert.deepEqual(lost, []);
  await pass(150);
  assert.deepEqual(lost, ["media_failed"]);
});

test("an outage of a frozen connection is a loss, also where one had begun before", () => {
  const { connection, pc, lost } = makeConnection();
  pc.becomes("connected");
  pc.becomes("disconnected");
  connection.freeze();
  assert.deepEqual(lost, []);
  pc.becomes("failed");
  assert.deepEqual(lost, ["media_failed"]);
});

test("after a thaw an outage restarts ICE again", async () => {
  const { connection, pc, lost } = makeConnection();
  pc.becomes("connected");
  pc.becomes("disconnected");
  await pass(0);
  connection.freeze();
  connection.thaw();
  pc.becomes("failed");
  await pass(0);
  assert.equal(pc.iceRestarts, 2);
  assert.deepEqual(lost, []);
});

test("ICE servers that the browser does not take are reported, and the former ones stay", (t) => {
  const { connection, pc, lost } = makeConnection();
  const warn = t.mock.method(console, "warn", () => undefined);
  Object.assign(pc, {
    getConfiguration: () => ({}),
    setConfiguration: () => {
      throw new DOMException("'turn:' is not a valid URL", "SyntaxError");
    },
  });
  connection.setIceServers({ servers: [{ urls: ["turn:"] }] });
  assert.match(String(warn.mock.calls[0]?.arguments[0]), /ICE servers.*not a valid URL/);
  assert.deepEqual(lost, []);
});

test("a relay that is lost loses the connection; a closed connection loses nothing", () => {
  const { connection, pc, relay, lost } = makeConnection();
  for (const lose of [...relay.onLost]) lose();
  assert.deepEqual(lost, ["media_failed"]);
  const other = makeConnection();
  other.connection.close();
  assert.equal(other.relay.onLost.size, 0);
  other.pc.becomes("failed");
  assert.deepEqual(other.lost, []);
  assert.deepEqual([pc.closed, other.pc.closed], [false, true]);
  connection.close();
});
