import assert from "node:assert/strict";
import { test } from "node:test";
import { placeAt, Sway } from "./sway.js";

/** A video, and frames that the test lets pass. */
function stage(still = false) {
  const video = Object.assign(new EventTarget(), { split: 50 });
  const waiting: ((now: number) => void)[] = [];
  const sway = new Sway(video, still, (draw) => waiting.push(draw));
  return { video, sway, pass: (now: number) => waiting.splice(0).forEach((draw) => void draw(now)) };
}

test("the handle goes from the middle to both sides and back", () => {
  const places = [0, 2500, 5000, 7500, 10_000].map((ms) => Math.round(placeAt(ms)));
  assert.deepEqual(places, [50, 65, 50, 35, 50]);
});

for (const name of ["pointerdown", "focusin"]) {
  test(`it sways from its beginning on, until ${name}, and never again`, () => {
    const { video, sway, pass } = stage();
    pass(0);
    assert.equal(video.split, 50);
    sway.begin();
    sway.begin();
    pass(1000);
    pass(3500);
    assert.equal(Math.round(video.split), 65);
    video.dispatchEvent(new Event(name));
    pass(6000);
    sway.begin();
    pass(7000);
    assert.equal(Math.round(video.split), 65);
  });
}

test("it stands still for who wants no motion, and where it was touched before", () => {
  const calm = stage(true);
  calm.sway.begin();
  calm.pass(0);
  calm.pass(2500);
  const touched = stage();
  touched.video.dispatchEvent(new Event("pointerdown"));
  touched.sway.begin();
  touched.pass(0);
  touched.pass(2500);
  assert.deepEqual([calm.video.split, touched.video.split], [50, 50]);
});
