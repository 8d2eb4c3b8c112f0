import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { pass, settle, startClock, stopClock } from "../testing/clock.js";
import { camera, FakeMachine, microphone, speaker } from "../testing/devices.js";
import { DeviceList, type Devices, type MediaDeviceSource, playOn } from "./device-list.js";

beforeEach(startClock);
afterEach(stopClock);

const listOf = (machine: FakeMachine) => new DeviceList(machine as unknown as MediaDeviceSource);

/** An element that plays sound. */
class Element {
  sink = "";
  get sinkId(): string {
    return this.sink;
  }
  missing = new Set<string>();
  setSinkId(id: string): Promise<void> {
    if (this.missing.has(id)) return Promise.reject(new DOMException("", "NotFoundError"));
    this.sink = id;
    return Promise.resolve();
  }
}

test("devices are listed by kind", async () => {
  const devices = await listOf(new FakeMachine(camera("desk"), microphone("headset"), speaker("headset"))).list();
  assert.deepEqual(devices, {
    cameras: [{ id: "desk", label: "The desk", kind: "camera" }],
    microphones: [{ id: "headset", label: "The headset", kind: "microphone" }],
    speakers: [{ id: "headset", label: "The headset", kind: "speaker" }],
  });
});

test("a page without https gets an error that says so", async () => {
  await assert.rejects(new DeviceList(undefined).list(), { code: "insecure_page" });
});

test("a headset that reports several times is one change", async () => {
  const machine = new FakeMachine();
  const changes: Devices[] = [];
  listOf(machine).on("change", (devices) => changes.push(devices));
  machine.plug(microphone("headset"));
  await pass(100);
  machine.plug(speaker("headset"));
  await pass(250);
  assert.equal(changes.length, 0);
  await pass(50);
  assert.equal(changes.length, 1);
  assert.equal(changes[0]?.microphones.length, 1);
  assert.equal(changes[0]?.speakers.length, 1);
});

test("labels that are known after the permission are a change, once", async () => {
  const machine = new FakeMachine(camera("desk"));
  machine.named = false;
  const list = listOf(machine);
  await list.list();
  let changes = 0;
  list.on("change", () => changes++);
  await list.refresh();
  assert.equal(changes, 0);
  machine.named = true;
  await list.refresh();
  await list.refresh();
  assert.equal(changes, 1);
});

test("after close nothing is reported", async () => {
  const machine = new FakeMachine();
  const list = listOf(machine);
  let changes = 0;
  list.on("change", () => changes++);
  machine.plug(camera("desk"));
  list.close();
  machine.plug(camera("door"));
  await pass(500);
  assert.equal(changes, 0);
});

test("elements follow the loudspeaker", async () => {
  const list = listOf(new FakeMachine(speaker("room"), speaker("headset")));
  const [early, late] = [new Element(), new Element()];
  const heard: string[] = [];
  list.on("speaker", ({ id }) => heard.push(id));
  const forget = list.followSpeaker(early);
  await list.setSpeaker("headset");
  list.followSpeaker(late);
  assert.deepEqual([early.sink, late.sink, list.speaker, heard], ["headset", "headset", "headset", ["headset"]]);
  forget();
  await list.setSpeaker("room");
  assert.deepEqual([early.sink, late.sink], ["headset", "room"]);
  await list.setSpeaker("");
  list.followSpeaker(early);
  assert.equal(early.sink, "", "it is not where it was before");
});

test("a loudspeaker on which an element cannot play is not taken", async () => {
  const list = listOf(new FakeMachine(speaker("room"), speaker("headset")));
  const [first, second] = [new Element(), new Element()];
  second.missing.add("headset");
  list.followSpeaker(first);
  list.followSpeaker(second);
  await assert.rejects(list.setSpeaker("headset"), { code: "device_missing" });
  assert.deepEqual([first.sink, second.sink, list.speaker], ["", "", ""]);
});

test("while the chosen loudspeaker is away the system's is used", async () => {
  const machine = new FakeMachine(speaker("room"), speaker("headset"));
  const list = listOf(machine);
  const element = new Element();
  list.followSpeaker(element);
  await list.setSpeaker("headset");
  machine.unplug("headset");
  await pass(300);
  assert.deepEqual([element.sink, list.speaker], ["", ""]);
  machine.plug(speaker("headset"));
  await pass(300);
  assert.deepEqual([element.sink, list.speaker], ["headset", "headset"]);
});

test("a browser that cannot choose a loudspeaker says so", async () => {
  await assert.rejects(playOn({}, "headset"), { code: "unsupported" });
  await playOn({}, "");
  const list = listOf(new FakeMachine(speaker("headset")));
  list.followSpeaker({});
  await assert.rejects(list.setSpeaker("headset"), { code: "unsupported" });
  await settle();
  assert.equal(list.speaker, "");
});
