import assert from "node:assert/strict";
import { test } from "node:test";
import { NetworkChoice, type NetworkTier } from "./network-choice.js";

const INTERVAL_MS = 33;
const FRAMES_PER_S = 1000 / INTERVAL_MS;

/** A machine on which frames take so long without a network, and networks so long each. */
class Machine {
  now = 0;
  size = "320x180";
  scale = 2;
  queued = 0;
  readonly seen: NetworkTier[] = [];
  private frames = 0;
  /** Frames that ran each network. */
  readonly counts: Record<NetworkTier, number> = { none: 0, xxs: 0, xs: 0 };
  /** Adds `ms` to the time of one frame in `every`. */
  hiccup: { every: number; ms: number } | null = null;

  constructor(
    readonly choice: NetworkChoice,
    public baseMs: number,
    public networkMs: Record<NetworkTier, number>,
  ) {}

  run(frames: number): NetworkTier {
    for (let i = 0; i < frames; i++) {
      this.now += INTERVAL_MS;
      this.choice.begin(this.size, this.scale);
      const { network } = this.choice;
      if (this.seen.at(-1) !== network) this.seen.push(network);
      this.counts[network]++;
      const more = this.hiccup !== null && ++this.frames % this.hiccup.every === 0 ? this.hiccup.ms : 0;
      this.choice.frame(this.now, this.baseMs + this.networkMs[network] + more, INTERVAL_MS, this.queued);
    }
    return this.choice.network;
  }

  seconds(seconds: number): NetworkTier {
    return this.run(Math.floor(seconds * FRAMES_PER_S));
  }
}

const make = (max: NetworkTier = "xs") => new NetworkChoice(max, () => 0.5);
const fast = { none: 0, xxs: 1, xs: 5 };
const slow = { none: 0, xxs: 24, xs: 30 };

test("a fast machine goes up network by network", () => {
  const machine = new Machine(make(), 5, fast);
  assert.equal(machine.run(100), "xs");
  assert.deepEqual(machine.seen, ["none", "xxs", "xs"]);
});

test("a network that would not leave time is not tried", () => {
  const machine = new Machine(make(), 8, { none: 0, xxs: 5, xs: 24 });
  assert.equal(machine.run(2000), "xxs");
  assert.deepEqual(machine.seen, ["none", "xxs"]);
});

test("a machine without time to spare runs none", () => {
  const machine = new Machine(make(), 12, fast);
  assert.equal(machine.run(2000), "none");
});

test("a network that takes too long is dropped within eight frames, and tried again after 15 seconds", () => {
  const machine = new Machine(make(), 5, fast);
  machine.run(100);
  machine.networkMs = slow;
  assert.notEqual(machine.run(8), "xs");
  assert.equal(machine.run(8), "none");
  machine.networkMs = fast;
  machine.seconds(10);
  assert.notEqual(machine.choice.network, "xs");
  assert.equal(machine.seconds(8), "xs");
});

test("a network that is dearer than its estimate gives way to the cheaper one", () => {
  const machine = new Machine(make(), 5, { none: 0, xxs: 1, xs: 24 });
  machine.seconds(5);
  assert.deepEqual(machine.seen, ["none", "xxs", "xs", "xxs"]);
  machine.seconds(600);
  const { none, xxs, xs } = machine.counts;
  assert.ok(xxs > 0.95 * (none + xxs + xs), JSON.stringify(machine.counts));
});

test("each relapse doubles the wait, and calm minutes halve it again", () => {
  const machine = new Machine(make(), 5, fast);
  const until = () => {
    machine.run(100);
    machine.networkMs = slow;
    machine.run(10);
    machine.networkMs = fast;
    const from = machine.now;
    while (machine.run(1) !== "xs") assert.ok(machine.now - from < 1e6);
    return (machine.now - from) / 1000;
  };
  const waits = [until(), until(), until()];
  assert.ok((waits[0] as number) < 18 && (waits[1] as number) > 25 && (waits[2] as number) > 50, `${waits}`);
  machine.seconds(600);
  assert.ok(until() < 18);
});

test("a hiccup now and then drops nothing", () => {
  const machine = new Machine(make(), 5, { none: 0, xxs: 2, xs: 9 });
  machine.hiccup = { every: 100, ms: 150 };
  machine.seconds(120);
  assert.deepEqual(machine.seen, ["none", "xxs", "xs"]);
});

test("frames that queue up drop a network that takes much of the time", () => {
  const machine = new Machine(make(), 5, { none: 0, xxs: 2, xs: 10 });
  machine.run(100);
  assert.equal(machine.choice.network, "xs");
  machine.networkMs = { none: 0, xxs: 2, xs: 15 };
  machine.queued = 5;
  machine.run(10);
  assert.notEqual(machine.choice.network, "xs");
});

test("another size or scale runs none at once, and begins again without a wait", () => {
  const machine = new Machine(make(), 5, fast);
  machine.run(100);
  machine.networkMs = slow;
  machine.run(10);
  machine.networkMs = { none: 0, xxs: 3, xs: 14 };
  machine.size = "640x360";
  machine.choice.begin(machine.size, 2);
  assert.equal(machine.choice.network, "none");
  assert.equal(machine.run(100), "xxs");
});

test("a scale takes the networks that there are for it", () => {
  const machine = new Machine(make(), 2, fast);
  machine.scale = 3;
  assert.equal(machine.run(100), "xs");
  assert.deepEqual(machine.seen, ["none", "xs"]);
  machine.choice.limit("xxs");
  assert.equal(machine.run(100), "none");
});

test("no larger network than the largest allowed is chosen", () => {
  assert.equal(new Machine(make("xxs"), 2, fast).run(1000), "xxs");
  assert.equal(new Machine(make("none"), 2, fast).run(1000), "none");
});

test("a lower limit holds at once, and a higher one leads up again", () => {
  const machine = new Machine(make(), 5, fast);
  machine.run(100);
  machine.choice.limit("xxs");
  assert.equal(machine.run(100), "xxs");
  machine.choice.limit("none");
  assert.equal(machine.run(100), "none");
  machine.choice.limit("xs");
  assert.equal(machine.run(100), "xs");
});

test("a machine that rests runs none, and goes up from there", () => {
  const machine = new Machine(make(), 5, fast);
  machine.run(100);
  machine.choice.rest();
  assert.equal(machine.choice.network, "none");
  assert.equal(machine.run(100), "xs");
});

test("why none runs is known: it may not, there is none, there is no time, or not yet", () => {
  const machine = new Machine(make(), 5, fast);
  const absence = () => machine.choice.absence(machine.now);
  assert.equal(absence(), "trying");
  machine.run(5);
  assert.equal(absence(), "trying");
  machine.run(100);
  assert.equal(absence(), null);
  machine.networkMs = slow;
  machine.run(20);
  assert.equal(absence(), "slow");
  machine.choice.limit("xxs");
  machine.scale = 3;
  machine.run(1);
  assert.equal(absence(), "size");
  machine.choice.limit("none");
  assert.equal(absence(), "off");
});

test("a machine that has no time for one, or rests, is slow", () => {
  const busy = new Machine(make(), 20, fast);
  busy.run(30);
  assert.equal(busy.choice.absence(busy.now), "slow");
  const resting = new Machine(make(), 5, fast);
  resting.run(100);
  resting.choice.rest();
  assert.equal(resting.choice.absence(resting.now), "slow");
});
