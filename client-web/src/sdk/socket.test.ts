import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { SignalSocket } from "./socket.js";

/** A WebSocket whose URL says how its server behaves: it answers at once or late, refuses at once, or is silent. */
class FakeSocket {
  static readonly OPEN = 1;
  static opened: string[] = [];
  static closed: string[] = [];
  readonly readyState = 1;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: (() => void) | null = null;

  constructor(private readonly url: string) {
    FakeSocket.opened.push(url);
    if (url.startsWith("up")) queueMicrotask(() => this.onopen?.());
    if (url.startsWith("late")) setTimeout(() => this.onopen?.(), 1000);
    if (url.startsWith("down")) queueMicrotask(() => this.onerror?.());
  }

  send(): void {}

  close(): void {
    FakeSocket.closed.push(this.url);
  }
}

const real = globalThis.WebSocket;

beforeEach(() => {
  Object.assign(globalThis, { WebSocket: FakeSocket });
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  FakeSocket.opened = [];
  FakeSocket.closed = [];
});

afterEach(() => {
  mock.timers.reset();
  Object.assign(globalThis, { WebSocket: real });
});

/** Lets virtual time pass. */
async function pass(ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 50) {
    mock.timers.tick(50);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  }
}

test("the first server is taken where it answers, and no other is asked", async () => {
  const [url, socket] = await SignalSocket.openAny(["up-1", "up-2"]);
  assert.equal(url, "up-1");
  assert.deepEqual(FakeSocket.opened, ["up-1"]);
  socket.close();
});

test("where a server refuses, the next is asked at once", async () => {
  const [url, socket] = await SignalSocket.openAny(["down-1", "up-2"]);
  assert.equal(url, "up-2");
  socket.close();
});

test("where a server says nothing, the next is asked soon, and the slower one let go", async () => {
  const opening = SignalSocket.openAny(["late-1", "up-2", "up-3"]);
  await pass(650);
  assert.deepEqual(FakeSocket.opened, ["late-1"]);
  await pass(100);
  const [url, socket] = await opening;
  assert.equal(url, "up-2");
  await pass(500);
  assert.deepEqual(FakeSocket.opened, ["late-1", "up-2"]);
  assert.deepEqual(FakeSocket.closed, ["late-1"]);
  socket.close();
});

test("where none answers, that is said", async () => {
  const opening = SignalSocket.openAny(["down-1", "silent-2"]);
  const failed = assert.rejects(opening, { code: "unreachable" });
  await pass(9000);
  await failed;
});
