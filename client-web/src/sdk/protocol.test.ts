import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "./backoff.js";
import { WindlassError } from "./errors.js";
import { parseServerMessage } from "./protocol.js";
import { videoEncodings } from "./publication.js";
import { layerSettings } from "./uplink/layers.js";

test("a welcome is read with its participants and tracks", () => {
  const message = parseServerMessage(
    JSON.stringify({
      type: "welcome",
      version: 1,
      participant: "p1",
      room: "r",
      loopback: false,
      budget_ms: 200,
      scale: 2,
      lr_pixels: 518_400,
      max_sections: 64,
      participants: [{ id: "p2", name: "Ada" }],
      tracks: [{ id: "t1", participant: "p2", kind: "video", name: "camera", muted: false, stream: 9 }],
    }),
  );
  assert.equal(message?.type, "welcome");
  assert.ok(message?.type === "welcome" && message.tracks[0]?.stream === 9 && message.participants[0]?.name === "Ada");
});

test("identities and grants are read where the server tells them", () => {
  const joined = '{"type":"participant_joined","participant":"p1","name":"Ada","identity":"ada"}';
  assert.deepEqual(parseServerMessage(joined), {
    type: "participant_joined",
    participant: "p1",
    name: "Ada",
    identity: "ada",
  });
});

test("an error keeps its code, hint and the id that it answers", () => {
  const message = parseServerMessage(
    '{"type":"error","code":"room_full","message":"m","hint":"h","id":3,"fatal":true}',
  );
  assert.deepEqual(message, { type: "error", code: "room_full", message: "m", hint: "h", id: 3, fatal: true });
});

test("fields that this client does not know are ignored", () => {
  assert.deepEqual(parseServerMessage('{"type":"pong","time":1.5,"colour":"blue"}'), { type: "pong", time: 1.5 });
});

test("whatever is malformed is refused, never thrown", () => {
  const bad = [
    "",
    "null",
    "[]",
    "7",
    "{}",
    '{"type":7}',
    '{"type":"toString"}',
    '{"type":"fly"}',
    '{"type":"pong","time":"x"}',
    '{"type":"rung","track":"t1","rung":"z","epoch":1,"width":1,"height":1,"scale":2}',
    '{"type":"rung","track":"t1","rung":"q+","epoch":1,"width":1,"height":1,"scale":"2"}',
    '{"type":"track_added","track":{"id":"t1"}}',
    '{"type":"stats","tracks":{}}',
    '{"type":"answer","id":1}',
  ];
  for (const json of bad) assert.equal(parseServerMessage(json), null, json);
});

test("waiting times double up to a bound, with a random share", () => {
  const backoff = new Backoff(500, 8000, () => 0.5);
  assert.deepEqual(
    Array.from({ length: 6 }, () => backoff.next()),
    [500, 1000, 2000, 4000, 8000, 8000],
  );
  backoff.reset();
  assert.equal(backoff.next(), 500);
  assert.equal(new Backoff(500, 8000, () => 0).next(), 375);
});

test("a limited camera still declares every layer, at its share of the picture", () => {
  const encodings = videoEncodings(layerSettings("qh", new Map()), "camera");
  assert.deepEqual(
    encodings.map((e) => [e.rid, e.scaleResolutionDownBy, e.active, e.scalabilityMode]),
    [
      ["q", 4, true, "L1T1"],
      ["h", 2, true, "L1T1"],
      ["f", 1, false, "L1T1"],
    ],
  );
});

test("only failures that may pass are tried again", () => {
  assert.ok(new WindlassError("connection_lost", "", "").temporary);
  assert.ok(!new WindlassError("room_full", "", "").temporary);
});

test("codecs of a later server are left out of a backup's", () => {
  const wanted = (codecs: unknown) =>
    parseServerMessage(JSON.stringify({ type: "backup_wanted", track: "t1", codecs }));
  assert.deepEqual(wanted(["vp8", "vp11", "h264"]), { type: "backup_wanted", track: "t1", codecs: ["vp8", "h264"] });
  assert.equal(wanted("vp8"), null);
});

test("knobs name layers", () => {
  const knobs = (fields: object) => parseServerMessage(JSON.stringify({ type: "knobs", track: "t1", ...fields }));
  assert.deepEqual(knobs({ layers: { q: { kbps: 80, active: true } } }), {
    type: "knobs",
    track: "t1",
    layers: { q: { kbps: 80, fps: undefined, active: true, needed: undefined } },
  });
  assert.deepEqual(knobs({}), { type: "knobs", track: "t1", layers: {} });
  assert.equal(knobs({ layers: { q: { kbps: "many" } } }), null);
  assert.equal(knobs({ layers: [] }), null);
});

test("a request for regions is read whole or not at all", () => {
  const request = {
    type: "regions",
    track: "t1",
    id: 7,
    width: 320,
    height: 180,
    scale: 2,
    tiles: "AQA=",
    bytes: 2000,
  };
  assert.deepEqual(parseServerMessage(JSON.stringify(request)), request);
  assert.equal(parseServerMessage(JSON.stringify({ ...request, tiles: 3 })), null);
});
