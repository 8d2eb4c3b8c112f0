import assert from "node:assert/strict";
import { test } from "node:test";
import { inventRoom, pageOptions, roomLink, roomName } from "./options.js";

const at = (tail: string) => pageOptions(new URL(`http://localhost:7880/${tail}`));

test("the room comes from the query or the hash", () => {
  assert.equal(at("?room=a&name=Ada").room, "a");
  assert.equal(at("#b").room, "b");
  assert.equal(at("#%E0%A4%A").room, null);
  assert.equal(at("").room, null);
});

test("a token comes with the hash, alone or beside the room, or with the query", () => {
  assert.deepEqual([at("?room=a#token=x.y.z").room, at("?room=a#token=x.y.z").token], ["a", "x.y.z"]);
  assert.deepEqual([at("#room=b&token=x.y.z").room, at("#room=b&token=x.y.z").token], ["b", "x.y.z"]);
  assert.deepEqual([at("#token=x.y.z").room, at("?token=q#b").token, at("?token=q#b").room], [null, "q", "b"]);
  assert.equal(at("#b").token, null);
});

test("any text becomes a room name that the server takes, or none", () => {
  assert.equal(roomName("  Team stand-up, Monday! "), "Team-stand-up-Monday");
  assert.equal(roomName("***"), null);
  assert.match(inventRoom(), /^[a-z]+-[a-z]+-\d{3}$/);
});

test("options outside their choices are left at their defaults", () => {
  const options = at("?layers=xyz&view=upside-down&maxRung=z&auto=0");
  assert.deepEqual([options.layers, options.view, options.maxRung, options.auto], ["qhf", null, null, false]);
});

test("an enhanced rung may be written with a bare plus", () => {
  assert.equal(at("?maxRung=h+").maxRung, "h+");
  assert.equal(at("?maxRung=h%2B").maxRung, "h+");
});

test("the link to share holds the room and nothing else", () => {
  assert.equal(roomLink(new URL("http://h/?auto=1&name=x#y"), "a b"), "http://h/?room=a+b");
});

test("tiles tell their size unless the address says otherwise", () => {
  assert.deepEqual([at("").adaptive, at("?adaptive=1").adaptive, at("?adaptive=0").adaptive], [true, true, false]);
});

test("full-size stills are off unless the address says otherwise", () => {
  assert.deepEqual([at("").detail, at("?detail=0").detail, at("?detail=1").detail], [false, false, true]);
});

test("the key of encryption is found whatever else the fragment holds, and is in the link for others", () => {
  const bytes = Uint8Array.of(0, 1, 255);
  for (const hash of ["key=AAH_", "key=AAH_&room=100%", "token=a%zz&key=AAH_"]) {
    const address = new URL(`https://h/#${hash}`);
    assert.deepEqual(pageOptions(address).key, bytes);
    assert.equal(roomLink(address, "tea"), "https://h/?room=tea#key=AAH_");
  }
  assert.deepEqual(pageOptions(new URL("https://h/#key=%%%")).key, new Uint8Array(), "what is none lets no call begin");
  assert.equal(pageOptions(new URL("https://h/#tea")).key, null);
});
