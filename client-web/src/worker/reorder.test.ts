import assert from "node:assert/strict";
import { test } from "node:test";
import { type EncodedFrame, ReorderBuffer, rtpDistance } from "./reorder.js";

function frame(id: number | undefined, at: number, key = false): EncodedFrame {
  return {
    rtpTimestamp: ((id ?? at) * 3000) >>> 0,
    frameId: id,
    key,
    codec: null,
    data: new Uint8Array(1),
    arrival: at,
  };
}

function drain(buffer: ReorderBuffer, now: number): (number | undefined)[] {
  const ids: (number | undefined)[] = [];
  for (let f = buffer.pop(now); f !== null; f = buffer.pop(now)) ids.push(f.frameId);
  return ids;
}

test("nothing is released before the first key frame", () => {
  const buffer = new ReorderBuffer();
  buffer.push(frame(5, 0));
  buffer.push(frame(6, 10));
  assert.deepEqual(drain(buffer, 10), []);
  assert.ok(buffer.waitingForKey);
  buffer.push(frame(7, 20, true));
  assert.deepEqual(drain(buffer, 20), [7]);
  assert.equal(buffer.counters.skipped, 2);
});

test("a frame mended by retransmission takes its place again", () => {
  const buffer = new ReorderBuffer();
  buffer.push(frame(1, 0, true));
  buffer.push(frame(3, 66));
  assert.deepEqual(drain(buffer, 66), [1]);
  assert.equal(buffer.deadline(), 316);
  buffer.push(frame(2, 90));
  assert.deepEqual(drain(buffer, 90), [2, 3]);
  assert.equal(buffer.deadline(), null);
});

test("a gap that is not filled in time is given up until the next key frame", () => {
  const buffer = new ReorderBuffer(250);
  buffer.push(frame(1, 0, true));
  buffer.push(frame(4, 100));
  assert.deepEqual(drain(buffer, 349), [1]);
  assert.deepEqual(drain(buffer, 350), []);
  assert.ok(buffer.waitingForKey);
  assert.deepEqual(buffer.counters, { late: 0, lost: 2, skipped: 1 });
  buffer.push(frame(5, 360));
  buffer.push(frame(9, 400, true));
  assert.deepEqual(drain(buffer, 400), [9]);
});

test("a key frame behind a gap is taken at once", () => {
  const buffer = new ReorderBuffer();
  buffer.push(frame(1, 0, true));
  drain(buffer, 0);
  buffer.push(frame(3, 66));
  buffer.push(frame(4, 99, true));
  assert.deepEqual(drain(buffer, 99), [4]);
  assert.deepEqual(buffer.counters, { late: 0, lost: 1, skipped: 1 });
});

test("a frame whose turn has passed is counted and dropped, a duplicate only dropped", () => {
  const buffer = new ReorderBuffer();
  buffer.push(frame(1, 0, true));
  buffer.push(frame(2, 33));
  buffer.push(frame(2, 34));
  assert.deepEqual(drain(buffer, 34), [1, 2]);
  buffer.push(frame(1, 40));
  assert.equal(buffer.counters.late, 1);
  assert.deepEqual(drain(buffer, 40), []);
});

test("without frame ids the order of arrival counts", () => {
  const buffer = new ReorderBuffer();
  buffer.push(frame(undefined, 10, true));
  buffer.push(frame(undefined, 20));
  buffer.push(frame(undefined, 15));
  assert.equal(drain(buffer, 20).length, 2);
  assert.equal(buffer.counters.late, 1);
});

test("numbering that begins again at a key frame is followed", () => {
  const buffer = new ReorderBuffer();
  buffer.push({ ...frame(100, 0, true), rtpTimestamp: 1000 });
  drain(buffer, 0);
  buffer.push({ ...frame(1, 33, true), rtpTimestamp: 4000 });
  assert.deepEqual(drain(buffer, 33), [1]);
});

test("the buffer stays within its bound", () => {
  const buffer = new ReorderBuffer(1e9, 8);
  buffer.push(frame(0, 0, true));
  for (let id = 1; id < 100; id++) buffer.push(frame(id, id));
  assert.ok(buffer.length <= 8);
});

test("timestamps are compared across their wrap", () => {
  assert.equal(rtpDistance(5, 0xffff_fffb), 10);
  assert.equal(rtpDistance(0xffff_fffb, 5), -10);
});

test("what was held before a pause is not decoded after it", () => {
  const buffer = new ReorderBuffer();
  buffer.push(frame(1, 0, true));
  drain(buffer, 0);
  buffer.push(frame(2, 33, true));
  buffer.clear();
  assert.ok(buffer.waitingForKey);
  buffer.push(frame(200, 4000));
  assert.deepEqual(drain(buffer, 4000), []);
  buffer.push(frame(201, 4033, true));
  assert.deepEqual(drain(buffer, 4033), [201]);
  assert.equal(buffer.counters.skipped, 2);
});
