import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { left, WindlassError } from "./errors.js";
import { draft, type Receiver, type SendOptions } from "./message.js";
import { MAX_WAITING, type MessagePath, Outbox } from "./outbox.js";
import type { SendData } from "./protocol.gen.js";
import type { Outcome } from "./socket.js";
import { pass, settle, startClock, stopClock } from "./testing/clock.js";

beforeEach(startClock);
afterEach(stopClock);

const failure = (code: "rate_limited" | "connection_lost" | "shutting_down") => new WindlassError(code, code, "");
const LOST: Outcome = { type: "lost", error: failure("connection_lost") };

/** A session that answers when the test says so. */
class FakePath implements MessagePath {
  readonly sent: SendData[] = [];
  private readonly waiting: ((outcome: Outcome) => void)[] = [];

  /** `prompt`: takes each message at once. */
  constructor(private readonly prompt = false) {}

  sendData(message: SendData): Promise<Outcome> {
    this.sent.push(message);
    if (this.prompt) return Promise.resolve({ type: "done" });
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Answers the next messages. */
  async answer(...outcomes: Outcome[]): Promise<void> {
    for (const outcome of outcomes) this.waiting.shift()?.(outcome);
    await settle();
  }

  /** The socket is lost. */
  lose(): Promise<void> {
    return this.answer(...this.waiting.map(() => LOST));
  }

  get texts(): unknown[] {
    return this.sent.splice(0).map(({ text }) => text);
  }
}

function outbox(path: FakePath | null) {
  const state = { path };
  const here = new Set(["a", "b"]);
  const box = new Outbox({
    path: () => state.path,
    idOf: (receiver: Receiver) => {
      const id = typeof receiver === "string" ? receiver : receiver.id;
      return here.has(id) ? id : null;
    },
  });
  const results: string[] = [];
  const send = (text: string, options: SendOptions = {}) =>
    box.send(draft("chat", text, options)).then(
      () => results.push(text),
      (error: WindlassError) => results.push(`${text}: ${error.code}`),
    );
  const change = (next: FakePath | null) => {
    state.path = next;
    box.flush();
  };
  return { box, send, change, here, seen: () => results.splice(0) };
}

test("messages go at once, in order, and resolve when the server has them", async () => {
  const path = new FakePath();
  const { send, seen } = outbox(path);
  for (const text of ["1", "2", "3"]) void send(text);
  assert.deepEqual(
    path.sent.map(({ number }) => number),
    [1, 2, 3],
  );
  assert.deepEqual(path.texts, ["1", "2", "3"]);
  assert.deepEqual(seen(), []);
  await path.answer({ type: "done" }, { type: "refused", error: failure("rate_limited") });
  assert.deepEqual(seen(), ["1", "2: rate_limited"]);
});

test("who gets it is named by the ids of now, and somebody must", async () => {
  const path = new FakePath();
  const { send, seen, here } = outbox(path);
  void send("1", { to: ["a", "b"] });
  void send("2", { to: [] });
  void send("3", { to: "nobody" });
  here.delete("b");
  void send("4", { to: { id: "a", away: false, left: false } });
  void send("5", { to: { id: "c", away: false, left: true } });
  await settle();
  assert.deepEqual(
    path.sent.map(({ to }) => to),
    [["a", "b"], [], ["a"]],
  );
  assert.deepEqual(seen(), ["3: unknown_participant", "5: unknown_participant"]);
});

test("what was not answered is sent again by the next connection, with its number, before what follows", async () => {
  const path = new FakePath();
  const { send, seen, change } = outbox(path);
  void send("1");
  void send("2");
  void send("pointer", { reliable: false });
  await path.answer({ type: "done" });
  change(null);
  await path.lose();
  void send("3");
  assert.deepEqual(seen(), ["1", "pointer: connection_lost"]);
  const next = new FakePath();
  change(next);
  assert.deepEqual(
    next.sent.map(({ text, number }) => [text, number]),
    [
      ["2", 2],
      ["3", 4],
    ],
  );
  await next.answer({ type: "done" }, { type: "done" });
  assert.deepEqual(seen(), ["2", "3"]);
});

test("after a move, what the former server has not answered comes first", async () => {
  const former = new FakePath();
  const { send, seen, change } = outbox(former);
  void send("1");
  const next = new FakePath();
  change(next);
  void send("2");
  assert.deepEqual(next.texts, []);
  await former.answer({ type: "done" });
  assert.deepEqual(next.texts, ["2"]);
  assert.deepEqual(seen(), ["1"]);
});

test("a server that ends leaves messages to the next one", async () => {
  const path = new FakePath();
  const { send, seen, change } = outbox(path);
  void send("1");
  void send("2");
  await path.answer({ type: "refused", error: failure("shutting_down") });
  assert.deepEqual(path.texts, ["1", "2"], "it is not asked again");
  change(null);
  await path.lose();
  const next = new FakePath(true);
  change(next);
  await settle();
  assert.deepEqual(next.texts, ["1", "2"]);
  assert.deepEqual(seen(), ["1", "2"]);
});

test("messages go no faster than the server takes them", async () => {
  const path = new FakePath(true);
  const { send } = outbox(path);
  for (let n = 0; n < 100; n++) void send(`${n}`);
  assert.equal(path.sent.length, 30);
  await pass(1000);
  assert.ok(path.sent.length >= 47 && path.sent.length <= 49, `${path.sent.length}`);
  await pass(3000);
  assert.equal(path.sent.length, 100);
  assert.deepEqual(
    path.sent.map(({ text }) => Number(text)),
    [...Array(100).keys()],
  );
});

test("large messages go no faster than their bytes are taken", async () => {
  const path = new FakePath(true);
  const { send } = outbox(path);
  for (let n = 0; n < 12; n++) void send("x".repeat(16 * 1024));
  assert.equal(path.sent.length, 6);
  await pass(1000);
  assert.equal(path.sent.length, 9);
});

test("a queue that is full refuses more, until there is room", async () => {
  const path = new FakePath();
  const { send, seen } = outbox(path);
  for (let n = 0; n < MAX_WAITING; n++) void send(`${n}`);
  await send("one more");
  assert.deepEqual(seen(), ["one more: rate_limited"]);
  await path.answer({ type: "done" });
  void send("now");
  await settle();
  assert.deepEqual(seen(), ["0"]);
});

test("a queue is bounded in bytes too", async () => {
  const { send, seen } = outbox(null);
  for (let n = 0; n < 64; n++) void send("x".repeat(16 * 1024));
  await send("y");
  assert.deepEqual(seen(), ["y: rate_limited"]);
});

test("what waits is refused when the call ends, and what is not reliable when the connection is lost", async () => {
  const { box, send, seen, change } = outbox(null);
  void send("1");
  void send("2", { reliable: false });
  box.interrupted();
  await settle();
  assert.deepEqual(seen(), ["2: connection_lost"]);
  box.end(left());
  await settle();
  assert.deepEqual(seen(), ["1: left"]);
  await send("3");
  assert.deepEqual(seen(), ["3: ended"]);
  const path = new FakePath();
  change(path);
  assert.deepEqual(path.texts, []);
});
