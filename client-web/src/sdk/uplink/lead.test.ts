import assert from "node:assert/strict";
import { test } from "node:test";
import { LeadingLayer, type Wanted } from "./lead.js";

const BOTH: Wanted = { q: true, needsQ: false, h: true, pixels: 640 * 360 };

/** Feeds one estimate four times a second; returns the times at which the caps changed. */
function looks(lead: LeadingLayer, from: number, to: number, kbps: number | null, wanted = BOTH): number[] {
  const changes: number[] = [];
  for (let now = from; now <= to; now += 250) if (lead.onEstimate(now, kbps, wanted)) changes.push(now);
  return changes;
}

/** A layer choice after 4 s of this estimate, led by `h`. */
function led(kbps = 200): LeadingLayer {
  const lead = new LeadingLayer();
  looks(lead, 0, 4000, kbps);
  assert.ok(lead.caps["h"] !== undefined);
  return lead;
}

test("on a narrow uplink the half layer is given what the quarter layer is not", () => {
  const lead = new LeadingLayer();
  assert.deepEqual(looks(lead, 0, 4000, 200), [3000]);
  const half = lead.caps["h"] ?? 0;
  assert.ok(half >= 90 && half + 45 < 200, `${half}`);
  assert.equal(lead.caps["q"], half + 1, "the browser serves the lower cap first");
});

test("the quarter layer has a share where the half layer has enough without, and somebody needs it", () => {
  assert.ok((led(180).caps["h"] ?? 0) >= 110, "there is hardly enough for one");
  const lead = led(300);
  const before = lead.caps["h"] ?? 0;
  looks(lead, 4250, 5000, 300, { ...BOTH, q: false });
  assert.ok((lead.caps["h"] ?? 0) >= before + 25);
});

test("where there is enough for one layer alone, the quarter layer has it when somebody can take no other", () => {
  const lead = led(180);
  assert.equal(looks(lead, 4250, 20_000, 150, { ...BOTH, needsQ: true }).at(-1), 5250);
  assert.deepEqual(lead.caps, {});
  const both = led(190);
  looks(both, 4250, 20_000, 190, { ...BOTH, needsQ: true });
  const half = both.caps["h"] ?? 0;
  assert.ok(half >= 75 && half + 45 + 30 < 190, `${half}`);
});

test("on a very narrow uplink, and on one that has room for both, layers are as the page allows", () => {
  for (const kbps of [80, 150, 600]) {
    const lead = new LeadingLayer();
    assert.deepEqual(looks(lead, 0, 20_000, kbps), []);
    assert.deepEqual(lead.caps, {});
  }
});

test("an uplink that narrows gives the quarter layer back within a second", () => {
  const lead = led();
  assert.equal(looks(lead, 4250, 6000, 90).at(-1), 5250);
  assert.deepEqual(lead.caps, {});
});

test("an estimate that swings changes nothing", () => {
  const lead = led();
  for (let now = 4250; now < 60_000; now += 250) lead.onEstimate(now, now % 1000 === 0 ? 100 : 195, BOTH);
  assert.ok(lead.caps["h"] !== undefined);
  const other = new LeadingLayer();
  for (let now = 0; now < 60_000; now += 250)
    assert.equal(other.onEstimate(now, now % 2000 === 0 ? 120 : 190, BOTH), false);
});

test("the half layer's cap follows the estimate, but not every swing of it", () => {
  const lead = led();
  const before = lead.caps["h"] ?? 0;
  assert.deepEqual(looks(lead, 4250, 5000, 210), []);
  assert.equal(looks(lead, 5250, 6000, 300).length, 1);
  assert.ok((lead.caps["h"] ?? 0) > before + 60);
  assert.equal(looks(lead, 6250, 7000, 180).length, 1, "it falls at once");
});

test("a half layer that nobody takes, or that may not be sent, does not lead", () => {
  assert.deepEqual(looks(new LeadingLayer(), 0, 10_000, 200, { ...BOTH, h: false }), []);
  const lead = led();
  assert.deepEqual(looks(lead, 4250, 5000, 200, { ...BOTH, h: false }), [4250]);
  assert.deepEqual(lead.caps, {});
});

test("without an estimate layers are as the page allows", () => {
  assert.deepEqual(looks(new LeadingLayer(), 0, 10_000, null), []);
});

test("a smaller camera's half layer leads with fewer bits, a larger one's with more", () => {
  const leads = (pixels: number, kbps: number) => {
    const lead = new LeadingLayer();
    looks(lead, 0, 4000, kbps, { ...BOTH, pixels });
    return lead.caps["h"] !== undefined;
  };
  assert.deepEqual([leads(320 * 240, 110), leads(640 * 360, 110)], [true, false]);
  assert.deepEqual([leads(960 * 540, 200), leads(960 * 540, 320)], [false, true]);
});

test("an uplink that has become too narrow for the half layer needs the quarter layer, whatever the server wants", () => {
  const lead = led();
  assert.equal(lead.needsQuarter, false);
  looks(lead, 4250, 6000, 90, { ...BOTH, q: false });
  assert.equal(lead.needsQuarter, true);
  looks(lead, 6250, 20_000, 900, { ...BOTH, q: false });
  assert.equal(lead.needsQuarter, false);
});
