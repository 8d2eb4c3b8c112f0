import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../sdk/testing/clock.js";
import { BaseKeys } from "./base-keys.js";
import type { FrameCopy, SentFrame, ToRelayByPort } from "./messages.js";
import { type CopyPort, Relay } from "./relay.js";
import { baseKey } from "./testing/keys.js";

const RECEIVED = { role: "received", keyFrame: false, encrypted: null } as const;
const SENT = { role: "sent", keyFrame: false, encrypted: null } as const;

/** An encoded frame, whose data is detached by writing it. */
function frame(id: number) {
  return {
    data: new Uint8Array([id]).buffer,
    timestamp: 0,
    getMetadata: () => ({ rtpTimestamp: id * 3000, frameId: id, synchronizationSource: 7, width: 320, height: 180 }),
  };
}

/** A transformer of one receiver or sender, and the frames that it wrote. */
function media() {
  const written: number[] = [];
  const frames: Uint8Array<ArrayBuffer>[] = [];
  let give: ReadableStreamDefaultController | undefined;
  const asked: string[] = [];
  const transformer = {
    readable: new ReadableStream({
      start: (controller) => {
        give = controller;
      },
    }),
    writable: new WritableStream({
      write: ({ data }) => {
        frames.push(new Uint8Array(data));
        written.push(new Uint8Array(data)[0] ?? -1);
      },
    }),
    sendKeyFrameRequest: async () => void asked.push("key frame"),
  };
  return {
    transformer,
    written,
    frames,
    asked,
    give: (value: unknown) => give?.enqueue(value),
    end: () => give?.close(),
  };
}

/** A port that takes copies, and acknowledges them while `answers` is set. */
function taker(answers: boolean) {
  const copies: (FrameCopy | SentFrame)[] = [];
  const port: CopyPort & { closed: boolean } = {
    closed: false,
    onmessage: null,
    postMessage: (message) => {
      copies.push(message);
      if (answers) say("taken");
    },
    close: () => {
      port.closed = true;
    },
  };
  const say = (data: ToRelayByPort) => port.onmessage?.({ data } as MessageEvent<ToRelayByPort>);
  return { port, copies, say };
}

test("received frames are passed on, and copied to whoever takes them", async () => {
  const [relay, m, t] = [new Relay(), media(), taker(true)];
  relay.connect(1, t.port);
  void relay.pass(m.transformer, { ...RECEIVED, id: 1 });
  m.give(frame(5));
  m.give(frame(6));
  await settle();
  assert.deepEqual(m.written, [5, 6]);
  const copies = t.copies as FrameCopy[];
  assert.deepEqual(
    copies.map(({ data, ...rest }) => ({ ...rest, data: new Uint8Array(data)[0] })),
    [
      { rtpTimestamp: 15_000, frameId: 5, other: null, afterGap: false, data: 5 },
      { rtpTimestamp: 18_000, frameId: 6, other: null, afterGap: false, data: 6 },
    ],
  );
});

test("copies of another codec say which, and whether they are key frames", async () => {
  const [relay, m, t] = [new Relay(), media(), taker(true)];
  relay.connect(1, t.port);
  void relay.pass(m.transformer, { ...RECEIVED, id: 1 });
  for (const [mimeType, type, size] of [
    ["video/H264", "key", { width: 320, height: 180 }],
    ["video/AV1", "delta", {}],
    ["video/VP9", "key", {}],
  ] as const)
    m.give({ ...frame(5), type, getMetadata: () => ({ rtpTimestamp: 1, mimeType, ...size }) });
  await settle();
  assert.deepEqual(
    t.copies.map(({ other }) => other),
    [{ codec: "h264", key: true, width: 320, height: 180 }, { codec: "av1", key: false, width: 0, height: 0 }, null],
  );
});

test("frames are passed on where nobody takes copies, and where copying fails", async () => {
  const [relay, m, t] = [new Relay(), media(), taker(true)];
  void relay.pass(m.transformer, { ...RECEIVED, id: 1 });
  m.give(frame(1));
  await settle();
  relay.connect(1, t.port);
  m.give({
    ...frame(2),
    getMetadata: () => {
      throw new Error("planted");
    },
  });
  await settle();
  assert.deepEqual(m.written, [1, 2]);
  assert.equal(t.copies.length, 0);
});

test("who answers no copy gets no more than sixty, and learns afterwards that some are missing", async () => {
  const [relay, m, t] = [new Relay(), media(), taker(false)];
  relay.connect(1, t.port);
  void relay.pass(m.transformer, { ...RECEIVED, id: 1 });
  for (let id = 0; id < 100; id++) m.give(frame(id));
  await settle();
  assert.equal(m.written.length, 100);
  assert.equal(t.copies.length, 60);
  t.say("taken");
  m.give(frame(100));
  await settle();
  assert.equal((t.copies.at(-1) as FrameCopy).afterGap, true);
});

test("of sent frames the data comes of the layer that is followed, and while it is", async () => {
  const [relay, m, t] = [new Relay(), media(), taker(true)];
  void relay.pass(m.transformer, { ...SENT, id: 3 });
  relay.connect(3, t.port);
  const data = () => t.copies.map((copy) => copy.data !== null);
  for (const follow of [9, 7, null]) {
    t.say({ follow });
    m.give(frame(follow ?? 1));
    await settle();
  }
  assert.deepEqual(data(), [false, true, false]);
});

test("of sent frames only their times and sizes are reported", async () => {
  const [relay, m, t] = [new Relay(), media(), taker(true)];
  void relay.pass(m.transformer, { ...SENT, id: 3 });
  relay.connect(3, t.port);
  m.give(frame(9));
  await settle();
  assert.deepEqual(m.written, [9]);
  assert.deepEqual(t.copies, [
    { ssrc: 7, rtpTimestamp: 27_000, width: 320, height: 180, data: null, other: null, afterGap: false },
  ]);
});

test("whoever takes copies can ask the sender for a key frame", async () => {
  const [relay, m, t] = [new Relay(), media(), taker(true)];
  void relay.pass(m.transformer, { ...RECEIVED, id: 1 });
  relay.connect(1, t.port);
  t.say("keyFrame");
  assert.deepEqual(m.asked, ["key frame"]);
});

test("the next taker of copies takes the place of the former", async () => {
  const [relay, m, first, second] = [new Relay(), media(), taker(false), taker(true)];
  void relay.pass(m.transformer, { ...RECEIVED, id: 1 });
  relay.connect(1, first.port);
  for (let id = 0; id < 70; id++) m.give(frame(id));
  await settle();
  relay.connect(1, second.port);
  m.give(frame(70));
  await settle();
  assert.ok(first.port.closed);
  assert.deepEqual([first.copies.length, second.copies.length], [60, 1]);
});

test("when the frames end, so does the port of their copies", async () => {
  const [relay, m, t] = [new Relay(), media(), taker(true)];
  const passing = relay.pass(m.transformer, { ...RECEIVED, id: 1 });
  relay.connect(1, t.port);
  m.end();
  await passing;
  assert.ok(t.port.closed);
});

test("where frames were lost, a key frame is asked for until one comes", async (t) => {
  const [relay, m] = [new Relay(), media()];
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const comes = async (at: number, type: string) => {
    now = at;
    m.give({ ...frame(1), type });
    await settle();
    return m.asked.length;
  };
  void relay.pass(m.transformer, { ...RECEIVED, id: 1, keyFrame: true });
  assert.equal(await comes(33, "delta"), 1);
  assert.equal(await comes(390, "delta"), 1);
  assert.equal(await comes(420, "delta"), 2);
  assert.equal(await comes(790, "delta"), 2);
  assert.equal(await comes(830, "delta"), 3);
  assert.equal(await comes(1300, "key"), 3);
  assert.equal(await comes(2000, "delta"), 3);
});

test("it is not asked for without end", async (t) => {
  const [relay, m] = [new Relay(), media()];
  let now = 0;
  t.mock.method(performance, "now", () => now);
  void relay.pass(m.transformer, { ...RECEIVED, id: 1, keyFrame: true });
  for (; now < 20_000; now += 33) {
    m.give({ ...frame(1), type: "delta" });
    await settle();
  }
  assert.equal(m.asked.length, 10);
});

test("after frames that could not be decrypted a key frame is asked for", async () => {
  const keys = { sender: new BaseKeys(), receiver: new BaseKeys() };
  const [sender, receiver] = [new Relay(keys.sender), new Relay(keys.receiver)];
  const [out, back] = [media(), media()];
  void sender.pass(out.transformer, { ...SENT, id: 1, encrypted: "video" });
  void receiver.pass(back.transformer, { ...RECEIVED, id: 2, encrypted: "video" });
  keys.sender.add(await baseKey(1));
  for (let id = 1; id <= 5; id++) out.give(frame(id));
  while (out.frames.length < 5) await settle();
  const comes = (n: number, type: string) => back.give({ ...frame(0), type, data: out.frames[n]?.slice().buffer });
  comes(0, "delta");
  for (let n = 0; n < 50; n++) await settle();
  assert.deepEqual([back.written.length, back.asked.length], [0, 0], "not while it has no key");
  keys.receiver.add(await baseKey(1));
  for (const [n, type] of ["delta", "delta", "key", "delta"].entries()) comes(n + 1, type);
  // Cryptography has threads of its own, which a busy machine lets wait.
  for (const end = Date.now() + 10_000; back.written.length < 4 && Date.now() < end; ) await settle();
  assert.deepEqual([back.written.length, back.asked.length], [4, 1]);
});

test("encrypted frames are sent as nobody reads them, and received as they were", async () => {
  const [first, second] = [await baseKey(1), await baseKey(2)];
  const keys = { sender: new BaseKeys(), receiver: new BaseKeys() };
  const [sender, receiver] = [new Relay(keys.sender), new Relay(keys.receiver)];
  const [out, back, t] = [media(), media(), taker(true)];
  receiver.connect(2, t.port);
  void sender.pass(out.transformer, { ...SENT, id: 1, encrypted: "video" });
  void receiver.pass(back.transformer, { ...RECEIVED, id: 2, encrypted: "video" });
  const send = async (id: number): Promise<void> => {
    const before = out.frames.length;
    out.give(frame(id));
    while (out.frames.length === before) await settle();
  };
  out.give(frame(4)); // without a key nothing is sent
  await settle();
  for (const key of [first, second]) {
    keys.sender.add(key);
    await send(5);
  }
  assert.equal(out.frames.length, 2);
  for (const bytes of out.frames) assert.equal(bytes.length, 1 + 8 + 1 + 16, "a header, the frame and a tag");
  const receive = async (n: number): Promise<void> => {
    const before = back.written.length;
    back.give({ ...frame(0), data: out.frames[n]?.slice().buffer });
    while (back.written.length === before) await settle();
  };
  keys.receiver.add(first);
  back.give(frame(6)); // what is plain is not taken
  await receive(0);
  keys.receiver.add(second);
  await receive(1);
  assert.deepEqual(back.written, [5, 5]);
  assert.deepEqual(new Uint8Array((t.copies[0] as FrameCopy).data), Uint8Array.of(5), "copies are plain");
});
