import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import type { Room } from "windlass-client";
import { News } from "./news.js";
import { FakeCall, FakeParticipant } from "./testing/call.js";

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
});

test("who comes at once is reported at once, and who leaves", () => {
  const call = new FakeCall();
  const news = new News(call as unknown as Room);
  let told = 0;
  news.subscribe(() => told++);
  mock.timers.tick(0);
  const [ada, bob] = [new FakeParticipant("Ada"), new FakeParticipant("Bob")];
  call.come(ada);
  call.come(bob);
  assert.equal(news.get(), "");
  mock.timers.tick(500);
  assert.equal(news.get(), "Ada and Bob joined.");
  call.go(ada);
  mock.timers.tick(500);
  assert.equal(news.get(), "Ada left.");
  assert.equal(told, 2);
});

test("who was there before is not reported", () => {
  const call = new FakeCall();
  const news = new News(call as unknown as Room);
  // As the SDK does: after the task in which it has joined.
  setTimeout(() => call.come(new FakeParticipant("Ada")), 0);
  news.subscribe(() => assert.fail("told"));
  mock.timers.tick(0);
  mock.timers.tick(500);
  assert.equal(news.get(), "");
});

test("nothing is reported after the end", () => {
  const call = new FakeCall();
  const news = new News(call as unknown as Room);
  const end = news.subscribe(() => assert.fail("told"));
  mock.timers.tick(0);
  call.come(new FakeParticipant("Ada"));
  end();
  mock.timers.tick(500);
  assert.equal(call.heard, 0);
});
