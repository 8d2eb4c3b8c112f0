/**
 * Why a camera, microphone or loudspeaker cannot be used: the browser's errors, told apart, with what the person can
 * do.
 */
import { WindlassError } from "../errors.js";

/** A device that is sent from. */
export type InputKind = "camera" | "microphone";

/** What the browser tells about itself and the page. */
export interface Surroundings {
  /** The browser's `navigator.userAgent`. */
  userAgent: string;
  /**
   * Whether the page's policy, and that of the frames around it, allow the device. True where the browser does not
   * tell.
   */
  policyAllows(kind: InputKind): boolean;
}

/** The policy of a document (Chromium). */
interface Policy {
  allowsFeature(feature: string): boolean;
}

/** The surroundings of this page. */
export function thisPage(): Surroundings {
  const page = (globalThis.document ?? {}) as { permissionsPolicy?: Policy; featurePolicy?: Policy };
  const policy = page.permissionsPolicy ?? page.featurePolicy;
  return {
    userAgent: globalThis.navigator?.userAgent ?? "",
    policyAllows: (kind) => policy?.allowsFeature(kind) ?? true,
  };
}

/**
 * Names the cause of a failure of `getUserMedia`. `kinds` is what was asked for. A {@link WindlassError} is returned as
 * it is.
 */
export function deviceError(
  error: unknown,
  kinds: readonly InputKind[],
  surroundings: Surroundings = thisPage(),
): WindlassError {
  if (error instanceof WindlassError) return error;
  const what = kinds.join(" and ");
  const { name = "", message = "", constraint = "" } = Object(error) as Partial<OverconstrainedError>;
  switch (name) {
    case "NotAllowedError":
    case "SecurityError":
      return notAllowed(message, kinds, surroundings);
    case "NotFoundError":
      return deviceMissing(kinds);
    case "OverconstrainedError":
      return constraint === "deviceId" ? chosenMissing(kinds) : deviceUnfit(what);
    case "AbortError":
      return new WindlassError("device_busy", `The ${what} did not start in time.`, "Try again.");
    default:
      return new WindlassError(
        "device_busy",
        `The ${what} ${kinds.length > 1 ? "do" : "does"} not start.`,
        `Close other programs that use ${kinds.length > 1 ? "them" : "it"} and try again.`,
      );
  }
}

/**
 * Who did not allow it. Chromium tells by its message: `Permission denied by system`, `Permission dismissed` (the
 * person closed the question), `Permission denied`. Firefox and Safari have one message for all.
 */
function notAllowed(message: string, kinds: readonly InputKind[], { userAgent, policyAllows }: Surroundings) {
  const what = kinds.join(" and ");
  if (/by system/i.test(message)) {
    return new WindlassError(
      "permission_blocked",
      `The operating system does not let this browser use your ${what}.`,
      `Allow the browser to use ${what} ${systemSettings(userAgent)}, then try again.`,
    );
  }
  if (!kinds.every(policyAllows)) {
    return new WindlassError(
      "permission_blocked",
      `This page is not allowed to use your ${what}.`,
      "Open the call in a tab of its own. Who runs the page must allow it: by Permissions-Policy, and by “allow” of the frame.",
    );
  }
  if (/dismissed/i.test(message)) {
    return new WindlassError(
      "permission_denied",
      `The browser may not use your ${what} yet.`,
      `Try again, and choose “Allow” when it asks. Allow ${what} for this page ${pageSettings(userAgent)} if it does not ask.`,
    );
  }
  return new WindlassError(
    "permission_denied",
    `The browser may not use your ${what}.`,
    `Allow ${what} for this page ${pageSettings(userAgent)}, then try again.`,
  );
}

/** Where the operating system has the permission of the browser. */
function systemSettings(userAgent: string): string {
  if (/iPhone|iPad/.test(userAgent)) return "in Settings, under Apps and its name";
  if (/Mac OS X/.test(userAgent)) return "in System Settings, under Privacy & Security";
  if (/Windows/.test(userAgent)) return "in Settings, under Privacy & security";
  if (/Android/.test(userAgent)) return "in Settings, under Apps, its name and Permissions";
  return "in the system's settings";
}

/** Where the browser has the permission of a page. */
function pageSettings(userAgent: string): string {
  if (/Firefox/.test(userAgent)) return "by the icon with the crossed-out device in the address bar";
  if (/Chrome|CriOS/.test(userAgent)) return "in the address bar, by the icon before the address";
  if (/iPhone|iPad/.test(userAgent)) return "by the page menu in the address bar, under Website Settings";
  if (/Safari/.test(userAgent)) return "in Safari's settings, under Websites";
  return "in the address bar";
}

/** There is no device of that kind. */
export function deviceMissing(kinds: readonly InputKind[]): WindlassError {
  return new WindlassError(
    "device_missing",
    `There is no ${kinds.join(" or ")} on this machine.`,
    "Connect one and try again.",
  );
}

/** The device that was chosen is not there. */
function chosenMissing(kinds: readonly InputKind[]): WindlassError {
  return new WindlassError(
    "device_missing",
    `The chosen ${kinds.join(" or ")} is not connected.`,
    "Connect it and try again, or choose another one.",
  );
}

/** There is one camera only. */
export function noOtherCamera(): WindlassError {
  return new WindlassError("device_missing", "There is no other camera on this machine.", "Connect one and try again.");
}

function deviceUnfit(what: string): WindlassError {
  return new WindlassError(
    "device_unfit",
    `No ${what} on this machine can do what the page asks for.`,
    "Choose another one.",
  );
}

/** The browser gives no devices to this page. */
export function insecurePage(kinds: readonly InputKind[]): WindlassError {
  return new WindlassError(
    "insecure_page",
    `The browser gives no ${kinds.join(" or ")} to this address.`,
    "Open the page by https, or on this machine as http://localhost.",
  );
}

/** It was stopped before it had begun. */
export function aborted(kind: InputKind): WindlassError {
  return new WindlassError("aborted", `The ${kind} was stopped before it had started.`, "Start it again.");
}

/** A moderator muted it. */
export function mutedByModerator(kind: InputKind): WindlassError {
  return new WindlassError("forbidden", `A moderator has muted your ${kind}.`, "Ask a moderator to allow it again.");
}

/** A microphone has no other side. */
export function cannotFlip(): WindlassError {
  return new WindlassError("unsupported", "Only a camera can be flipped.", "Choose another microphone from the list.");
}

/** The browser cannot choose a loudspeaker. */
export function noSpeakerChoice(): WindlassError {
  return new WindlassError(
    "unsupported",
    "This browser cannot play the call on another loudspeaker.",
    "Choose the loudspeaker in the system's settings.",
  );
}

/** Names the cause of a failure of `setSinkId`. */
export function speakerError(error: unknown): WindlassError {
  if (error instanceof WindlassError) return error;
  switch ((Object(error) as { name?: unknown }).name) {
    case "NotAllowedError":
    case "SecurityError":
      return new WindlassError(
        "permission_blocked",
        "This page may not choose the loudspeaker.",
        "Allow the microphone for this page, which allows that too, or choose it in the system's settings.",
      );
    case "NotFoundError":
      return new WindlassError(
        "device_missing",
        "The chosen loudspeaker is not connected.",
        "Connect it and try again, or choose another one.",
      );
    default:
      return new WindlassError("device_busy", "The loudspeaker does not start.", "Choose another one, or try again.");
  }
}

/** The browser plays no sound before a gesture. */
export function soundBlocked(): WindlassError {
  return new WindlassError(
    "sound_blocked",
    "The browser plays no sound yet.",
    "Click on the page, or press a key, to hear the others.",
  );
}
