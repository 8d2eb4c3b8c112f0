import assert from "node:assert/strict";
import { test } from "node:test";
import type { PictureHost } from "../picture-decoder.js";
import { LowLayer, type Maker } from "./low-layer.js";
import type { Picture } from "./picture.js";

const KEY = Uint8Array.of(1).buffer;
const DELTA = Uint8Array.of(0).buffer;
const PLANE = { data: new Uint8Array(4), offset: 0, stride: 2, step: 1 };
const CAMERA: Picture = { planes: [PLANE, PLANE, PLANE], width: 2, height: 2 };
const TASK = { rtp: 0, scale: 2, bits: Uint8Array.of(1), bytes: 100 };

/** A decoder that checks only for a key frame, and traps on a byte of 9. */
function decoder(): Maker {
  let running = false;
  return {
    follow: (_, [byte]) => {
      if (byte === 9) throw new WebAssembly.RuntimeError("unreachable");
      running ||= byte === 1;
      return running;
    },
    followPicture: () => {
      running = true;
      return true;
    },
    reset: () => {
      running = false;
    },
    make: () => (running ? Uint8Array.of(7) : "no-base"),
  };
}

function layer() {
  const said: (number | null | "key frame")[] = [];
  const browser: { host: PictureHost | null; frames: number[]; pictures: number } = {
    host: null,
    frames: [],
    pictures: 0,
  };
  const low = new LowLayer(
    {
      follow: (ssrc) => said.push(ssrc),
      requestKeyFrame: () => said.push("key frame"),
      decoded: () => browser.pictures++,
    },
    (host) => {
      browser.host = host;
      return { decode: (_, { rtpTimestamp }) => browser.frames.push(rtpTimestamp), reset: () => undefined };
    },
  );
  low.start(decoder);
  return { low, said, browser };
}

test("it follows the layer that is wanted, from a key frame on", () => {
  const { low, said } = layer();
  low.want(0, 5);
  low.sent(10, 5, 1, DELTA, null);
  assert.equal(low.ready, false);
  low.sent(20, 5, 2, KEY, null);
  assert.ok(low.ready);
  assert.deepEqual(low.make(30, CAMERA, TASK), Uint8Array.of(7));
  assert.deepEqual(said, [5]);
});

test("where no key frame comes by itself one is asked for, and seldom", () => {
  const { low, said } = layer();
  for (let now = 0; now < 3600; now += 100) low.want(now, 5);
  assert.deepEqual(said, [5, "key frame", "key frame"]);
});

test("another layer, another relay and a gap each wait for a key frame again", () => {
  const { low, said } = layer();
  low.want(0, 5);
  for (const interrupt of [() => low.want(1, 6), () => low.portChanged(2), () => low.framesMissing(3)]) {
    low.sent(1, said.at(-1) as number, 1, KEY, null);
    assert.ok(low.ready);
    interrupt();
    assert.equal(low.ready, false);
    assert.equal(low.make(4, CAMERA, TASK), "no-base");
  }
  assert.deepEqual(said, [5, 6, 6]);
});

test("frames of other layers, and those without data, are left alone", () => {
  const { low } = layer();
  low.want(0, 5);
  low.sent(1, 6, 1, KEY, null);
  low.sent(2, 5, 1, null, null);
  assert.equal(low.ready, false);
});

test("without requests it ends after a minute", () => {
  const { low, said } = layer();
  low.want(0, 5);
  low.sent(60_000, 5, 1, KEY, null);
  assert.ok(low.ready);
  low.sent(60_001, 5, 2, DELTA, null);
  assert.deepEqual([low.ready, said], [false, [5, null]]);
});

test("a decoder that traps is made again three times, and no more", () => {
  const { low } = layer();
  low.want(0, 5);
  for (let trap = 0; trap < 3; trap++) {
    low.sent(1, 5, 1, KEY, null);
    assert.ok(low.ready && low.available);
    low.sent(2, 5, 2, Uint8Array.of(9).buffer, null);
    assert.equal(low.ready, false);
  }
  assert.equal(low.available, false);
});

test("without a decoder nothing is asked for", () => {
  const said: unknown[] = [];
  const low = new LowLayer({
    follow: (ssrc) => said.push(ssrc),
    requestKeyFrame: () => said.push("key frame"),
    decoded: () => undefined,
  });
  for (let now = 0; now < 5000; now += 500) low.want(now, 5);
  assert.deepEqual([low.available, low.ready, said], [false, false, []]);
});

test("the browser decodes another codec, and stills are made over its pictures", () => {
  const { low, said, browser } = layer();
  const key = { codec: "h264", key: true, width: 320, height: 180 } as const;
  low.want(0, 5);
  low.sent(10, 5, 90, KEY, key);
  assert.deepEqual([low.ready, browser.frames], [false, [90]]);
  browser.host?.decoded(90, { width: 2, height: 2, data: new Uint8Array(6), colour: null });
  assert.ok(low.ready);
  assert.deepEqual([low.has(90), low.has(91), browser.pictures], [true, false, 1]);
  browser.host?.failed(false);
  assert.ok(!low.ready && low.available);
  low.want(4000, 5);
  assert.equal(said.at(-1), "key frame");
  browser.host?.failed(true);
  assert.ok(!low.available, "the browser has no such decoder");
});
