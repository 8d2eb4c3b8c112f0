import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { WorkerStats } from "../worker/messages.js";
import type { NetworkAbsence, NetworkTier } from "../worker/network-choice.js";
import type { SessionEvents } from "./events.js";
import { Session, type SessionRequest } from "./session.js";
import { pass, startClock, stopClock } from "./testing/clock.js";
import { audio, FakeServer, type Json, startServers, stopServers, video } from "./testing/server.js";
import { FakeTransports, publication } from "./testing/transport.js";
import { RemoteVideoTrack } from "./tracks.js";

const ADA = { id: "ada", name: "Ada" };

const sessions: Session[] = [];

beforeEach(() => {
  startClock();
  startServers();
});

afterEach(() => {
  for (const session of sessions.splice(0)) session.close();
  stopServers();
  stopClock();
});

/** The fields of events that tests look at. */
function brief(value: unknown): string {
  const { id, replaces, publication, muted, code, track, locked, grants } = value as {
    [field in "id" | "muted" | "code" | "locked" | "grants"]?: unknown;
  } & { replaces?: { id: string } | null; publication?: { name: string }; track?: { id: string } };
  if (id !== undefined) return replaces ? `${id} for ${replaces.id}` : `${id}`;
  const parts = [track?.id ?? publication?.name ?? code, muted, locked, grants];
  return parts.filter((part) => part !== undefined).join(" ");
}

/** A session at a server, announced. */
async function makeSession(server: FakeServer, changes: Partial<SessionRequest> = {}) {
  const transports = new FakeTransports();
  const request: SessionRequest = {
    room: "standup",
    name: "Me",
    attributes: {},
    loopback: false,
    token: undefined,
    seat: undefined,
    ticket: undefined,
    waiting: () => undefined,
    signal: undefined,
    maxRungs: new Map(),
    former: null,
    ...changes,
  };
  const session = await Session.join([server.url], request, transports);
  sessions.push(session);
  const events: string[] = [];
  const names: (keyof SessionEvents)[] = [
    "participantJoined",
    "participantLeft",
    "trackAdded",
    "trackRemoved",
    "trackMuted",
    "publicationMuted",
    "speaker",
    "quality",
    "grants",
    "locked",
    "refused",
    "lost",
    "quiet",
    "up",
  ];
  for (const name of names) session.on(name, (value) => events.push(`${name} ${brief(value ?? {})}`.trimEnd()));
  session.announce();
  return { session, transport: transports.latest, seen: () => events.splice(0) };
}

/** A server with Ada and her camera. */
function withAda(): FakeServer {
  const server = new FakeServer("a");
  server.participants = [ADA];
  server.tracks = [video("t1", ADA.id)];
  return server;
}

const joins = (id: string, was?: string): Json => ({
  type: "participant_joined",
  participant: id,
  name: "Ada",
  ...(was === undefined ? {} : { was }),
});

// Participants and their tracks.

test("participants and tracks come and go", async () => {
  const server = withAda();
  const { session, seen } = await makeSession(server);
  assert.deepEqual(seen(), ["participantJoined ada", "trackAdded t1"]);
  server.send(joins("bo"));
  server.send({ type: "track_added", track: audio("t2", "bo") });
  assert.deepEqual(
    session.tracks.map(({ id }) => id),
    ["t1", "t2"],
  );
  server.send({ type: "track_removed", track: "t1" });
  server.send({ type: "participant_left", participant: "bo" });
  assert.deepEqual(seen(), [
    "participantJoined bo",
    "trackAdded t2",
    "trackRemoved t1",
    "trackRemoved t2",
    "participantLeft bo",
  ]);
  assert.deepEqual(session.participants, [ADA]);
});

test("a participant that migrated is pending until its predecessor leaves, and replaces its tracks", async () => {
  const server = withAda();
  const { session, seen } = await makeSession(server);
  seen();
  server.send(joins("ada2", "ada"));
  server.send({ type: "track_added", track: video("t2", "ada2") });
  assert.deepEqual(seen(), []);
  assert.deepEqual(
    session.tracks.map(({ id }) => id),
    ["t1"],
  );
  server.send({ type: "participant_left", participant: "ada" });
  assert.deepEqual(seen(), [
    "participantJoined ada2",
    "trackAdded t2 for t1",
    "trackRemoved t1",
    "participantLeft ada",
  ]);
  assert.deepEqual(
    session.tracks.map(({ id, replaces }) => [id, replaces]),
    [["t2", null]],
  );
});

test("a track of the predecessor that ends announces the successor", async () => {
  const server = withAda();
  const { seen } = await makeSession(server);
  server.send(joins("ada2", "ada"));
  server.send({ type: "track_added", track: video("t2", "ada2") });
  seen();
  server.send({ type: "track_removed", track: "t1" });
  assert.deepEqual(seen(), ["participantJoined ada2", "trackAdded t2 for t1", "trackRemoved t1"]);
});

test("a participant is pending for 6 s at most", async () => {
  const server = withAda();
  const { session, seen } = await makeSession(server);
  seen();
  server.send(joins("ada2", "ada"));
  await pass(5950);
  assert.deepEqual(seen(), []);
  await pass(50);
  assert.deepEqual(seen(), ["participantJoined ada2"]);
  assert.equal(session.participants.length, 2);
});

test("mutes and rungs of pending participants are not announced", async () => {
  const server = withAda();
  const { seen } = await makeSession(server);
  server.send(joins("ada2", "ada"));
  server.send({ type: "track_added", track: video("t2", "ada2") });
  seen();
  server.send({ type: "track_muted", track: "t2", muted: true });
  server.send({ type: "track_muted", track: "t1", muted: true });
  assert.deepEqual(seen(), ["trackMuted t1 true"]);
});

test("this participant's own tracks are received in a loopback room only", async () => {
  const server = new FakeServer("a");
  server.tracks = [video("own", "a-1")];
  const plain = await makeSession(server);
  assert.deepEqual(plain.session.tracks, []);
  server.tracks = [video("own", "a-2")];
  server.welcome = { loopback: true };
  const loopback = await makeSession(server);
  assert.deepEqual(
    loopback.session.tracks.map(({ id }) => id),
    ["own"],
  );
});

test("no more tracks are received than an offer has sections for; sent tracks take theirs first", async () => {
  const server = new FakeServer("a");
  server.welcome = { max_sections: 2 };
  server.participants = [ADA];
  server.tracks = [video("t1", ADA.id), audio("t2", ADA.id), video("t3", ADA.id, "screen")];
  const { session, seen } = await makeSession(server);
  assert.deepEqual(
    session.tracks.map(({ id }) => id),
    ["t1", "t2"],
  );
  seen();
  await session.publish(publication("camera"));
  assert.deepEqual(seen(), ["trackRemoved t1"]);
});

test("the speaker is announced if it is among the others", async () => {
  const server = withAda();
  const { session, seen } = await makeSession(server);
  seen();
  server.send({ type: "speaker", participant: "ada" });
  server.send({ type: "speaker", participant: "a-1" });
  assert.deepEqual(seen(), ["speaker ada"]);
  assert.equal(session.speaker, null);
});

test("qualities of connections are reported of this participant and of others, once these are announced", async () => {
  const server = withAda();
  const { session, seen } = await makeSession(server);
  seen();
  const tell = (participant: string, quality: string) => server.send({ type: "quality", participant, quality });
  tell("ada", "fair");
  tell("ben", "poor");
  tell(session.participant, "good");
  assert.equal(seen().length, 2, "Ben is not there yet");
  server.send({ type: "participant_joined", participant: "ben", name: "Ben" });
  assert.equal(seen().length, 2, "who has come, and how well");
  const known = session.qualities.map(({ participant, quality }) => [participant, quality]);
  assert.deepEqual(known, [
    ["ada", "fair"],
    ["ben", "poor"],
    [session.participant, "good"],
  ]);
  server.send({ type: "participant_left", participant: "ben" });
  assert.equal(session.qualities.length, 2);
});

test("a rung without a scale has that of the welcome", async () => {
  const server = withAda();
  const { session } = await makeSession(server);
  const [track] = session.tracks;
  assert.ok(track instanceof RemoteVideoTrack);
  server.send({ type: "rung", track: "t1", rung: "q+", epoch: 1, width: 320, height: 180 });
  assert.deepEqual(track.rung, { rung: "q+", epoch: 1, width: 320, height: 180, scale: 2 });
});

test("a track learns its way, and a reason that is new to this client is another one", async () => {
  const server = withAda();
  const { session } = await makeSession(server);
  const [track] = session.tracks;
  assert.ok(track instanceof RemoteVideoTrack);
  const way = () => track.way;
  server.send({ type: "way", track: "t1", way: "flow", reason: "network_slow" });
  assert.deepEqual(way(), { way: "flow", reason: "network_slow" });
  server.send({ type: "way", track: "t1", way: "network", reason: "of the future" });
  assert.deepEqual(way(), { way: "network", reason: "other" });
  server.send({ type: "way", track: "t1", way: "of the future", reason: "gain" });
  assert.deepEqual(way(), { way: "network", reason: "other" }, "a way that is new is no message");
});

test("a network that begins or ends is reported at once, instead of with the next report", async () => {
  const server = withAda();
  const { session, transport } = await makeSession(server);
  transport.rebuilds = true;
  const runs = async (network: NetworkTier, networkAbsence: NetworkAbsence | null) => {
    transport.listeners.get("t1")?.stats({ network, networkAbsence } as WorkerStats);
    await pass(0);
    return server.received.splice(0).map(({ type, network, no_network }) => `${type} ${network} ${no_network}`);
  };
  server.received.splice(0);
  assert.deepEqual(await runs("none", "trying"), []);
  assert.deepEqual(await runs("xs", null), ["report xs undefined"]);
  session.report();
  assert.deepEqual(await runs("xs", null), [], "that of this second has gone");
  session.report();
  assert.deepEqual(await runs("xxs", null), ["report xs undefined"], "another network can wait");
  assert.deepEqual(await runs("none", "slow"), ["report none slow"]);
});

// Publications, mutes and grants.

test("a muted track is sent as such once it is negotiated", async () => {
  const server = new FakeServer("a");
  const { session } = await makeSession(server);
  const camera = publication("camera");
  camera.setMuted(true);
  await session.publish(camera);
  assert.deepEqual(server.last("mute"), { type: "mute", track: "a-1/camera", muted: true });
});

test("a moderator mutes a publication, and allows it again", async () => {
  const server = new FakeServer("a");
  const { session, seen } = await makeSession(server);
  const camera = publication("camera");
  await session.publish(camera);
  server.send({ type: "track_muted", track: "a-1/camera", muted: true });
  assert.equal(session.isMutedByModerator(camera), true);
  assert.equal(camera.muted, true);
  server.send({ type: "track_muted", track: "a-1/camera", muted: false });
  assert.equal(session.isMutedByModerator(camera), false);
  assert.deepEqual(seen(), ["publicationMuted camera true", "publicationMuted camera false"]);
});

test("without the grant to publish nothing is sent; without that to subscribe nothing is received", async () => {
  const server = withAda();
  const { session, transport, seen } = await makeSession(server);
  await session.publish(publication("camera"));
  seen();
  server.send({ type: "grants", grants: [] });
  assert.equal(transport.sent.size, 0);
  assert.deepEqual(seen(), ["trackRemoved t1", "grants"]);
  server.send({ type: "grants", grants: ["publish", "subscribe"] });
  assert.equal(transport.sent.size, 0);
  assert.deepEqual(seen(), ["trackAdded t1", "grants publish,subscribe"]);
});

test("without a list of grants everything but moderation and administration is allowed", async () => {
  const { session } = await makeSession(new FakeServer("a"));
  const may = (["publish", "subscribe", "enhance", "moderate", "admin"] as const).map((grant) => session.may(grant));
  assert.deepEqual(may, [true, true, true, false, false]);
});

test("a moderator's request resolves when the server has carried it out", async () => {
  const server = new FakeServer("a");
  const { session } = await makeSession(server);
  await session.moderate({ action: "lock", locked: true });
  assert.equal(server.last("moderate")?.["action"], "lock");
});

test("a rejected request is announced, unless its track has just ended", async () => {
  const server = new FakeServer("a");
  const { seen } = await makeSession(server);
  const rejected = (code: string) => ({ type: "error", code, message: code, hint: "" });
  server.send(rejected("unknown_track"));
  server.send(rejected("forbidden"));
  assert.deepEqual(seen(), ["refused forbidden"]);
});

test("a cap is sent only if it is still the latest", async () => {
  const server = withAda();
  const { session } = await makeSession(server);
  session.maxRungs.set("t1", "q");
  session.sendMaxRung("t1", "q");
  session.maxRungs.set("t1", "h");
  session.sendMaxRung("t1", "h");
  await pass(0);
  assert.deepEqual(server.received.slice(1), [{ type: "set_rung", track: "t1", max: "h" }]);
});

// States.

test("a frozen session turns no knobs, sends no uplink reports, and is not muted by moderators", async () => {
  const server = new FakeServer("a");
  const { session, transport, seen } = await makeSession(server);
  const camera = publication("camera");
  const { requests } = camera as unknown as { requests: unknown[] };
  await session.publish(camera);
  session.freeze();
  assert.equal(transport.frozen, true);
  server.send({ type: "knobs", track: "a-1/camera", layers: { q: { kbps: 100 } } });
  server.send({ type: "track_muted", track: "a-1/camera", muted: true });
  session.report();
  assert.deepEqual([requests, seen(), server.types], [[], [], ["join"]]);
  session.thaw();
  server.send({ type: "knobs", track: "a-1/camera", layers: { q: { kbps: 100 } } });
  session.report();
  assert.equal(requests.length, 1);
  assert.deepEqual(server.types, ["join", "mute", "uplink"]);
});

test("a backup that the server wants is sent, turned by itself, and ends with its track", async () => {
  const server = new FakeServer("a");
  const { session, transport } = await makeSession(server);
  const camera = publication("camera");
  await session.publish(camera);
  const wanted = (track: string, codecs: string[]) => server.send({ type: "backup_wanted", track, codecs });
  wanted("a-1/camera", []);
  wanted("a-1/screen", ["vp8"]);
  await pass(0);
  assert.equal(transport.sent.size, 1);
  wanted("a-1/camera", ["vp8", "h264"]);
  await pass(0);
  const [, backup] = [...transport.sent];
  assert.equal(backup?.name, "camera in vp8");
  server.send({ type: "knobs", track: "a-1/camera in vp8", layers: { q: { active: false } } });
  assert.equal((backup as unknown as { requests: unknown[] }).requests.length, 1);
  wanted("a-1/camera", ["vp8", "av1"]);
  await pass(0);
  assert.deepEqual([...transport.sent], [camera, backup], "it is what is asked for");
  wanted("a-1/camera", ["h264", "vp8"]);
  await pass(0);
  assert.deepEqual(
    [...transport.sent].map(({ name }) => name),
    ["camera", "camera in h264"],
  );
  await session.unpublish(camera);
  assert.equal(transport.sent.size, 0);
});

test("a backup that the server refuses leaves the track as it is", async () => {
  const server = new FakeServer("a");
  const { session, transport } = await makeSession(server);
  const camera = publication("camera");
  await session.publish(camera);
  const { WindlassError } = await import("./errors.js");
  transport.refusal = new WindlassError("room_full", "There are too many tracks.", "");
  server.send({ type: "backup_wanted", track: "a-1/camera", codecs: ["vp8"] });
  await pass(0);
  assert.deepEqual([...transport.sent], [camera]);
  assert.deepEqual(server.types, ["join"]);
  transport.refusal = null;
  server.send({ type: "backup_wanted", track: "a-1/camera", codecs: ["vp8", "h264"] });
  await pass(0);
  assert.deepEqual(
    [...transport.sent].map(({ name }) => name),
    ["camera", "camera in h264"],
    "what was refused is not tried again",
  );
});

test("a session is lost once, and then only closes", async () => {
  const server = withAda();
  const { session, transport, seen } = await makeSession(server);
  const { unreachable } = await import("./errors.js");
  seen();
  server.cut();
  transport.onLost?.(unreachable());
  assert.deepEqual(seen(), ["lost connection_lost"]);
  session.close();
  assert.equal(transport.closed, true);
});

test("a closed session announces nothing", async () => {
  const server = withAda();
  const { session, seen } = await makeSession(server);
  server.send(joins("ada2", "ada"));
  seen();
  session.close();
  await pass(10_000);
  session.announce();
  assert.deepEqual(seen(), []);
});

test("quiet is announced after a second without an answer, where the cluster has another server", async () => {
  const server = new FakeServer("a");
  server.welcome = { others: ["wss://b.example/ws"] };
  const { session, seen } = await makeSession(server);
  await pass(2000);
  assert.deepEqual(seen(), []);
  server.silent = true;
  await pass(2000);
  assert.equal(session.quiet, true);
  assert.ok(seen().includes("quiet"));
});

test("a session whose server is silent for 12 s is lost", async () => {
  const server = new FakeServer("a");
  const { seen } = await makeSession(server);
  server.silent = true;
  await pass(20_000);
  assert.deepEqual(seen(), ["lost connection_lost"]);
});

// Succeeding a former session.

test("a successor without a media path is not ready", async () => {
  const [a, b] = [withAda(), new FakeServer("b")];
  const { session: former } = await makeSession(a);
  const { session } = await makeSession(b, { former });
  const ready = session.ready(4500);
  await pass(4600);
  assert.equal(await ready, false);
});

test("a successor that has nothing to send or receive is ready at once", async () => {
  const [a, b] = [new FakeServer("a"), new FakeServer("b")];
  const { session: former } = await makeSession(a);
  const { session } = await makeSession(b, { former });
  assert.equal(await session.ready(4500), true);
});

test("muted and paused tracks are not waited for", async () => {
  const [a, b] = [withAda(), new FakeServer("b")];
  a.tracks.push(video("t2", ADA.id, "screen"));
  const { session: former } = await makeSession(a);
  a.send({ type: "track_muted", track: "t1", muted: true });
  a.send({ type: "paused", track: "t2", paused: true });
  const { session, transport } = await makeSession(b, { former });
  transport.up();
  assert.equal(await session.ready(4500), true);
});

test("a track succeeds that of the same source, by its owner's id here or on the former server", async () => {
  const [a, b] = [withAda(), new FakeServer("b")];
  b.participants = [{ id: "ada9", name: "Ada", was: ADA.id }];
  const { session: former } = await makeSession(a);
  const { session } = await makeSession(b, { former });
  const [t1] = former.tracks;
  assert.equal(session.predecessorOf(video("x", "ada9")), t1);
  assert.equal(session.predecessorOf(video("x", ADA.id)), t1);
  assert.equal(session.predecessorOf(video("x", "ada9", "screen")), null);
  assert.equal(session.predecessorOf(audio("x", "ada9", "camera")), null);
  session.forgetFormer();
  assert.equal(session.predecessorOf(video("x", "ada9")), null);
});

test("this participant's own former self is neither announced nor received", async () => {
  const [a, b] = [new FakeServer("a"), new FakeServer("b")];
  const { session: former } = await makeSession(a);
  b.participants = [{ id: former.participant, name: "Me" }];
  b.tracks = [video("own", former.participant)];
  const { session, seen } = await makeSession(b, { former });
  assert.deepEqual(seen(), []);
  assert.deepEqual(session.tracks, []);
});
