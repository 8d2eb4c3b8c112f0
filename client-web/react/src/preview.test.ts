import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import type { Devices, InputKind, Source } from "windlass-client";
import { Preview, type PreviewHost } from "./preview.js";

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
  openBoth: async () => {
    if (!together) return null;
    const [camera, microphone] = [open("camera 1"), open("microphone 1")];
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

const settle = () => new Promise((done) => setImmediate(done));

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  opened = [];
  fails = null;
  together = true;
});

async function started(): Promise<{ preview: Preview; end: () => void }> {
  const preview = new Preview(host);
  const end = preview.start();
  mock.timers.tick(0);
  await settle();
  return { preview, end };
}

const live = () => opened.filter(({ readyState }) => readyState === "live").map(({ device }) => device);

test("camera and microphone are opened, and closed at the end", async () => {
  const { preview, end } = await started();
  assert.deepEqual(live(), ["camera 1", "microphone 1"]);
  assert.equal(preview.get().camera.device, "camera 1");
  end();
  assert.deepEqual(live(), []);
});

test("what is mounted twice opens once", async () => {
  const preview = new Preview(host);
  preview.start()();
  preview.start();
  mock.timers.tick(0);
  await settle();
  assert.equal(opened.length, 2);
});

test("what comes after the end is closed", async () => {
  const preview = new Preview(host);
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

test("a failure is told, and trying again clears it", async () => {
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

test("switched off, its device is closed; the last of many choices holds", async () => {
  const { preview } = await started();
  preview.setOn("camera", false);
  assert.deepEqual(live(), ["microphone 1"]);
  assert.equal(preview.get().camera.on, false);
  preview.choose("camera", "camera 2");
  preview.choose("camera", "camera 3");
  await settle();
  assert.deepEqual(live(), ["microphone 1", "camera 3"]);
  assert.equal(preview.get().camera.device, "camera 3");
});

test("an unplugged device is replaced by the browser's choice", async () => {
  const { preview } = await started();
  preview.choose("camera", "camera 2");
  await settle();
  opened.at(-1)?.die();
  await settle();
  assert.equal(preview.get().camera.device, "camera 1");
});
