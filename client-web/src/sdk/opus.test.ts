import assert from "node:assert/strict";
import { test } from "node:test";
import { opusPreferences, preferAudio } from "./opus.js";

const codec = (mimeType: string) => ({ mimeType, clockRate: 48_000, channels: 2 });
const NONE = new Set<string>();

const section = (mid: string, types: string) =>
  [
    `m=audio 9 UDP/TLS/RTP/SAVPF ${types}`,
    `a=mid:${mid}`,
    "a=rtpmap:63 red/48000/2",
    "a=fmtp:63 111/111",
    "a=rtpmap:111 opus/48000/2",
    "a=fmtp:111 minptime=10;useinbandfec=1",
    "",
  ].join("\r\n");
const VIDEO = "m=video 9 UDP/TLS/RTP/SAVPF 98\r\na=mid:1\r\na=rtpmap:98 VP9/90000\r\na=fmtp:98 profile-id=0\r\n";

test("Opus and redundancy are offered, and nothing else", () => {
  const offered = opusPreferences(["audio/red", "audio/opus", "audio/G722", "audio/PCMU"].map(codec));
  assert.deepEqual(
    offered.map((c) => c.mimeType),
    ["audio/opus", "audio/red"],
  );
});

test("an answer asks for silence of every Opus stream, once, and leaves video alone", () => {
  const asked = preferAudio(`v=0\r\n${section("0", "111 63")}${VIDEO}${section("2", "111 63")}`, NONE);
  assert.equal(asked.match(/^a=fmtp:111 minptime=10;useinbandfec=1;usedtx=1\r$/gm)?.length, 2, asked);
  assert.ok(asked.startsWith("v=0\r\nm=audio") && asked.includes(VIDEO));
  assert.equal(preferAudio(asked, NONE), asked);
});

test("redundancy comes first where it is wanted, and last elsewhere", () => {
  const answer = preferAudio(section("0", "63 111") + section("4", "63 111"), new Set(["4"]));
  assert.deepEqual(answer.match(/^m=audio.*$/gm), [
    "m=audio 9 UDP/TLS/RTP/SAVPF 111 63",
    "m=audio 9 UDP/TLS/RTP/SAVPF 63 111",
  ]);
});

test("an answer without parameters gets a line for them", () => {
  const bare = "m=audio 9 X 96\r\na=rtpmap:96 opus/48000/2\r\na=mid:0\r\n";
  assert.equal(
    preferAudio(bare, NONE),
    "m=audio 9 X 96\r\na=rtpmap:96 opus/48000/2\r\na=fmtp:96 usedtx=1\r\na=mid:0\r\n",
  );
});
