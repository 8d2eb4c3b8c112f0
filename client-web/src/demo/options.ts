/**
 * What the page's address says: `?room=…&name=…&auto=1&loopback=1&layers=q|qh|qhf&view=enhanced|plain|split`
 * `&maxRung=q|q+|h|h+|f&source=camera|none&output=stream|post|canvas&detail=1&adaptive=0`. The room may also be the hash. An access
 * token belongs in the hash, which browsers send to nobody: `#token=…` or `#room=…&token=…`; `?token=…` is taken too.
 */
import type { Layers, OutputKind, Rung } from "../sdk/index.js";
import { RUNGS } from "../sdk/index.js";

/** How a tile shows its two pictures. */
export type View = "enhanced" | "split" | "plain";

export interface PageOptions {
  room: string | null;
  name: string | null;
  /** What lets one in, where the server needs it. */
  token: string | null;
  /** Join at once, without the start screen. */
  auto: boolean;
  loopback: boolean;
  layers: Layers;
  view: View | null;
  maxRung: Rung | null;
  source: "camera" | "none";
  output: OutputKind;
  /** The choice to send full-size stills is made already; a person may still take it back on the start screen. */
  detail: boolean;
  /** The server is told how large tiles are and whether they are seen; off, every tile is given what fits the link. */
  adaptive: boolean;
}

function choice<T extends string>(value: string | null, allowed: readonly T[]): T | null {
  return allowed.find((a) => a === value) ?? null;
}

/** Makes of any text a name that a room may have; null when nothing is left of it. */
export function roomName(text: string): string | null {
  const name = text
    .trim()
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 64);
  return name === "" ? null : name;
}

/** Reads the options from an address. */
export function pageOptions(address: URL): PageOptions {
  const query = address.searchParams;
  const flag = (name: string) => query.has(name) && query.get(name) !== "0";
  let hash = "";
  try {
    hash = decodeURIComponent(address.hash.slice(1));
  } catch {
    // a hash that is no text names no room
  }
  const fragment = new URLSearchParams(hash.includes("=") ? address.hash.slice(1) : "");
  const named = fragment.get("room") ?? (hash.includes("=") ? "" : hash);
  return {
    room: roomName(query.get("room") ?? named),
    token: fragment.get("token") ?? query.get("token"),
    name: query.get("name")?.trim().slice(0, 64) || null,
    auto: flag("auto"),
    loopback: flag("loopback"),
    layers: choice(query.get("layers"), ["q", "qh", "qhf"] as const) ?? "qhf",
    view: choice(query.get("view"), ["enhanced", "split", "plain"] as const),
    // A bare `+` in a query means a space.
    maxRung: choice(query.get("maxRung")?.replace(" ", "+") ?? null, RUNGS),
    source: choice(query.get("source"), ["camera", "none"] as const) ?? "camera",
    output: choice(query.get("output"), ["stream", "post", "canvas"] as const) ?? "auto",
    detail: flag("detail"),
    adaptive: query.get("adaptive") !== "0",
  };
}

/** The link that brings others into a room. */
export function roomLink(address: URL, room: string): string {
  const link = new URL(address.pathname, address);
  link.searchParams.set("room", room);
  return link.href;
}

const MOODS = ["calm", "bright", "brisk", "quiet", "warm", "clear", "fair", "steady"];
const PLACES = ["harbour", "anchor", "lagoon", "jetty", "bay", "pier", "cove", "sound"];

/** A room name to start from. */
export function inventRoom(random: () => number = Math.random): string {
  const pick = (words: string[]) => words[Math.floor(random() * words.length)] as string;
  return `${pick(MOODS)}-${pick(PLACES)}-${Math.floor(random() * 900 + 100)}`;
}
