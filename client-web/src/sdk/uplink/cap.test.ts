import assert from "node:assert/strict";
import { test } from "node:test";
import { capLayers, capUplink } from "./cap.js";
import { layerSettings } from "./layers.js";

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

test("layers share a cap, the smallest first", () => {
  const under = (kbps: number | null) =>
    capLayers(layerSettings("qhf", new Map()), kbps)
      .filter(({ active }) => active)
      .map(({ rid, maxBitrate }) => `${rid} ${maxBitrate / 1000}`);
  assert.deepEqual(under(null), ["q 150", "h 500", "f 1500"]);
  assert.deepEqual(under(1000), ["q 150", "h 500", "f 350"]);
  assert.deepEqual(under(300), ["q 150", "h 150"]);
  assert.deepEqual(under(180), ["q 150"]);
  assert.deepEqual(under(40), ["q 40"]);
});
