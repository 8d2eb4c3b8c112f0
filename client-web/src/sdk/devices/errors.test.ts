import assert from "node:assert/strict";
import { test } from "node:test";
import { unreachable } from "../errors.js";
import { deviceError, type InputKind, type Surroundings, speakerError } from "./errors.js";

const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36";
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0";
const SAFARI = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15";

const on = (userAgent: string, allowed = true): Surroundings => ({ userAgent, policyAllows: () => allowed });

function told(name: string, message = "", surroundings = on(CHROME), kinds: readonly InputKind[] = ["camera"]) {
  return deviceError(new DOMException(message, name), kinds, surroundings);
}

test("a person who did not allow it learns where to change that, by browser", () => {
  const chrome = told("NotAllowedError", "Permission denied");
  assert.equal(chrome.code, "permission_denied");
  assert.match(chrome.hint, /icon before the address/);
  const firefox = told("NotAllowedError", "The request is not allowed by the user agent", on(FIREFOX));
  assert.equal(firefox.code, "permission_denied");
  assert.match(firefox.hint, /crossed-out/);
  assert.match(told("NotAllowedError", "", on(SAFARI)).hint, /Safari's settings/);
});

test("a question that was closed can be asked again", () => {
  const error = told("NotAllowedError", "Permission dismissed");
  assert.equal(error.code, "permission_denied");
  assert.match(error.hint, /Try again, and choose “Allow”/);
});

test("what the operating system forbids is changed in its settings", () => {
  const error = told("NotAllowedError", "Permission denied by system", on(MAC));
  assert.equal(error.code, "permission_blocked");
  assert.match(error.hint, /System Settings/);
});

test("what the page's policy forbids is for its owner to change", () => {
  const error = told("NotAllowedError", "Permission denied", on(CHROME, false));
  assert.equal(error.code, "permission_blocked");
  assert.match(error.hint, /Permissions-Policy/);
});

test("a device that is missing, busy, unfit or late is told apart", () => {
  assert.equal(told("NotFoundError").code, "device_missing");
  assert.equal(told("NotReadableError").code, "device_busy");
  assert.equal(told("AbortError").code, "device_busy");
  const unfit = deviceError({ name: "OverconstrainedError", constraint: "width" }, ["camera"], on(CHROME));
  assert.equal(unfit.code, "device_unfit");
});

test("a chosen device that is not connected is missing", () => {
  const error = deviceError({ name: "OverconstrainedError", constraint: "deviceId" }, ["microphone"], on(CHROME));
  assert.equal(error.code, "device_missing");
  assert.equal(error.message, "The chosen microphone is not connected.");
});

test("two devices are named together", () => {
  const error = told("NotAllowedError", "Permission denied", on(CHROME), ["camera", "microphone"]);
  assert.equal(error.message, "The browser may not use your camera and microphone.");
});

test("an error of the SDK stays what it is, and anything can be thrown", () => {
  const error = unreachable();
  assert.equal(deviceError(error, ["camera"], on(CHROME)), error);
  assert.equal(deviceError(undefined, ["camera"], on(CHROME)).code, "device_busy");
});

test("a loudspeaker that cannot be used is told apart", () => {
  const codes = ["NotFoundError", "NotAllowedError", "AbortError"].map(
    (name) => speakerError(new DOMException("", name)).code,
  );
  assert.deepEqual(codes, ["device_missing", "permission_blocked", "device_busy"]);
});
