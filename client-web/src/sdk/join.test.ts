import assert from "node:assert/strict";
import { test } from "node:test";
import { Emitter } from "./emitter.js";
import { WindlassError } from "./errors.js";
import { join, socketUrl } from "./join.js";

const bad = (error: unknown) => error instanceof WindlassError && error.code === "bad_option" && error.hint !== "";

test("a server is named by its page or by its WebSocket", () => {
  assert.equal(socketUrl("wss://calls.example/ws"), "wss://calls.example/ws");
  assert.equal(socketUrl("https://calls.example"), "wss://calls.example/ws");
  assert.equal(socketUrl("https://calls.example/video/"), "wss://calls.example/video/ws");
  assert.equal(socketUrl("http://localhost:7880/ws"), "ws://localhost:7880/ws");
  assert.equal(socketUrl("wss://calls.example/signal?tenant=7"), "wss://calls.example/signal?tenant=7");
});

test("a page's own address names its server, without query and fragment", () => {
  assert.equal(socketUrl("https://calls.example/index.html?room=a#token=secret"), "wss://calls.example/ws");
  assert.equal(socketUrl("/ws", "https://calls.example/a/b"), "wss://calls.example/ws");
});

test("an address of something else is refused with a hint", () => {
  assert.throws(() => socketUrl("mailto:ada@calls.example"), bad);
  assert.throws(() => socketUrl("https://"), bad);
});

test("an address without a scheme is not taken for a page beside this one", () => {
  const page = "https://page.example/a/b";
  for (const wrong of ["calls.example", "calls.example/ws", "localhost", "", undefined as unknown as string]) {
    assert.throws(
      () => socketUrl(wrong, page),
      (error) => bad(error) && /https:\/\//.test((error as WindlassError).hint),
      wrong,
    );
  }
  assert.equal(socketUrl("./ws", page), "wss://page.example/a/ws");
  assert.equal(socketUrl("//calls.example/ws", page), "wss://calls.example/ws");
});

test("a missing option is named", async () => {
  const options = { room: "standup" } as Parameters<typeof join>[1];
  await assert.rejects(join("https://calls.example", options), (error) => bad(error) && /"name"/.test(String(error)));
  await assert.rejects(join("https://calls.example", undefined as never), bad);
});

test("an event that there is not is refused, and those that there are are named", () => {
  const emitter = new Emitter<{ left: undefined }>(["left"]);
  const wrong = () => emitter.on("gone" as "left", () => undefined);
  assert.throws(
    wrong,
    (error) => error instanceof WindlassError && error.code === "unknown_event" && /left/.test(error.hint),
  );
});
