import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { WindlassError } from "../errors.js";
import { pass, settle, startClock, stopClock } from "../testing/clock.js";
import { camera, FakeMachine, FakePublication, FakeTrack, microphone } from "../testing/devices.js";
import { DeviceList, type MediaDeviceSource } from "./device-list.js";
import { deviceError, type InputKind } from "./errors.js";
import { type InputHost, LocalInput, type LocalInputEvents } from "./local-input.js";

beforeEach(startClock);
afterEach(stopClock);

/** An input of a machine, in a room in memory. */
class Stage {
  readonly input: LocalInput;
  readonly published: FakePublication[] = [];
  readonly ended: LocalInputEvents["ended"][] = [];
  unpublished = 0;
  changes = 0;
  meters = 0;
  moderatorMutes = false;
  /** While set, the server answers to `publish` when it is called. */
  answer: (() => void) | null = null;
  refusal: WindlassError | null = null;

  constructor(
    kind: InputKind,
    readonly machine: FakeMachine,
    more: Partial<InputHost> = {},
  ) {
    this.input = new LocalInput({
      kind,
      devices: new DeviceList(machine as unknown as MediaDeviceSource),
      open: (source, onlyFacing) => machine.open(kind, source, onlyFacing),
      permission: () => Promise.resolve(machine.permission),
      publish: async (track) => {
        if (this.answer !== null) await new Promise<void>((resolve) => Object.assign(this, { answer: resolve }));
        if (this.refusal !== null) throw this.refusal;
        const publication = new FakePublication(track as unknown as FakeTrack);
        this.published.push(publication);
        return publication.asPublication;
      },
      unpublish: () => {
        this.unpublished++;
        return Promise.resolve();
      },
      mute: (publication, muted) => {
        if (!muted && this.moderatorMutes) return;
        (publication as unknown as FakePublication).setMuted(muted);
      },
      mayUnmute: () => !this.moderatorMutes,
      meter: () => {
        this.meters++;
        return { read: () => 0.5, close: () => this.meters-- };
      },
      ...more,
    });
    this.input.on("ended", (ended) => this.ended.push(ended));
    this.input.on("change", () => this.changes++);
  }

  /** The latest publication. */
  get publication(): FakePublication {
    const latest = this.published.at(-1);
    if (latest === undefined) throw new Error("nothing is published");
    return latest;
  }

  /** What the others get, whose light is on, and which events the page gets. */
  get now() {
    const { input, machine, published } = this;
    return { sends: published.at(-1)?.sends ?? null, lit: machine.lit, muted: input.muted, device: input.device?.id };
  }
}

async function started(kind: InputKind, machine: FakeMachine): Promise<Stage> {
  const stage = new Stage(kind, machine);
  await stage.input.start();
  return stage;
}

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "done",
    (error: unknown) => (error instanceof WindlassError ? error.code : String(error)),
  );

test("what is started is sent, and what is stopped is closed and ended", async () => {
  const { input, ...stage } = await started("camera", new FakeMachine(camera("desk")));
  assert.equal(input.active, true);
  assert.equal(input.device?.label, "The desk");
  assert.equal(stage.published[0]?.sends, "desk");
  await input.stop();
  assert.deepEqual([input.active, input.track, input.publication], [false, null, null]);
  assert.deepEqual(stage.machine.lit, []);
});

test("that it is being started is reported, until it is started or fails", async () => {
  const stage = new Stage("camera", new FakeMachine(camera("desk")));
  const told: boolean[] = [];
  stage.input.on("change", () => told.push(stage.input.starting));
  stage.refusal = new WindlassError("forbidden", "You may not send.", "Ask for it.");
  await assert.rejects(stage.input.start());
  stage.refusal = null;
  await stage.input.start();
  assert.deepEqual(told, [true, false, true, false]);
});

test("a start that fails can be made again", async () => {
  const stage = new Stage("camera", new FakeMachine());
  assert.equal(await codeOf(stage.input.start()), "device_missing");
  assert.equal(stage.input.active, false);
  stage.machine.devices.push(camera("desk"));
  await stage.input.start();
  assert.equal(stage.now.sends, "desk");
});

test("two starts are one", async () => {
  const stage = new Stage("camera", new FakeMachine(camera("desk")));
  await Promise.all([stage.input.start(), stage.input.start()]);
  assert.equal(stage.machine.tracks.length, 1);
  assert.equal(stage.published.length, 1);
});

test("a start that is refused closes the device", async () => {
  const stage = new Stage("camera", new FakeMachine(camera("desk")));
  stage.refusal = new WindlassError("forbidden", "", "");
  assert.equal(await codeOf(stage.input.start()), "forbidden");
  assert.deepEqual([stage.machine.lit, stage.input.active], [[], false]);
});

test("a stop while the device opens is the end of it", async () => {
  const stage = new Stage("camera", new FakeMachine(camera("desk")));
  stage.machine.hold();
  const start = codeOf(stage.input.start());
  await settle();
  await stage.input.stop();
  stage.machine.go();
  assert.equal(await start, "aborted");
  assert.deepEqual([stage.machine.lit, stage.published.length], [[], 0]);
});

test("a stop while the server is asked ends the publication too", async () => {
  const stage = new Stage("camera", new FakeMachine(camera("desk")));
  stage.answer = () => undefined;
  const start = codeOf(stage.input.start());
  await settle();
  await stage.input.stop();
  assert.deepEqual(stage.machine.lit, []);
  stage.answer();
  assert.equal(await start, "aborted");
  assert.equal(stage.unpublished, 1);
});

test("a start after a stop begins from scratch", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  void stage.input.stop();
  await stage.input.start();
  assert.deepEqual([stage.published.length, stage.unpublished, stage.now.sends], [2, 1, "desk"]);
});

test("a muted camera is closed, after the others were notified; unmuted it is the same again", async () => {
  const stage = await started("camera", new FakeMachine(camera("door"), camera("desk")));
  await stage.input.switchTo("desk");
  const first = stage.publication.track;
  const muted = stage.input.setMuted(true);
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "desk" }, "at once");
  await muted;
  assert.equal(stage.publication.log.at(-1), "muted");
  assert.equal(stage.input.track, null);
  await stage.input.setMuted(false);
  assert.deepEqual(stage.now, { sends: "desk", lit: ["desk"], muted: false, device: "desk" });
  assert.notEqual(stage.publication.track, first);
  assert.deepEqual(stage.publication.log.slice(-2), ["replaced by desk", "unmuted"]);
  assert.equal(stage.published.length, 1);
});

test("a muted microphone stays open, and is back at once", async () => {
  const stage = await started("microphone", new FakeMachine(microphone("headset")));
  void stage.input.setMuted(true);
  assert.deepEqual(stage.now, { sends: null, lit: ["headset"], muted: true, device: "headset" });
  void stage.input.setMuted(false);
  assert.deepEqual(stage.now, { sends: "headset", lit: ["headset"], muted: false, device: "headset" });
  assert.equal(stage.machine.tracks.length, 1);
});

test("of many calls to mute the last one holds", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  for (const last of [true, false]) {
    const calls = Array.from({ length: 9 }, (_, i) => stage.input.setMuted(i % 2 === 0 ? last : !last));
    await Promise.all(calls);
    assert.deepEqual(stage.now, {
      sends: last ? null : "desk",
      lit: last ? [] : ["desk"],
      muted: last,
      device: "desk",
    });
  }
  assert.ok(stage.machine.tracks.length <= 3, `${stage.machine.tracks.length} were opened`);
});

test("a camera that is muted while it opens again stays dark", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  await stage.input.setMuted(true);
  stage.machine.hold();
  const unmuted = stage.input.setMuted(false);
  await settle();
  await stage.input.setMuted(true);
  stage.machine.go();
  await unmuted;
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "desk" });
});

test("unmuted, muted and unmuted while it opens: it is sent once", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  await stage.input.setMuted(true);
  stage.machine.hold();
  const calls = [false, true, false].map((muted) => stage.input.setMuted(muted));
  await settle();
  stage.machine.go();
  await Promise.all(calls);
  assert.deepEqual(stage.now, { sends: "desk", lit: ["desk"], muted: false, device: "desk" });
  assert.equal(stage.machine.tracks.length, 2);
});

test("a camera that does not open again stays muted, and the person is not asked twice", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  await stage.input.setMuted(true);
  stage.machine.permission = "denied";
  const asked = stage.machine.asked.length;
  const codes = await Promise.all([codeOf(stage.input.setMuted(false)), codeOf(stage.input.setMuted(false))]);
  assert.deepEqual(codes, ["permission_denied", "permission_denied"]);
  assert.equal(stage.machine.asked.length, asked + 1);
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "desk" });
  stage.machine.permission = "granted";
  await stage.input.setMuted(false);
  assert.equal(stage.now.sends, "desk");
});

test("a camera that was unplugged while muted gives way to another one", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk"), camera("door")));
  await stage.input.setMuted(true);
  stage.machine.unplug("desk");
  await stage.input.setMuted(false);
  assert.deepEqual(stage.now, { sends: "door", lit: ["door"], muted: false, device: "door" });
});

test("a camera that the connection does not take is closed again", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  await stage.input.setMuted(true);
  stage.publication.refuses = true;
  assert.equal(await codeOf(stage.input.setMuted(false)), "device_busy");
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "desk" });
});

test("a camera that starts muted is opened when it is unmuted", async () => {
  const stage = new Stage("camera", new FakeMachine(camera("desk")));
  await stage.input.start({ muted: true });
  assert.deepEqual([stage.input.active, stage.input.muted, stage.machine.tracks.length], [true, true, 0]);
  await stage.input.setMuted(false);
  assert.deepEqual(stage.now, { sends: "desk", lit: ["desk"], muted: false, device: "desk" });
});

test("a microphone that starts muted is never heard before it is unmuted", async () => {
  const stage = new Stage("microphone", new FakeMachine(microphone("headset")));
  stage.answer = () => undefined;
  const start = stage.input.start({ muted: true });
  await settle();
  assert.equal(stage.machine.tracks[0]?.enabled, false);
  stage.answer();
  await start;
  assert.deepEqual([stage.now.sends, stage.publication.muted], [null, true]);
  await stage.input.setMuted(false);
  assert.equal(stage.now.sends, "headset");
});

test("a camera that is muted while the server is asked is published muted and dark", async () => {
  const stage = new Stage("camera", new FakeMachine(camera("desk")));
  stage.answer = () => undefined;
  const start = stage.input.start();
  await settle();
  void stage.input.setMuted(true);
  assert.deepEqual(stage.machine.lit, []);
  stage.answer();
  await start;
  assert.deepEqual([stage.publication.muted, stage.input.muted], [true, true]);
  await stage.input.setMuted(false);
  assert.equal(stage.now.sends, "desk");
});

test("a microphone that is unmuted while the server is asked is heard", async () => {
  const stage = new Stage("microphone", new FakeMachine(microphone("headset")));
  stage.answer = () => undefined;
  const start = stage.input.start({ muted: true });
  await settle();
  const unmuted = stage.input.setMuted(false);
  stage.answer();
  await Promise.all([start, unmuted]);
  assert.deepEqual([stage.now.sends, stage.input.muted, stage.machine.tracks[0]?.enabled], ["headset", false, true]);
});

test("a camera that is muted and unmuted while the server is asked is seen", async () => {
  const stage = new Stage("camera", new FakeMachine(camera("desk")));
  stage.answer = () => undefined;
  const start = stage.input.start();
  await settle();
  void stage.input.setMuted(true);
  const unmuted = stage.input.setMuted(false);
  stage.answer();
  await Promise.all([start, unmuted]);
  assert.deepEqual([stage.now.sends, stage.input.muted], ["desk", false]);
});

test("another device is sent by the same publication, and the former one is closed", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk"), camera("door")));
  await stage.input.switchTo("door");
  assert.deepEqual(stage.now, { sends: "door", lit: ["door"], muted: false, device: "door" });
  assert.equal(stage.published.length, 1);
});

test("of many choices the last one holds", async () => {
  const stage = await started("camera", new FakeMachine(camera("a"), camera("b"), camera("c")));
  stage.machine.hold();
  const choices = ["b", "c", "b", "c"].map((id) => stage.input.switchTo(id));
  await settle();
  stage.machine.go();
  await Promise.all(choices);
  assert.deepEqual(stage.now, { sends: "c", lit: ["c"], muted: false, device: "c" });
  assert.ok(stage.machine.tracks.length <= 3);
});

test("a device that cannot be opened leaves the former one sending", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  assert.equal(await codeOf(stage.input.switchTo("gone")), "device_missing");
  assert.deepEqual(stage.now, { sends: "desk", lit: ["desk"], muted: false, device: "desk" });
  stage.publication.refuses = true;
  stage.machine.devices.push(camera("door"));
  assert.equal(await codeOf(stage.input.switchTo("door")), "device_busy");
  assert.deepEqual(stage.now, { sends: "desk", lit: ["desk"], muted: false, device: "desk" });
});

test("a device that is chosen while a camera is muted is opened when it is unmuted", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk"), camera("door")));
  await stage.input.setMuted(true);
  await stage.input.switchTo("door");
  assert.deepEqual(stage.input.device, { id: "door", label: "The door" });
  assert.deepEqual(stage.machine.lit, []);
  await stage.input.setMuted(false);
  assert.equal(stage.now.sends, "door");
});

test("a camera that is muted while another one opens stays dark, and the other one is next", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk"), camera("door")));
  stage.machine.hold();
  const choice = stage.input.switchTo("door");
  await settle();
  void stage.input.setMuted(true);
  stage.machine.go();
  await choice;
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "door" });
  await stage.input.setMuted(false);
  assert.equal(stage.now.sends, "door");
});

test("a stop while another camera opens closes both", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk"), camera("door")));
  stage.machine.hold();
  const choice = stage.input.switchTo("door");
  await settle();
  await stage.input.stop();
  stage.machine.go();
  await choice;
  assert.deepEqual([stage.machine.lit, stage.input.active, stage.input.track], [[], false, null]);
});

test("a muted microphone that is exchanged stays muted", async () => {
  const stage = await started("microphone", new FakeMachine(microphone("desk"), microphone("headset")));
  await stage.input.setMuted(true);
  await stage.input.switchTo("headset");
  assert.deepEqual(stage.now, { sends: null, lit: ["headset"], muted: true, device: "headset" });
  await stage.input.setMuted(false);
  assert.equal(stage.now.sends, "headset");
});

test("a device that is chosen before the start is started", async () => {
  const stage = new Stage("camera", new FakeMachine(camera("desk"), camera("door")));
  await stage.input.switchTo("door");
  assert.deepEqual(stage.machine.lit, []);
  await stage.input.start();
  assert.equal(stage.now.sends, "door");
});

test("a phone shows its other side", async () => {
  const stage = await started("camera", new FakeMachine(camera("front", "user"), camera("back", "environment")));
  await stage.input.flip();
  assert.equal(stage.now.sends, "back");
  await stage.input.flip();
  assert.equal(stage.now.sends, "front");
});

test("a phone with one camera at a time closes the one before it opens the other", async () => {
  const machine = new FakeMachine(camera("front", "user"), camera("back", "environment"));
  const stage = new Stage("camera", machine, {
    open: (source, onlyFacing) =>
      machine.lit.length > 0
        ? Promise.reject(deviceError(new DOMException("", "NotReadableError"), ["camera"]))
        : machine.open("camera", source, onlyFacing),
  });
  await stage.input.start();
  await stage.input.flip();
  assert.deepEqual(stage.now, { sends: "back", lit: ["back"], muted: false, device: "back" });
  machine.devices[0] = { ...camera("front", "user"), fails: "NotReadableError" };
  assert.equal(await codeOf(stage.input.flip()), "device_busy");
  assert.deepEqual(stage.now, { sends: "back", lit: ["back"], muted: false, device: "back" });
});

test("without a side to flip to, the next camera is shown, round and round", async () => {
  const stage = await started("camera", new FakeMachine(camera("a"), camera("b"), camera("c", "user")));
  const shown = [];
  for (let flips = 0; flips < 3; flips++) {
    await stage.input.flip();
    shown.push(stage.now.sends);
  }
  assert.deepEqual(shown, ["b", "c", "a"]);
});

test("with one camera there is nothing to flip, nor with a microphone", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  assert.equal(await codeOf(stage.input.flip()), "device_missing");
  assert.equal(stage.now.sends, "desk");
  const other = await started("microphone", new FakeMachine(microphone("headset")));
  assert.equal(await codeOf(other.input.flip()), "unsupported");
});

test("an unplugged device gives way to another one, without a new publication", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk"), camera("door")));
  stage.machine.unplug("desk");
  await settle();
  assert.deepEqual(stage.now, { sends: "door", lit: ["door"], muted: false, device: "door" });
  assert.deepEqual(stage.ended, [{ cause: "unplugged", replacedBy: { id: "door", label: "The door" } }]);
  assert.equal(stage.published.length, 1);
});

test("a device that failed but is still there is opened again before others", async () => {
  const stage = await started("camera", new FakeMachine(camera("door"), camera("desk")));
  await stage.input.switchTo("desk");
  stage.machine.tracks.at(-1)?.die();
  await settle();
  assert.equal(stage.now.sends, "desk");
  assert.equal(stage.ended[0]?.replacedBy?.id, "desk");
});

test("where the browser's choice does not start, another one does", async () => {
  const machine = new FakeMachine(camera("desk"), { ...camera("broken"), fails: "NotReadableError" }, camera("door"));
  const stage = await started("camera", machine);
  machine.unplug("desk");
  await settle();
  assert.equal(stage.now.sends, "door");
});

test("without another device it is muted, and goes on when one is connected", async () => {
  const stage = await started("microphone", new FakeMachine(microphone("headset")));
  stage.machine.unplug("headset");
  await pass(300);
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "headset" });
  assert.deepEqual(stage.ended, [{ cause: "unplugged", replacedBy: null }]);
  assert.equal(stage.publication.muted, true);
  stage.machine.plug(camera("no microphone"));
  await pass(300);
  assert.equal(stage.now.muted, true);
  stage.machine.plug(microphone("desk"));
  await pass(300);
  assert.deepEqual(stage.now, { sends: "desk", lit: ["desk"], muted: false, device: "desk" });
  assert.equal(stage.publication.muted, false);
});

test("the same device is taken where several come back", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  stage.machine.unplug("desk");
  await pass(300);
  stage.machine.plug(camera("door"));
  stage.machine.plug(camera("desk"));
  await pass(300);
  assert.equal(stage.now.sends, "desk");
});

test("who mutes meanwhile is not sent when a device comes", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  stage.machine.unplug("desk");
  await pass(300);
  await stage.input.setMuted(true);
  stage.machine.plug(camera("desk"));
  await pass(300);
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "desk" });
  await stage.input.setMuted(false);
  assert.equal(stage.now.sends, "desk");
});

test("who was muted when the microphone was unplugged stays muted", async () => {
  const stage = await started("microphone", new FakeMachine(microphone("headset")));
  await stage.input.setMuted(true);
  stage.machine.unplug("headset");
  await pass(300);
  stage.machine.plug(microphone("headset"));
  await pass(300);
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "headset" });
  await stage.input.setMuted(false);
  assert.equal(stage.now.sends, "headset");
});

test("who stops while no device is there stays stopped", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  stage.machine.unplug("desk");
  await pass(300);
  await stage.input.stop();
  stage.machine.plug(camera("desk"));
  await pass(300);
  assert.deepEqual([stage.machine.lit, stage.input.active], [[], false]);
});

test("a device that is muted while it is being replaced stays dark", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk"), camera("door")));
  stage.machine.hold();
  stage.machine.unplug("desk");
  await settle();
  void stage.input.setMuted(true);
  stage.machine.go();
  await settle();
  assert.deepEqual(stage.machine.lit, []);
  assert.equal(stage.input.muted, true);
});

test("a device that is unplugged while another one is chosen is no loss", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk"), camera("door")));
  stage.machine.hold();
  const choice = stage.input.switchTo("door");
  await settle();
  stage.machine.unplug("desk");
  stage.machine.go();
  await choice;
  await settle();
  assert.deepEqual(stage.now, { sends: "door", lit: ["door"], muted: false, device: "door" });
  assert.deepEqual(stage.ended, []);
});

test("a permission that was taken back mutes, and nobody is asked by itself", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  stage.machine.permission = "denied";
  stage.machine.tracks[0]?.die();
  await settle();
  assert.deepEqual(stage.ended, [{ cause: "revoked", replacedBy: null }]);
  assert.equal(stage.publication.muted, true);
  stage.machine.permission = "granted";
  stage.machine.plug(camera("door"));
  await pass(300);
  assert.equal(stage.now.muted, true);
  assert.equal(stage.machine.asked.length, 1);
});

test("where the permission is gone by the time a device comes, the person is asked once", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  stage.machine.unplug("desk");
  await pass(300);
  stage.machine.permission = "denied";
  stage.machine.plug(camera("desk"));
  await pass(300);
  const asked = stage.machine.asked.length;
  stage.machine.plug(camera("door"));
  await pass(300);
  assert.equal(stage.machine.asked.length, asked);
  assert.equal(stage.now.muted, true);
});

test("a permission that was reset is noticed by the labels that are gone", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  stage.machine.permission = "prompt";
  stage.machine.named = false;
  stage.machine.tracks[0]?.die();
  await settle();
  assert.equal(stage.ended[0]?.cause, "revoked");
  assert.equal(stage.machine.asked.length, 1);
});

test("what a moderator muted is dark, and opened again by the person alone", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  const publication = stage.publication.asPublication;
  stage.moderatorMutes = true;
  stage.publication.setMuted(true);
  stage.input.moderated(publication, true);
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "desk" });
  assert.equal(await codeOf(stage.input.setMuted(false)), "forbidden");
  assert.equal(stage.machine.tracks.length, 1);
  stage.moderatorMutes = false;
  stage.publication.setMuted(false);
  stage.input.moderated(publication, false);
  assert.deepEqual([stage.publication.muted, stage.now.lit], [true, []]);
  await stage.input.setMuted(false);
  assert.equal(stage.now.sends, "desk");
});

test("a camera that a moderator mutes while it opens stays dark", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  await stage.input.setMuted(true);
  stage.machine.hold();
  const unmuted = codeOf(stage.input.setMuted(false));
  await settle();
  stage.moderatorMutes = true;
  stage.machine.go();
  assert.equal(await unmuted, "forbidden");
  assert.deepEqual(stage.now, { sends: null, lit: [], muted: true, device: "desk" });
});

test("a publication that the server ended leaves the camera dark, and can be started again", async () => {
  const stage = await started("camera", new FakeMachine(camera("desk")));
  stage.input.dropped(stage.publication.asPublication);
  assert.deepEqual([stage.machine.lit, stage.input.active, stage.unpublished], [[], false, 0]);
  await stage.input.start();
  assert.equal(stage.now.sends, "desk");
});

test("the level is measured while somebody listens and the microphone is on", async () => {
  const stage = await started("microphone", new FakeMachine(microphone("headset")));
  assert.equal(stage.meters, 0);
  const levels: number[] = [];
  const forget = stage.input.on("level", (level) => levels.push(level));
  await pass(1000);
  assert.deepEqual([stage.meters, levels.length, stage.input.level], [1, 10, 0.5]);
  await stage.input.setMuted(true);
  assert.deepEqual([stage.meters, stage.input.level, levels.at(-1)], [0, 0, 0]);
  await stage.input.setMuted(false);
  assert.equal(stage.meters, 1);
  forget();
  assert.equal(stage.meters, 0);
});

test("a track that is open already is sent, and no device is opened", async () => {
  const machine = new FakeMachine(camera("a"), camera("b"));
  const preview = await started("camera", machine);
  const call = new Stage("camera", machine);
  const track = preview.input.handOver() as MediaStreamTrack;
  await call.input.start({ track });
  assert.equal(machine.tracks.length, 1);
  assert.deepEqual(call.now, { sends: "a", lit: ["a"], muted: false, device: "a" });
  assert.deepEqual([preview.input.active, preview.input.track], [false, null]);
});

test("a given track that has ended is opened again, and one of a camera that starts muted is closed", async () => {
  const machine = new FakeMachine(camera("a"));
  const dead = new FakeTrack("video", "a", { deviceId: "a" });
  dead.stop();
  const stage = new Stage("camera", machine);
  await stage.input.start({ track: dead as unknown as MediaStreamTrack });
  assert.deepEqual(stage.now.lit, ["a"]);
  const muted = new Stage("camera", machine);
  const live = new FakeTrack("video", "a", { deviceId: "a" });
  await muted.input.start({ track: live as unknown as MediaStreamTrack, muted: true });
  assert.deepEqual([live.readyState, muted.published.length], ["ended", 0]);
});
