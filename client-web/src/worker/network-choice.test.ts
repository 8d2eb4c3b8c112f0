import assert from "node:assert/strict";
import { test } from "node:test";
import { NetworkChoice, type NetworkTier } from "./network-choice.js";

const INTERVAL_MS = 33;

/** A machine on which frames take so long without a network, and networks so long each. */
class Machine {
  now = 0;
  size = "320x180 2";
  queued = 0;
  readonly seen: NetworkTier[] = [];

  constructor(
    readonly choice: NetworkChoice,
    public baseMs: number,
    public networkMs: Record<NetworkTier, number>,
  ) {}

  run(frames: number): NetworkTier {
    for (let i = 0; i < frames; i++) {
      this.now += INTERVAL_MS;
      const { network } = this.choice;
      if (this.seen.at(-1) !== network) this.seen.push(network);
      this.choice.frame(this.now, this.baseMs + this.networkMs[network], INTERVAL_MS, this.queued, this.size);
    }
    return this.choice.network;
  }
}

const fast = { none: 0, xxs: 1, xs: 5 };

test("a fast machine goes up network by network", () => {
  const machine = new Machine(new NetworkChoice("xs"), 5, fast);
  assert.equal(machine.run(100), "xs");
  assert.deepEqual(machine.seen, ["none", "xxs", "xs"]);
});

test("a network that would not leave time is not tried", () => {
  const machine = new Machine(new NetworkChoice("xs"), 8, { none: 0, xxs: 5, xs: 24 });
  assert.equal(machine.run(2000), "xxs");
  assert.deepEqual(machine.seen, ["none", "xxs"]);
});

test("a machine without time to spare runs none", () => {
  const machine = new Machine(new NetworkChoice("xs"), 12, fast);
  assert.equal(machine.run(2000), "none");
});

test("a network that takes too long is dropped within a third of a second, and tried again after 15 seconds", () => {
  const machine = new Machine(new NetworkChoice("xs"), 5, fast);
  machine.run(100);
  machine.networkMs = { none: 0, xxs: 24, xs: 30 };
  assert.equal(machine.run(8), "none");
  machine.networkMs = fast;
  assert.equal(machine.run(440), "none");
  assert.equal(machine.run(300), "xs");
});

test("each relapse doubles the wait", () => {
  const machine = new Machine(new NetworkChoice("xs"), 5, fast);
  for (const waited of [15, 30]) {
    machine.networkMs = fast;
    machine.run(100);
    machine.networkMs = { none: 0, xxs: 24, xs: 30 };
    machine.run(10);
    const frames = Math.floor((waited * 1000) / INTERVAL_MS);
    machine.networkMs = fast;
    assert.equal(machine.run(frames - 30), "none");
    assert.equal(machine.run(200), "xs");
  }
});

test("frames that queue up drop a network that takes much of the time", () => {
  const machine = new Machine(new NetworkChoice("xs"), 5, { none: 0, xxs: 2, xs: 14 });
  machine.run(100);
  assert.equal(machine.choice.network, "xs");
  machine.queued = 5;
  assert.equal(machine.run(10), "none");
});

test("another size of pictures begins anew, without a wait", () => {
  const machine = new Machine(new NetworkChoice("xs"), 5, fast);
  machine.run(100);
  machine.size = "640x360 2";
  assert.equal(machine.run(1), "none");
  machine.networkMs = { none: 0, xxs: 3, xs: 14 };
  assert.equal(machine.run(100), "xxs");
});

test("no larger network than the largest allowed is chosen", () => {
  const machine = new Machine(new NetworkChoice("xxs"), 2, fast);
  assert.equal(machine.run(1000), "xxs");
  const none = new Machine(new NetworkChoice("none"), 2, fast);
  assert.equal(none.run(1000), "none");
});

test("a lower limit holds at once, and a higher one leads up again", () => {
  const machine = new Machine(new NetworkChoice("xs"), 5, fast);
  machine.run(100);
  machine.choice.limit("xxs");
  assert.equal(machine.run(100), "xxs");
  machine.choice.limit("none");
  assert.equal(machine.run(100), "none");
  machine.choice.limit("xs");
  assert.equal(machine.run(100), "xs");
});
