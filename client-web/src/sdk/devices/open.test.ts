import assert from "node:assert/strict";
import { test } from "node:test";
import { constraintsOf, openDevice } from "./open.js";

test("a chosen device is opened, and no other", () => {
  const { video } = constraintsOf("camera", { device: "desk", facing: "user" });
  assert.deepEqual(video, {
    deviceId: { exact: "desk" },
    width: { ideal: 1280 },
    height: { ideal: 720 },
    frameRate: { ideal: 30 },
  });
});

test("a side of the phone is a wish at the start, and a condition of a flip", () => {
  const facing = (onlyFacing: boolean) => {
    const { video } = constraintsOf("camera", { facing: "environment" }, onlyFacing);
    return (video as MediaTrackConstraints).facingMode;
  };
  assert.deepEqual(facing(false), { ideal: "environment" });
  assert.deepEqual(facing(true), { exact: "environment" });
});

test("a microphone is opened without echo and noise", () => {
  assert.deepEqual(constraintsOf("microphone", {}), {
    audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
  });
});

test("a page without https gets an error that says so", async () => {
  await assert.rejects(openDevice("camera", {}, false, undefined), { code: "insecure_page" });
});

test("the browser's error comes as the SDK's", async () => {
  const media = { getUserMedia: () => Promise.reject(new DOMException("", "NotReadableError")) };
  await assert.rejects(openDevice("camera", {}, false, media), { code: "device_busy", name: "WindlassError" });
});
