import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { WindlassError } from "../errors.js";
import { camera, FakeMachine, microphone } from "../testing/devices.js";
import { Preview } from "./preview.js";

let machine: FakeMachine;
let asked: number;
const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");

/** The machine as `navigator.mediaDevices`: whoever asks for both gets both or nothing, as in a browser. */
beforeEach(() => {
  machine = new FakeMachine(camera("desk"), microphone("head"));
  asked = 0;
  const getUserMedia = async ({ video, audio }: MediaStreamConstraints) => {
    asked++;
    const tracks: MediaStreamTrack[] = [];
    try {
      if (video) tracks.push(await machine.open("camera", {}));
      if (audio) tracks.push(await machine.open("microphone", {}));
    } catch (error) {
      for (const track of tracks) track.stop();
      const missing = error instanceof WindlassError && error.code === "device_missing";
      throw new DOMException("", missing ? "NotFoundError" : "NotReadableError");
    }
    const of = (kind: string) => tracks.filter((track) => track.kind === kind);
    return { getTracks: () => tracks, getVideoTracks: () => of("video"), getAudioTracks: () => of("audio") };
  };
  const mediaDevices = Object.assign(machine, { getUserMedia });
  Object.defineProperty(globalThis, "navigator", { value: { mediaDevices }, configurable: true });
});

afterEach(() => {
  if (before === undefined) Reflect.deleteProperty(globalThis, "navigator");
  else Object.defineProperty(globalThis, "navigator", before);
});

test("both are opened at once, and handed over open, each with its device", async () => {
  const preview = new Preview();
  assert.deepEqual(await preview.startBoth(), { camera: null, microphone: null });
  assert.equal(asked, 1);
  const { track, ...rest } = preview.handOver("camera") || {};
  assert.deepEqual([track?.readyState, rest], ["live", { muted: false, device: "desk" }]);
  assert.equal(preview.camera.active, false);
  preview.close();
  assert.deepEqual(machine.lit, ["desk"], "the microphone was still the preview's");
});

test("one that is missing is reported, and the other one is open", async () => {
  machine.devices = machine.devices.filter(({ id }) => id !== "head");
  const preview = new Preview();
  const { camera, microphone } = await preview.startBoth();
  assert.equal(camera, null);
  assert.equal((microphone as WindlassError).code, "device_missing");
  assert.deepEqual(machine.lit, ["desk"]);
});

test("what is allowed once the preview is closed is closed at once", async () => {
  const preview = new Preview();
  const started = preview.startBoth();
  preview.close();
  const { camera, microphone } = await started;
  assert.deepEqual(
    [camera, microphone].map((error) => (error as WindlassError).code),
    ["ended", "ended"],
  );
  assert.deepEqual(machine.lit, []);
});

test("what is off is not handed over, so that a call does not open it", async () => {
  const preview = new Preview();
  assert.equal(preview.handOver("microphone"), false);
  await preview.startBoth();
  await preview.camera.stop();
  assert.equal(preview.handOver("camera"), false);
  preview.close();
});

test("a muted camera is handed over closed, a muted microphone open", async () => {
  const preview = new Preview();
  await preview.startBoth();
  await Promise.all([preview.camera.setMuted(true), preview.microphone.setMuted(true)]);
  assert.deepEqual(preview.handOver("camera"), { muted: true, device: "desk" });
  const { track, muted } = preview.handOver("microphone") || {};
  assert.deepEqual([track?.readyState, muted], ["live", true]);
});
