import assert from "node:assert/strict";
import { test } from "node:test";
import { WindlassError } from "./errors.js";
import type { Publication } from "./publication.js";
import type { PublishOptions } from "./room.js";
import { type ScreenHost, ScreenShare } from "./screen.js";

class Track extends EventTarget {
  contentHint = "";
  stopped = false;
  constructor(readonly kind: string) {
    super();
  }
  stop() {
    this.stopped = true;
  }
}

/** A browser that shares a screen, and the room that it is sent to. */
function sharing({ sound = true, fails = Number.POSITIVE_INFINITY } = {}) {
  const tracks = [new Track("video"), ...(sound ? [new Track("audio")] : [])];
  const sent: [string, PublishOptions][] = [];
  const ended: Publication[] = [];
  const host: ScreenHost = {
    open: async () =>
      ({
        getTracks: () => tracks,
        getVideoTracks: () => tracks.filter(({ kind }) => kind === "video"),
        getAudioTracks: () => tracks.filter(({ kind }) => kind === "audio"),
      }) as unknown as MediaStream,
    publish: async (track, options) => {
      if (sent.length >= fails) throw new WindlassError("connection_lost", "gone", "wait");
      sent.push([track.kind, options]);
      return { kind: track.kind, track } as Publication;
    },
    unpublish: async (publication) => void ended.push(publication),
  };
  return { tracks, sent, ended, host };
}

test("a screen is sent with its sound, in few frames for small print", async () => {
  const { host, sent, tracks } = sharing();
  await ScreenShare.start(host, { detail: "ask" });
  assert.deepEqual(sent, [
    ["video", { name: "screen", layers: "qf", content: "screen", detail: "ask" }],
    ["audio", { name: "screen_audio" }],
  ]);
  assert.equal(tracks[0]?.contentHint, "detail");
});

test("no stills are sent unless they are asked for", async () => {
  const { host, sent } = sharing({ sound: false });
  await ScreenShare.start(host, {});
  assert.equal(sent[0]?.[1].detail, "off");
});

test("the browser's own button ends sharing, once", async () => {
  const { host, tracks, ended } = sharing();
  const share = await ScreenShare.start(host, {});
  let told = 0;
  share.on("ended", () => told++);
  tracks[0]?.dispatchEvent(new Event("ended"));
  await share.stop();
  assert.deepEqual([told, ended.length, share.ended], [1, 2, true]);
  assert.deepEqual(
    tracks.map(({ stopped }) => stopped),
    [true, true],
  );
});

test("what cannot be sent is not left running", async () => {
  const { host, tracks, ended } = sharing({ fails: 1 });
  await assert.rejects(ScreenShare.start(host, {}), { code: "connection_lost" });
  assert.deepEqual([tracks.every(({ stopped }) => stopped), ended.length], [true, 1]);
});

test("a person who chooses nothing is told apart from a call without a gesture", async () => {
  const { host } = sharing();
  const failing = (name: string) => ({ ...host, open: () => Promise.reject(new DOMException("no", name)) });
  Object.defineProperty(globalThis, "navigator", {
    value: { mediaDevices: { getDisplayMedia: () => undefined } },
    configurable: true,
  });
  await assert.rejects(ScreenShare.start(failing("NotAllowedError"), {}), { code: "permission_denied" });
  await assert.rejects(ScreenShare.start(failing("InvalidStateError"), {}), { code: "bad_option" });
  await assert.rejects(ScreenShare.start(failing("NotReadableError"), {}), { code: "device_busy" });
});
