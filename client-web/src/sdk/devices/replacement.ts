/** What is opened instead of a device that has ended by itself. */
import { WindlassError } from "../errors.js";
import type { Device } from "./device-list.js";
import type { InputKind } from "./errors.js";
import type { Source } from "./open.js";

/** Why a device ended in the call: it was unplugged (or failed), or the person took back the permission. */
export type EndCause = "unplugged" | "revoked";

/** What opens devices. */
export interface Opener {
  /** Rejects with a `WindlassError`. */
  open(source: Source): Promise<MediaStreamTrack>;
  /** The devices of the kind. */
  listed(): Promise<Device[]>;
  /** What the person has decided; null where the browser does not tell. */
  permission(): Promise<PermissionState | null>;
}

/** What the person has decided, as far as the browser tells. */
export async function permissionOf(kind: InputKind): Promise<PermissionState | null> {
  try {
    return (await navigator.permissions.query({ name: kind as PermissionName })).state;
  } catch {
    // Older browsers do not know these names.
    return null;
  }
}

/**
 * Why a device of that label has ended. A permission that was reset counts as one that is not yet given, which browsers
 * that ask at each visit report all along; but devices without their labels are seen only by a page without permission.
 */
export async function causeOfEnd(
  label: string,
  { listed, permission }: Pick<Opener, "listed" | "permission">,
): Promise<EndCause> {
  if ((await permission()) === "denied") return "revoked";
  const devices = await listed();
  const unnamed = devices.length > 0 && devices.every((device) => device.label === "");
  return unnamed && label !== "" ? "revoked" : "unplugged";
}

/**
 * Opens a device instead of the one with the id `former`: that one where it is listed (again), else the browser's
 * choice, else whichever starts. Resolves with the cause where there is none.
 */
export async function openInstead(former: string, size: Source, opener: Opener): Promise<MediaStreamTrack | EndCause> {
  const ids = (await opener.listed()).map(({ id }) => id);
  // Without permission ids are empty.
  const others = ids.filter((id) => id !== "" && id !== former);
  const sources: Source[] = others.map((device) => ({ ...size, device }));
  if (ids.length > 0) sources.unshift(size);
  if (former !== "" && ids.includes(former)) sources.unshift({ ...size, device: former });
  for (const source of sources) {
    try {
      return await opener.open(source);
    } catch (error) {
      const code = error instanceof WindlassError ? error.code : "";
      if (code === "permission_denied" || code === "permission_blocked") return "revoked";
    }
  }
  return "unplugged";
}
