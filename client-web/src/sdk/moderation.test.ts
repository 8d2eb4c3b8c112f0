import assert from "node:assert/strict";
import { test } from "node:test";
import { Moderation } from "./moderation.js";
import type { Moderate } from "./protocol.gen.js";
import { parseServerMessage } from "./protocol.js";

test("what a moderator does is one message each", async () => {
  const said: Moderate[] = [];
  const moderation = new Moderation((order) => {
    said.push(order);
    return Promise.resolve();
  });
  await moderation.lock();
  await moderation.setLobby(false);
  await moderation.admit({ id: "w1" });
  await moderation.refuse("w1");
  await moderation.setGrants({ id: "p1" }, ["subscribe"]);
  await moderation.remove("p1");
  await moderation.ban("p1", 60);
  await moderation.unban("bo");
  await moderation.mute("t1");
  assert.deepEqual(said, [
    { action: "lock", locked: true },
    { action: "lobby", lobby: false },
    { action: "admit", waiting: "w1" },
    { action: "refuse", waiting: "w1" },
    { action: "grants", participant: "p1", grants: ["subscribe"] },
    { action: "remove", participant: "p1" },
    { action: "ban", participant: "p1", seconds: 60 },
    { action: "unban", identity: "bo" },
    { action: "mute", track: "t1", muted: true },
  ]);
});

test("what the server reports of rights is read", () => {
  const read = (message: object) => parseServerMessage(JSON.stringify(message));
  assert.deepEqual(read({ type: "waiting" }), { type: "waiting" });
  const lobby = { type: "lobby", waiting: [{ id: "w1", name: "Cy", identity: "cy" }] };
  assert.deepEqual(read(lobby), lobby);
  const grants = { type: "grants", grants: ["subscribe", "one of a newer server"] };
  assert.deepEqual(read(grants), grants);
  const entry = { type: "entry", locked: true, lobby: false };
  assert.deepEqual(read(entry), entry);
  assert.deepEqual(read({ type: "done", id: 7 }), { type: "done", id: 7 });
  assert.equal(read({ type: "entry", locked: "yes", lobby: false }), null);
  assert.equal(read({ type: "lobby", waiting: [{ id: 1, name: "Cy" }] }), null);
});
