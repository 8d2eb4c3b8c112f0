import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { type JoinOptions, type Room, WindlassError } from "windlass-client";
import { CallStore } from "./call-store.js";
import { FakeCall } from "./testing/call.js";
import { settle } from "./testing/settle.js";

/** Joins that were asked for, each answered by the test. */
interface Asked {
  url: string;
  options: JoinOptions;
  admit(call: FakeCall): void;
  refuse(error: Error): void;
}

let asked: Asked[];
let store: CallStore;

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  asked = [];
  store = new CallStore(
    (url, options) =>
      new Promise((resolve, reject) => {
        asked.push({ url, options, admit: (call) => resolve(call as unknown as Room), refuse: reject });
      }),
  );
});

const options = { room: "standup", name: "Ada" };

/** Enters, and lets the task come in which it joins. */
function enter(): () => void {
  const leave = store.enter("https://calls.example/", () => options);
  mock.timers.tick(0);
  return leave;
}

/** Enters a call that has admitted this participant. */
async function entered(): Promise<{ call: FakeCall; leave: () => void }> {
  const leave = enter();
  const call = new FakeCall();
  asked.at(-1)?.admit(call);
  await settle();
  return { call, leave };
}

const failure = (code: WindlassError["code"]) => new WindlassError(code, "It failed.", "Try again.");

test("what is mounted, unmounted and mounted again in one task joins once", async () => {
  store.enter("https://calls.example/", () => options)();
  store.enter("https://calls.example/", () => options);
  mock.timers.tick(0);
  assert.equal(asked.length, 1);
  assert.equal(asked[0]?.options.name, "Ada");
});

test("a joined call is there, with the person's name", async () => {
  const { call } = await entered();
  const { status, name, error } = store.get();
  assert.deepEqual({ status, name, error }, { status: "joined", name: "Ada", error: null });
  assert.equal(store.get().call, call);
});

test("unmounting leaves", async () => {
  const { call, leave } = await entered();
  leave();
  assert.equal(call.left, 1);
  assert.equal(store.get().call, null);
});

test("unmounting while it joins aborts, and leaves a call that comes all the same", async () => {
  const leave = enter();
  leave();
  assert.equal(asked[0]?.options.signal?.aborted, true);
  const call = new FakeCall();
  asked[0]?.admit(call);
  await settle();
  assert.equal(call.left, 1);
  assert.equal(store.get().status, "joining");
});

test("a call that cannot be joined says why, and is joined again when it is asked to", async () => {
  enter();
  asked[0]?.refuse(failure("unreachable"));
  await settle();
  assert.equal(store.get().status, "over");
  assert.equal(store.get().error?.code, "unreachable");
  store.get().rejoin();
  assert.equal(store.get().status, "joining");
  assert.equal(asked.length, 2);
});

test("what a function of the page throws is reported as an error too", async () => {
  enter();
  asked[0]?.refuse(new TypeError("no token"));
  await settle();
  assert.equal(store.get().error?.message, "no token");
});

test("waiting, reconnecting and the end are reported", async () => {
  enter();
  asked[0]?.options.waiting?.();
  assert.equal(store.get().status, "waiting");
  const call = new FakeCall();
  asked[0]?.admit(call);
  await settle();
  call.tell("reconnecting", { attempt: 1, delayMs: 500, cause: failure("connection_lost") });
  assert.equal(store.get().status, "reconnecting");
  assert.equal(store.get().call, call);
  call.tell("reconnected", undefined);
  assert.equal(store.get().status, "joined");
  call.tell("disconnected", { reason: failure("removed") });
  assert.equal(store.get().status, "over");
  assert.equal(store.get().error?.code, "removed");
  assert.equal(store.get().call, null);
});

test("leaving aborts what is not joined yet, and says that it was left", async () => {
  enter();
  asked[0]?.options.waiting?.();
  store.get().leave();
  assert.equal(asked[0]?.options.signal?.aborted, true);
  asked[0]?.refuse(failure("left"));
  await settle();
  assert.deepEqual([store.get().status, store.get().error?.code], ["over", "left"]);
  store.get().rejoin();
  assert.equal(asked.length, 2);
});

test("leaving before the task that joins comes in time", () => {
  store.enter("https://calls.example/", () => options);
  store.get().leave();
  mock.timers.tick(0);
  assert.equal(asked.length, 0);
});

test("a call that could not be joined can be left", async () => {
  enter();
  asked[0]?.refuse(failure("room_full"));
  await settle();
  store.get().leave();
  assert.equal(store.get().error?.code, "left");
});

test("a joined call is left", async () => {
  const { call } = await entered();
  store.get().leave();
  assert.equal(call.left, 1);
  assert.deepEqual([store.get().call, store.get().error?.code], [null, "left"]);
});

test("a call that was left changes nothing more", async () => {
  const { call, leave } = await entered();
  leave();
  call.tell("reconnecting", { attempt: 1, delayMs: 500, cause: failure("connection_lost") });
  call.tell("disconnected", { reason: failure("left") });
  assert.equal(store.get().status, "joining");
});

test("a problem is reported until it was read", async () => {
  const { call } = await entered();
  call.tell("refused", failure("permission_denied"));
  assert.equal(store.get().problem?.code, "permission_denied");
  store.get().report(null);
  assert.equal(store.get().problem, null);
});

test("a shared screen is there until it ends by itself", async () => {
  const { call } = await entered();
  await store.get().shareScreen();
  assert.equal(store.get().screen, call.share);
  call.share.end();
  assert.equal(store.get().screen, null);
});

test("a screen that cannot be shared is a problem, and the call goes on", async () => {
  const { call } = await entered();
  call.shareFails = failure("unsupported");
  await store.get().shareScreen();
  assert.equal(store.get().problem?.code, "unsupported");
  assert.equal(store.get().status, "joined");
});

test("a person who chooses no screen gets no error", async () => {
  const { call } = await entered();
  call.shareFails = failure("permission_denied");
  await store.get().shareScreen();
  assert.equal(store.get().problem, null);
});
