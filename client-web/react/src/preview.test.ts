import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import type { Devices, InputKind, Source } from "windlass-client";
import { choiceOf, type InputChoice, Preview, type PreviewHost } from "./preview.js";
import { settle } from "./testing/settle.js";

/** A track of a device. */
class FakeTrack extends EventTarget {
  readyState = "live";

  constructor(readonly device: string) {
    super();
  }

  getSettings() {
    return { deviceId: this.device };
  }

  stop(): void {
    this.readyState = "ended";
  }

  /** It is unplugged. */
  die(): void {
    this.stop();
    this.dispatchEvent(new Event("ended"));
  }
}

/** What was opened, in order; the name of the error with which the next ones fail. */
let opened: FakeTrack[];
let fails: string | null;
let together: boolean;

const open = (device: string): FakeTrack => {
  if (fails !== null) throw new DOMException("no", fails);
  const track = new FakeTrack(device);
  opened.push(track);
  return track;
};

const host = {
  openBoth: async (...[first, second]: Source[]) => {
    if (!together) return null;
    const [camera, microphone] = [open(first?.device ?? "camera 1"), open(second?.device ?? "microphone 1")];
    return { getVideoTracks: () => [camera], getAudioTracks: () => [microphone] };
  },
  openDevice: async (kind: InputKind, { device = `${kind} 1` }: Source) => open(device),
  devices: () => ({
    list: async (): Promise<Devices> => ({ cameras: [], microphones: [], speakers: [] }),
    refresh: async () => undefined,
    on: () => () => undefined,
    close: () => undefined,
  }),
} as unknown as PreviewHost;

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  opened = [];
  fails = null;
  together = true;
});

async function started(chosen: { camera?: InputChoice; microphone?: InputChoice } = {}) {
  const preview = new Preview(chosen, host);
  const end = preview.start();
  mock.timers.tick(0);
  await settle();
  return { preview, end };
}

const live = () => opened.filter(({ readyState }) => readyState === "live").map(({ device }) => device);

test("camera and microphone are opened, and closed at the end", async () => {
  const { preview, end } = await started();
  assert.deepEqual(live(), ["camera 1", "microphone 1"]);
  assert.deepEqual(choiceOf(preview.get().camera), {}, "what nobody chose is the browser's choice in the call, too");
  end();
  assert.deepEqual(live(), []);
});

test("what is mounted twice opens once", async () => {
  const preview = new Preview({}, host);
  preview.start()();
  preview.start();
  mock.timers.tick(0);
  await settle();
  assert.equal(opened.length, 2);
});

test("what comes after the end is closed", async () => {
  const preview = new Preview({}, host);
  const end = preview.start();
  mock.timers.tick(0);
  end();
  await settle();
  assert.deepEqual(live(), []);
});

test("each is opened by itself where both at once fail", async () => {
  together = false;
  const { preview } = await started();
  assert.deepEqual(live(), ["camera 1", "microphone 1"]);
  assert.notEqual(preview.get().microphone.track, null);
});

test("a failure is reported, and trying again clears it", async () => {
  together = false;
  fails = "NotAllowedError";
  const { preview } = await started();
  assert.equal(preview.get().camera.error?.code, "permission_denied");
  fails = null;
  preview.setOn("camera", true);
  await settle();
  assert.equal(preview.get().camera.error, null);
  assert.deepEqual(live(), ["camera 1"]);
});

test("switched off, its device is closed", async () => {
  const { preview } = await started();
  preview.setOn("camera", false);
  assert.deepEqual(live(), ["microphone 1"]);
  assert.equal(choiceOf(preview.get().camera), false);
});

test("the last of many choices holds", async () => {
  const { preview } = await started();
  preview.choose("camera", "camera 2");
  preview.choose("camera", "camera 3");
  await settle();
  assert.deepEqual(live(), ["microphone 1", "camera 3"]);
  assert.deepEqual(choiceOf(preview.get().camera), { device: "camera 3" });
});

test("choosing a device of what is off does not switch it on, and is remembered", async () => {
  const { preview } = await started();
  preview.setOn("microphone", false);
  preview.choose("microphone", "headset");
  await settle();
  assert.deepEqual(live(), ["camera 1"]);
  assert.deepEqual(choiceOf(preview.get().microphone), { device: "headset", muted: true });
  preview.setOn("microphone", true);
  await settle();
  assert.deepEqual(live(), ["camera 1", "headset"]);
});

test("it begins with what was chosen before", async () => {
  await started({ camera: { device: "camera 2" }, microphone: { device: "headset" } });
  assert.deepEqual(live(), ["camera 2", "headset"]);
});

test("what was off before is not opened", async () => {
  const { preview } = await started({ camera: false, microphone: { device: "headset", muted: true } });
  assert.deepEqual(live(), []);
  assert.equal(choiceOf(preview.get().camera), false);
  assert.deepEqual(choiceOf(preview.get().microphone), { device: "headset", muted: true });
});

test("an unplugged device is replaced by the browser's choice", async () => {
  const { preview } = await started();
  preview.choose("camera", "camera 2");
  await settle();
  opened.at(-1)?.die();
  await settle();
  assert.deepEqual(live(), ["microphone 1", "camera 1"]);
  assert.deepEqual(choiceOf(preview.get().camera), {});
});
