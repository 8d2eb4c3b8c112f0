import assert from "node:assert/strict";
import { test } from "node:test";
import { capUplink } from "./cap.js";

const section = (media: string, direction: string) =>
  `m=${media} 9 UDP/TLS/RTP/SAVPF 98\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=${direction}\r\n`;
const head = "v=0\r\ns=-\r\n";

test("the cap stands in the sections of videos, before their attributes", () => {
  const answer = head + section("video", "recvonly") + section("video", "sendonly") + section("audio", "recvonly");
  const capped = capUplink(answer, 149.6);
  assert.equal(capped.match(/b=AS:150/g)?.length, 2);
  assert.match(capped, /m=video[^\n]*\r\nc=[^\n]*\r\nb=AS:150\r\na=mid:0\r\na=recvonly/);
});

test("without a cap the answer stays as it is", () => {
  const answer = head + section("video", "recvonly");
  assert.equal(capUplink(answer, null), answer);
});
