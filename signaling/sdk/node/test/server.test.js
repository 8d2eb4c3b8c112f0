// The SDK against a real server, which `WINDLASS_BIN` names.
import assert from "node:assert/strict";
import { createHmac, generateKeyPairSync, verify } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { AdminClient, ApiError, NoAnswerError, readWebhook, signToken, WebhookError } from "windlass-server-sdk";
import { enter, freePort, KEY, SECRET, start } from "./support.js";

const OTHER_KEY = "k1=another secret, which has 32 bytes too";
const soon = Math.floor(Date.now() / 1000) + 600;

let running;
let admin;
before(async () => {
  running = await start();
  admin = new AdminClient(running.url, { key: KEY });
});
after(async () => {
  await running?.sample.end();
  await running?.server.end();
});

test("a call from its token to its last webhook", { timeout: 30_000 }, async () => {
  const { sample, url } = running;
  const token = await sample.line();
  assert.equal(await sample.line(), "tea-room: 0");

  assert.equal((await enter(url, "tea-room", token)).status, 201);
  await sample.until("room_started tea-room");
  await sample.until("participant_joined Ana");
  await sample.until("track_published Ana");
  const room = await admin.getRoom("tea-room");
  const [ana] = room.participants;
  assert.equal(room.max_participants, 8);
  assert.deepEqual([ana.identity, ana.grants], ["ana", ["publish", "subscribe", "enhance", "data"]]);

  const camera = ana.tracks.find((track) => track.kind === "video");
  assert.equal((await admin.muteTrack("tea-room", camera.id, { muted: true })).muted_by_operator, true);

  assert.equal((await admin.setEntry("tea-room", { locked: true })).locked, true);
  const bo = signToken(KEY, { room: "tea-room", sub: "bo", exp: soon });
  assert.equal((await (await enter(url, "tea-room", bo)).json()).code, "locked");
  await admin.setEntry("tea-room", {});

  await admin.removeParticipant("tea-room", ana.id);
  await sample.until("participant_left Ana");
  await sample.until("room_finished tea-room");
});

test("names in paths arrive as they are", async () => {
  const identity = "a/b ?é%2F";
  await admin.ban("tea-room", identity, { seconds: 60 });
  assert.deepEqual(
    (await admin.listBans("tea-room")).bans.map((ban) => ban.identity),
    [identity],
  );
  await admin.unban("tea-room", identity);
  assert.deepEqual(await admin.listBans("tea-room"), { bans: [] });
  await assert.rejects(admin.unban("tea-room", ".."), TypeError);
});

test("what the server refuses has its reason", async () => {
  const refused = (status, code) => (error) =>
    error instanceof ApiError && error.status === status && error.code === code && error.message !== "";
  await assert.rejects(admin.getRoom("nowhere"), refused(404, "unknown_room"));
  await assert.rejects(new AdminClient(running.url, { key: OTHER_KEY }).listRooms(), refused(401, "unauthorized"));
  const token = signToken(KEY, { room: "tea-room", sub: "ops", grants: ["admin"], exp: soon });
  const one = new AdminClient(running.url, { token });
  assert.equal((await one.configureRoom("tea-room", {})).room, "tea-room");
  await assert.rejects(one.listRooms(), refused(403, "forbidden"));
  assert.equal((await enter(running.url, "x", signToken(OTHER_KEY, { room: "x", sub: "eve", exp: soon }))).status, 401);
  assert.equal(
    (await enter(running.url, "x", signToken(KEY, { room: "x", sub: "eve", grants: [], exp: soon }))).status,
    403,
  );
});

test("no answer is told from a refusal", async () => {
  await assert.rejects(
    new AdminClient(`http://127.0.0.1:${await freePort()}`, { key: KEY }).listRooms(),
    NoAnswerError,
  );
  const silent = createTcpServer();
  await once(silent.listen(0, "127.0.0.1"), "listening");
  const unheard = new AdminClient(`http://127.0.0.1:${silent.address().port}`, { key: KEY, timeoutMs: 50 });
  await assert.rejects(unheard.listRooms(), NoAnswerError);
  silent.close();
});

test("a token is sent to no other server", async () => {
  const proxy = createServer((_, response) =>
    response.writeHead(307, { location: `${running.url}/admin/rooms` }).end(),
  );
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  const elsewhere = new AdminClient(`http://127.0.0.1:${proxy.address().port}`, { key: KEY });
  await assert.rejects(elsewhere.listRooms(), (error) => error instanceof ApiError && error.status === 307);
  proxy.close();
});

test("a token key of Ed25519 signs by its algorithm", () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const file = path.join(mkdtempSync(path.join(tmpdir(), "windlass-")), "key.pem");
  writeFileSync(file, privateKey.export({ type: "pkcs8", format: "pem" }));
  const [head, claims, signature] = signToken(`k2=@${file}`, { room: "x", sub: "ana", exp: soon }).split(".");
  assert.equal(JSON.parse(Buffer.from(head, "base64url")).alg, "EdDSA");
  assert.ok(verify(null, Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature, "base64url")));
});

test("keys that the server would not take are refused", () => {
  for (const key of ["", "k1", "=x", "a b=0123456789abcdef0123456789abcdef", "k1=short"]) {
    assert.throws(() => signToken(key, { room: "x", sub: "ana", exp: soon }), TypeError, key);
  }
});

function signed(body, at = Math.floor(Date.now() / 1000)) {
  const key = Buffer.from(SECRET.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`evt_1.${at}.${body}`).digest("base64");
  return { "webhook-id": "evt_1", "webhook-timestamp": `${at}`, "webhook-signature": `v1,AAAA v1,${signature}` };
}

test("a webhook is read if it is genuine and new", async () => {
  const body = JSON.stringify({ id: "evt_1", type: "of_later", at: 1, room: "x", more: 1 });
  assert.equal(readWebhook(SECRET, signed(body), body).type, "of_later");
  assert.equal(readWebhook(SECRET, new Headers(signed(body)), Buffer.from(body)).room, "x");
  const old = Math.floor(Date.now() / 1000) - 301;
  for (const [headers, said] of [
    [signed(body), body.replace('"x"', '"y"')],
    [signed(body, old), body],
    [signed(body, "soon"), body],
    [{ ...signed(body), "webhook-id": "evt_2" }, body],
    [{ ...signed(body), "webhook-signature": "v1,AAAA" }, body],
    [{ ...signed(body), "webhook-signature": undefined }, body],
    [signed("{"), "{"],
  ]) {
    assert.throws(() => readWebhook(SECRET, headers, said), WebhookError, said);
  }
  const headers = { ...signed(body), "webhook-signature": "v1,AAAA" };
  assert.equal((await fetch(running.hook, { method: "POST", headers, body })).status, 401);
});

test("a drained server ends", { timeout: 30_000 }, async () => {
  assert.equal((await admin.drain()).seconds, 30);
  await assert.rejects(running.server.until("another word"), /has ended/);
});
