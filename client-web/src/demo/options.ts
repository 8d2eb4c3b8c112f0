/**
 * The options in the URL of the page: `?room=…&name=…&auto=1&loopback=1&layers=q|qh|qhf&view=enhanced|plain|split`
 * `&maxRung=q|q+|h|h+|f&source=camera|none&output=stream|post|canvas&detail=1&adaptive=0&maxNetwork=none|xxs|xs`
 * `&figures=1&lang=en|de`, and for tests `&networkBackend=webgpu|workers`. The room may also be the fragment. An access
 * token belongs in the fragment, which browsers send to no server: `#token=…` or `#room=…&token=…`. `?token=…` works
 * too.
 */
import type { Layers, NetworkBackend, NetworkTier, OutputKind, Rung, View } from "../sdk/index.js";
import { RUNGS } from "../sdk/index.js";

/** The options of the page. */
export interface PageOptions {
  room: string | null;
  name: string | null;
  /** The access token, where the server needs one. */
  token: string | null;
  /** Join at once, without the start screen. */
  auto: boolean;
  loopback: boolean;
  layers: Layers;
  /** The key of end-to-end encryption, from the fragment, which no server sees. */
  key: Uint8Array | null;
  view: View | null;
  maxRung: Rung | null;
  source: "camera" | "none";
  output: OutputKind;
  /** The box for full-size stills is ticked on the start screen. */
  detail: boolean;
  /** The largest network that may run on every frame. */
  maxNetwork: NetworkTier;
  /** What runs it; for tests. */
  networkBackend: NetworkBackend;
  /** The server learns the size and visibility of tiles. Off: each tile gets what the bandwidth allows. */
  adaptive: boolean;
  /** The figures of engineers are shown from the start. */
  figures: boolean;
}

function choice<T extends string>(value: string | null, allowed: readonly T[]): T | null {
  return allowed.find((a) => a === value) ?? null;
}

/** Makes a valid room name of a text; null where nothing remains. */
export function roomName(text: string): string | null {
  const name = text
    .trim()
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 64);
  return name === "" ? null : name;
}

/** The text of an address; empty where it is none, so that it names no room. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** A key of encryption, from base64url; null where there is none. */
function keyOf(text: string | null): Uint8Array | null {
  if (text === null) return null;
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  } catch {
    // Joining with a key of no bytes fails, and says so: nobody takes the call for an encrypted one.
    return new Uint8Array();
  }
}

/** Reads the options from a URL. */
export function pageOptions(address: URL): PageOptions {
  const query = address.searchParams;
  const flag = (name: string) => query.has(name) && query.get(name) !== "0";
  const hash = address.hash.slice(1);
  // Whatever else it holds, a key in it must be found: without it the call would be plain.
  const fragment = new URLSearchParams(hash.includes("=") ? hash : "");
  const named = fragment.get("room") ?? (hash.includes("=") ? "" : decoded(hash));
  return {
    room: roomName(query.get("room") ?? named),
    token: fragment.get("token") ?? query.get("token"),
    key: keyOf(fragment.get("key")),
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
    maxNetwork: choice(query.get("maxNetwork"), ["none", "xxs", "xs"] as const) ?? "xs",
    networkBackend: choice(query.get("networkBackend"), ["webgpu", "workers"] as const) ?? "auto",
    adaptive: query.get("adaptive") !== "0",
    figures: flag("figures"),
  };
}

/** The fragment of an address that has its key of encryption; empty where it has none. */
export function keyFragment(address: URL): string {
  const key = new URLSearchParams(address.hash.slice(1)).get("key");
  return key === null ? "" : `key=${key}`;
}

/** The link to a room, for others: with the key of encryption, if the call has one. Who has the link has the key. */
export function roomLink(address: URL, room: string): string {
  const link = new URL(address.pathname, address);
  link.searchParams.set("room", room);
  link.hash = keyFragment(address);
  return link.href;
}

const MOODS = ["calm", "bright", "brisk", "quiet", "warm", "clear", "fair", "steady"];
const PLACES = ["harbour", "anchor", "lagoon", "jetty", "bay", "pier", "cove", "sound"];

/** A random room name. */
export function inventRoom(random: () => number = Math.random): string {
  const pick = (words: string[]) => words[Math.floor(random() * words.length)] as string;
  return `${pick(MOODS)}-${pick(PLACES)}-${Math.floor(random() * 900 + 100)}`;
}
