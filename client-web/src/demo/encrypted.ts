/** The badge that says that a call is encrypted end to end. */
import type { Room } from "../sdk/index.js";
import { make } from "./dom.js";
import { words } from "./language.js";

/** The badge; none where the server can read the call. */
export function encryptedBadge(room: Room): HTMLElement[] {
  return room.encrypted ? [make("span", { class: "encrypted" }, words("encrypted"))] : [];
}
