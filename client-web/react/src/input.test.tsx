import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { renderToString } from "react-dom/server";
import { type Device, type Devices, type Room, WindlassError } from "windlass-client";
import { CallProvider } from "./call.js";
import { type CallState, CallStore } from "./call-store.js";
import { type Input, ListedDevices, useInput } from "./input.js";
import { settle } from "./testing/settle.js";

/** A camera that notes what is asked of it. */
class FakeInput {
  active = false;
  starting = false;
  muted = false;
  track = null;
  device: { id: string; label: string } | null = null;
  readonly asked: string[] = [];
  fails: WindlassError | null = null;

  readonly on = () => () => undefined;
  readonly start = () => this.answer("start");
  readonly setMuted = (muted: boolean) => this.answer(muted ? "mute" : "unmute");
  readonly switchTo = (device: string) => this.answer(device);

  private async answer(asked: string): Promise<void> {
    this.asked.push(asked);
    if (this.fails !== null) throw this.fails;
  }
}

let camera: FakeInput;
let problems: (string | null)[];

beforeEach(() => {
  camera = new FakeInput();
  problems = [];
});

const failure = (code: WindlassError["code"]) => new WindlassError(code, "It failed.", "Try again.");

/** What the hook gives for the camera as it is now. */
function input(): Input {
  let given: Input | null = null;
  const Shown = () => {
    given = useInput("camera");
    return null;
  };
  const call = { camera } as unknown as Room;
  const report = (problem: WindlassError | null) => void problems.push(problem?.code ?? null);
  const state: CallState = { ...new CallStore().get(), call, report };
  renderToString(
    <CallProvider state={state}>
      <Shown />
    </CallProvider>,
  );
  assert.ok(given !== null);
  return given;
}

test("it is on while it is started and not muted", () => {
  assert.equal(input().on, false);
  camera.active = true;
  camera.device = { id: "camera 1", label: "" };
  assert.deepEqual([input().on, input().device], [true, "camera 1"]);
  camera.muted = true;
  assert.equal(input().on, false);
});

test("it is started when it is first switched on, and unmuted later", () => {
  input().setOn(true);
  camera.active = true;
  input().setOn(false);
  input().setOn(true);
  assert.deepEqual(camera.asked, ["start", "mute", "unmute"]);
});

test("while it is being started it is on, and can be muted", () => {
  camera.starting = true;
  assert.equal(input().on, true);
  input().setOn(false);
  camera.muted = true;
  input().setOn(true);
  assert.deepEqual(camera.asked, ["mute", "unmute"]);
});

test("a failure is reported, and forgotten when it is tried again", async () => {
  camera.fails = failure("permission_denied");
  input().setOn(true);
  await settle();
  camera.fails = null;
  input().setOn(true);
  assert.deepEqual(problems, [null, "permission_denied", null]);
});

test("what the person has broken off is no failure", async () => {
  camera.fails = failure("aborted");
  input().setOn(true);
  await settle();
  assert.deepEqual(problems, [null]);
});

test("a device that cannot be taken is reported", async () => {
  camera.fails = failure("device_busy");
  input().choose("camera 2");
  await settle();
  assert.deepEqual(camera.asked, ["camera 2"]);
  assert.deepEqual(problems, ["device_busy"]);
});

test("another device than one that does not start is started", async () => {
  input().choose("camera 2");
  await settle();
  assert.deepEqual(camera.asked, ["camera 2", "start"]);
});

test("devices are reported once they are known, and when they change, until the end", async () => {
  const devices = (...ids: string[]): Devices => ({
    cameras: ids.map((id): Device => ({ id, label: id, kind: "camera" })),
    microphones: [],
    speakers: [],
  });
  let changed: (devices: Devices) => void = () => undefined;
  const list = {
    list: async () => devices("one"),
    on: (_: "change", listener: (devices: Devices) => void) => {
      changed = listener;
      return () => undefined;
    },
  };
  const listed = new ListedDevices(list as unknown as ConstructorParameters<typeof ListedDevices>[0]);
  const ids = () =>
    listed
      .get()
      .cameras.map(({ id }) => id)
      .join();
  assert.equal(ids(), "");
  const end = listed.subscribe(() => undefined);
  await settle();
  assert.equal(ids(), "one");
  changed(devices("one", "two"));
  assert.equal(ids(), "one,two");
  end();
  changed(devices());
  assert.equal(ids(), "one,two");
});
