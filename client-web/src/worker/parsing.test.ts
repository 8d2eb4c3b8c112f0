import assert from "node:assert/strict";
import { test } from "node:test";
import { ArrivalLog, parseAnchorHeader } from "./anchors.js";
import { parseVp9Header } from "./vp9.js";
import { RateWindow, SampleWindow } from "./windows.js";

function keyFrame(width: number, height: number, colourSpace = 0): Uint8Array {
  const bits: number[] = [];
  const put = (value: number, count: number) => {
    for (let i = count - 1; i >= 0; i--) bits.push((value >> i) & 1);
  };
  put(0b10, 2); // marker
  put(0, 2); // profile 0
  put(0, 1); // show_existing_frame
  put(0, 1); // key frame
  put(1, 1); // show_frame
  put(0, 1); // error_resilient_mode
  put(0x498342, 24);
  put(colourSpace, 3);
  put(0, 1);
  put(width - 1, 16);
  put(height - 1, 16);
  const bytes = new Uint8Array(32);
  bits.forEach((bit, i) => {
    bytes[i >> 3] = (bytes[i >> 3] ?? 0) | (bit << (7 - (i & 7)));
  });
  return bytes;
}

test("a VP9 key frame tells its size and colour", () => {
  const header = parseVp9Header(keyFrame(319, 181, 1));
  assert.deepEqual(header, {
    key: true,
    size: { width: 319, height: 181 },
    colour: { matrix: "smpte170m", fullRange: false },
  });
});

test("colours that are not signalled count as BT.709", () => {
  assert.equal(parseVp9Header(keyFrame(64, 64, 0))?.colour?.matrix, "bt709");
});

test("a VP9 inter frame is no key frame", () => {
  assert.deepEqual(parseVp9Header(new Uint8Array([0b1000_0110, 0])), { key: false });
  assert.deepEqual(parseVp9Header(new Uint8Array([0b1000_1000])), { key: false });
});

test("what is not VP9 profile 0 is refused", () => {
  for (const bytes of [[], [0], [0b1011_0000], [0b1000_0010, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [0b1000_0010, 0x49]]) {
    assert.equal(parseVp9Header(new Uint8Array(bytes)), null);
  }
  assert.equal(parseVp9Header(keyFrame(320, 180, 7)), null);
});

function anchor(change: (view: DataView) => void = () => undefined): ArrayBuffer {
  const buffer = new ArrayBuffer(30);
  const view = new DataView(buffer);
  view.setUint8(0, 1);
  view.setUint32(4, 77);
  view.setUint16(10, 1);
  view.setUint16(12, 3);
  view.setUint16(14, 42);
  view.setUint32(16, 0xdead_beef);
  change(view);
  return buffer;
}

test("an anchor message tells its stream, chunk, age and timestamp", () => {
  assert.deepEqual(parseAnchorHeader(anchor()), {
    stream: 77,
    chunk: 1,
    chunks: 3,
    ageMs: 42,
    rtpTimestamp: 0xdead_beef,
    tiled: false,
    source: "enhanced",
  });
  assert.equal(parseAnchorHeader(anchor((v) => v.setUint8(3, 1)))?.tiled, true);
  assert.equal(parseAnchorHeader(anchor((v) => v.setUint8(2, 1)))?.source, "captured");
});

test("malformed anchor messages are refused", () => {
  assert.equal(parseAnchorHeader(new ArrayBuffer(24)), null);
  assert.equal(parseAnchorHeader(new ArrayBuffer(0)), null);
  assert.equal(parseAnchorHeader(anchor((v) => v.setUint8(0, 2))), null);
  assert.equal(parseAnchorHeader(anchor((v) => v.setUint16(10, 3))), null);
  assert.equal(parseAnchorHeader(anchor((v) => v.setUint16(12, 0))), null);
  assert.equal(parseAnchorHeader(anchor((v) => v.setUint16(12, 257))), null);
});

test("the arrival log forgets the oldest", () => {
  const log = new ArrivalLog(2);
  for (let i = 0; i < 3; i++) log.note(i, i * 10);
  assert.equal(log.since(0, 100), null);
  assert.equal(log.since(2, 100), 80);
});

test("a rate counts the last second only", () => {
  const rate = new RateWindow(1000);
  for (let at = 0; at < 3000; at += 100) rate.add(at);
  assert.equal(rate.perSecond(2950), 10);
  assert.equal(rate.perSecond(9000), 0);
});

test("percentiles and means leave out what is old", () => {
  const window = new SampleWindow(200, 1000);
  assert.equal(window.percentile(0, 0.5), null);
  window.add(0, 1000);
  for (let i = 1; i <= 100; i++) window.add(1500, i);
  assert.equal(window.percentile(1600, 0.5), 51);
  assert.equal(window.percentile(1600, 0.95), 96);
  assert.equal(window.mean(1600), 50.5);
});
