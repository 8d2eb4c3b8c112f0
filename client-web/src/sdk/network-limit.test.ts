import assert from "node:assert/strict";
import { test } from "node:test";
import { type Battery, NetworkLimit, type Page } from "./network-limit.js";
import { settle } from "./testing/clock.js";

/** A battery that tells of its changes. */
class FakeBattery implements Battery {
  charging = true;
  level = 1;
  private readonly listeners = new Set<() => void>();

  addEventListener(_type: string, listener: () => void): void {
    this.listeners.add(listener);
  }

  removeEventListener(_type: string, listener: () => void): void {
    this.listeners.delete(listener);
  }

  becomes(charging: boolean, level: number): void {
    this.charging = charging;
    this.level = level;
    for (const listener of this.listeners) listener();
  }
}

test("on battery the cheap network may run, and none while little charge is left", async () => {
  const battery = new FakeBattery();
  const limit = new NetworkLimit("xs", async () => battery);
  await settle();
  const seen: string[] = [limit.max];
  limit.onChange.add(() => seen.push(limit.max));
  battery.becomes(false, 0.8);
  battery.becomes(false, 0.7);
  battery.becomes(false, 0.1);
  battery.becomes(true, 0.1);
  assert.deepEqual(seen, ["xs", "xxs", "none", "xs"]);
});

test("the application's bound holds on power too", async () => {
  const battery = new FakeBattery();
  const limit = new NetworkLimit("none", async () => battery);
  await settle();
  battery.becomes(false, 0.8);
  assert.equal(limit.max, "none");
});

test("a page that may not know of a battery, or has none, counts as powered", async () => {
  const unknown = new NetworkLimit("xs", () => Promise.reject(new Error("not allowed")));
  const none = new NetworkLimit("xs", async () => null);
  await settle();
  assert.deepEqual([unknown.max, none.max], ["xs", "xs"]);
});

test("nothing is reported after the end", async () => {
  const battery = new FakeBattery();
  const limit = new NetworkLimit("xs", async () => battery);
  await settle();
  let told = 0;
  limit.onChange.add(() => told++);
  limit.close();
  battery.becomes(false, 0.1);
  assert.equal(told, 0);
});

/** A page that is hidden and shown. */
class FakePage implements Page {
  visibilityState: DocumentVisibilityState = "visible";
  pictureInPictureElement?: unknown = null;
  readonly listeners = new Set<() => void>();

  addEventListener(_type: string, listener: () => void): void {
    this.listeners.add(listener);
  }

  removeEventListener(_type: string, listener: () => void): void {
    this.listeners.delete(listener);
  }

  becomes(visibilityState: DocumentVisibilityState, floating: unknown = null): void {
    this.visibilityState = visibilityState;
    this.pictureInPictureElement = floating;
    for (const listener of this.listeners) listener();
  }
}

test("none may run in a hidden page, unless a picture floats", () => {
  const page = new FakePage();
  const limit = new NetworkLimit("xs", async () => null, page);
  const seen: string[] = [limit.max];
  limit.onChange.add(() => seen.push(limit.max));
  page.becomes("hidden");
  page.becomes("hidden", {});
  page.becomes("hidden");
  page.becomes("visible");
  assert.deepEqual(seen, ["xs", "none", "xs", "none", "xs"]);
  limit.close();
  assert.equal(page.listeners.size, 0);
});

test("none may run in a hidden page of a browser without floating pictures", () => {
  const page = new FakePage();
  delete page.pictureInPictureElement;
  page.visibilityState = "hidden";
  assert.equal(new NetworkLimit("xs", async () => null, page).max, "none");
});
