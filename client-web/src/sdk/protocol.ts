/**
 * The signalling messages, protocol version 1 (`docs/signaling.md`), and the check of what the server sends.
 *
 * Fields that this client does not know are ignored; a message whose known fields are not what they should be is
 * refused as a whole (null).
 */
import type { AnchorSource } from "../worker/messages.js";
import type { ServerErrorCode } from "./errors.js";

/** The protocol version that this client speaks. */
export const PROTOCOL_VERSION = 1;

/** What a subscriber can be given: a layer, or a layer plus anchors. */
export type Rung = "q" | "q+" | "h" | "h+" | "f";

/** The anchor codecs that the WASM decoder knows, by the server's names for them. */
export const ANCHOR_CODECS: readonly string[] = ["jpeg", "htj2k", "vp9", "vp9-pictures"];

/** Every rung, worst first. */
export const RUNGS: readonly Rung[] = ["q", "q+", "h", "h+", "f"];

/** Something that an access token allows. */
export type Grant = "publish" | "subscribe" | "enhance" | "admin";

export interface ParticipantInfo {
  id: string;
  name: string;
  /** Who that is by the access token, where the server needs one. */
  identity: string | undefined;
}

export interface TrackInfo {
  id: string;
  participant: string;
  kind: "audio" | "video";
  name: string;
  muted: boolean;
  /** Of video: the stream id in its anchor messages. */
  stream: number | undefined;
}

export interface ServerTrackStats {
  track: string;
  video_kbps: number;
  anchor_kbps: number;
  anchors_per_s: number;
  anchors_dropped: number;
  /** Why the track is not enhanced; undefined where it is, or is not wanted to be. */
  refused: Refusal | undefined;
}

export interface PublishEntry {
  mid: string;
  kind: "audio" | "video";
  name: string;
  /** The m-line carries the detail stream of that one, and is no track of its own. */
  detail_of?: string;
}

/** What the server wishes of one layer. */
export interface LayerWish {
  kbps: number | undefined;
  fps: number | undefined;
  active: boolean | undefined;
}

/** What the server wishes of a detail stream. */
export interface DetailWish {
  kbps: number;
  fps: number;
  /** Camera size over picture size; undefined: the client's choice. */
  down: number | undefined;
}

/** What the server asks to be sent of a track. */
export interface Knobs {
  type: "knobs";
  track: string;
  /** Null: none. Undefined: as it is. */
  detail: DetailWish | null | undefined;
  /** Size of its pictures over that of the best low layer that is sent; undefined: as the welcome says. */
  scale: number | undefined;
  /** By RID; layers that are not named stay as they are. */
  layers: Record<string, LayerWish>;
}

/** Tiles that the server wants of the next camera frame. */
export interface RegionRequest {
  type: "regions";
  track: string;
  /** Comes back as the epoch of the anchor messages. */
  id: number;
  /** Size of the low layer. */
  width: number;
  height: number;
  /** Size of the answer's picture over that; undefined: as the welcome says. */
  scale: number | undefined;
  /** The tile map's bits, base64. */
  tiles: string;
  /** Most bytes of the answer. */
  bytes: number;
}

export interface SubscribeEntry {
  mid: string;
  track: string;
  /** The best rung that it may get, from its first packet on. */
  max?: Rung;
}

/** Why the server does not enhance a track. */
export type Refusal = "promise" | "processor" | "other";

export interface Report {
  track: string;
  shown_fps: number;
  enhanced_fps: number;
  anchors_used: number;
  anchors_late: number;
  anchors_lost: number;
  anchors_duplicate: number;
  anchors_former_epoch: number;
  anchors_needing_whole: number;
  latency_p50_ms: number;
  latency_p95_ms: number;
  decode_ms: number;
  reconstruct_ms: number;
  /** Absent while not known. */
  decay?: number;
  decay_frames?: number;
}

/** What the browser says of the uplink of one's own track. */
export interface UplinkReport {
  /** What it carries, by the browser's congestion control. */
  kbps: number;
  /** The camera's pictures. */
  width: number;
  height: number;
  fps: number;
}

/** What the client may say. */
export type ClientMessage =
  | {
      type: "join";
      version: number;
      room: string;
      name: string;
      loopback: boolean;
      anchor_codecs: readonly string[];
      token?: string;
    }
  | { type: "offer"; id: number; sdp: string; publish: PublishEntry[]; subscribe: SubscribeEntry[] }
  | { type: "set_rung"; track: string; max: Rung }
  | { type: "whole_anchor"; track: string; source: AnchorSource }
  | { type: "mute"; track: string; muted: boolean }
  | ({ type: "uplink"; track: string } & UplinkReport)
  | ({ type: "report" } & Report)
  | { type: "leave" }
  | { type: "ping"; time: number };

export interface Welcome {
  type: "welcome";
  participant: string;
  room: string;
  loopback: boolean;
  budget_ms: number;
  scale: number;
  participants: ParticipantInfo[];
  tracks: TrackInfo[];
  identity: string | undefined;
  /** What one may do; undefined: the server does not say. */
  grants: readonly string[] | undefined;
}

export interface ServerError {
  type: "error";
  code: ServerErrorCode;
  message: string;
  hint: string;
  id: number | undefined;
  fatal: boolean;
}

/** What the server may say. */
export type ServerMessage =
  | Welcome
  | { type: "answer"; id: number; sdp: string; tracks: SubscribeEntry[] }
  | { type: "participant_joined"; participant: string; name: string; identity: string | undefined }
  | { type: "participant_left"; participant: string }
  | { type: "track_added"; track: TrackInfo }
  | { type: "track_removed"; track: string }
  | { type: "track_muted"; track: string; muted: boolean }
  | { type: "rung"; track: string; rung: Rung; epoch: number; width: number; height: number; scale: number | undefined }
  | { type: "stats"; tracks: ServerTrackStats[] }
  | Knobs
  | RegionRequest
  | { type: "pong"; time: number }
  | ServerError;

class Refused extends Error {}

type Fields = Record<string, unknown>;

const object = (value: unknown): Fields => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Refused();
  return value as Fields;
};
const text = (value: unknown): string => {
  if (typeof value !== "string") throw new Refused();
  return value;
};
const number = (value: unknown): number => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new Refused();
  return value;
};
const flag = (value: unknown): boolean => {
  if (typeof value !== "boolean") throw new Refused();
  return value;
};
const list = <T>(value: unknown, item: (value: unknown) => T): T[] => {
  if (!Array.isArray(value)) throw new Refused();
  return value.map(item);
};
const optional = <T>(value: unknown, read: (value: unknown) => T): T | undefined =>
  value === undefined || value === null ? undefined : read(value);
const oneOf =
  <T extends string>(allowed: readonly T[]) =>
  (value: unknown): T => {
    if (!allowed.includes(value as T)) throw new Refused();
    return value as T;
  };

const participant = (value: unknown): ParticipantInfo => {
  const o = object(value);
  return { id: text(o["id"]), name: text(o["name"]), identity: optional(o["identity"], text) };
};
const track = (value: unknown): TrackInfo => {
  const o = object(value);
  return {
    id: text(o["id"]),
    participant: text(o["participant"]),
    kind: oneOf(["audio", "video"] as const)(o["kind"]),
    name: text(o["name"]),
    muted: flag(o["muted"]),
    stream: optional(o["stream"], number),
  };
};
const entry = (value: unknown): SubscribeEntry => {
  const o = object(value);
  return { mid: text(o["mid"]), track: text(o["track"]) };
};
const detailWish = (value: unknown): DetailWish => {
  const o = object(value);
  return { kbps: number(o["kbps"]), fps: number(o["fps"]), down: optional(o["down"], number) };
};
const layerWish = (value: unknown): LayerWish => {
  const o = object(value);
  return { kbps: optional(o["kbps"], number), fps: optional(o["fps"], number), active: optional(o["active"], flag) };
};
const refusal = (value: unknown): Refusal => {
  const reason = text(value);
  // Reasons that are not known yet are reasons.
  return reason === "promise" || reason === "processor" ? reason : "other";
};
const trackStats = (value: unknown): ServerTrackStats => {
  const o = object(value);
  return {
    track: text(o["track"]),
    video_kbps: number(o["video_kbps"]),
    anchor_kbps: number(o["anchor_kbps"]),
    anchors_per_s: number(o["anchors_per_s"]),
    anchors_dropped: number(o["anchors_dropped"]),
    refused: optional(o["refused"], refusal),
  };
};

const READERS: { [Type in ServerMessage["type"]]: (o: Fields) => Extract<ServerMessage, { type: Type }> } = {
  welcome: (o) => ({
    type: "welcome",
    participant: text(o["participant"]),
    room: text(o["room"]),
    loopback: flag(o["loopback"]),
    budget_ms: number(o["budget_ms"]),
    scale: number(o["scale"]),
    participants: list(o["participants"], participant),
    tracks: list(o["tracks"], track),
    identity: optional(o["identity"], text),
    grants: optional(o["grants"], (v) => list(v, text)),
  }),
  answer: (o) => ({
    type: "answer",
    id: number(o["id"]),
    sdp: text(o["sdp"]),
    tracks: optional(o["tracks"], (v) => list(v, entry)) ?? [],
  }),
  participant_joined: (o) => ({
    type: "participant_joined",
    participant: text(o["participant"]),
    name: text(o["name"]),
    identity: optional(o["identity"], text),
  }),
  participant_left: (o) => ({ type: "participant_left", participant: text(o["participant"]) }),
  track_added: (o) => ({ type: "track_added", track: track(o["track"]) }),
  track_removed: (o) => ({ type: "track_removed", track: text(o["track"]) }),
  track_muted: (o) => ({ type: "track_muted", track: text(o["track"]), muted: flag(o["muted"]) }),
  rung: (o) => ({
    type: "rung",
    track: text(o["track"]),
    rung: oneOf(RUNGS)(o["rung"]),
    epoch: number(o["epoch"]),
    width: number(o["width"]),
    height: number(o["height"]),
    scale: optional(o["scale"], number),
  }),
  stats: (o) => ({ type: "stats", tracks: list(o["tracks"], trackStats) }),
  knobs: (o) => ({
    type: "knobs",
    track: text(o["track"]),
    detail: o["detail"] === null ? null : optional(o["detail"], detailWish),
    scale: optional(o["scale"], number),
    layers: Object.fromEntries(
      Object.entries(optional(o["layers"], object) ?? {}).map(([rid, wish]) => [rid, layerWish(wish)]),
    ),
  }),
  regions: (o) => ({
    type: "regions",
    track: text(o["track"]),
    id: number(o["id"]),
    width: number(o["width"]),
    height: number(o["height"]),
    scale: optional(o["scale"], number),
    tiles: text(o["tiles"]),
    bytes: number(o["bytes"]),
  }),
  pong: (o) => ({ type: "pong", time: number(o["time"]) }),
  error: (o) => ({
    type: "error",
    code: text(o["code"]) as ServerErrorCode,
    message: text(o["message"]),
    hint: optional(o["hint"], text) ?? "",
    id: optional(o["id"], number),
    fatal: optional(o["fatal"], flag) ?? false,
  }),
};

/** Reads one message of the server; null when it is not one. */
export function parseServerMessage(json: string): ServerMessage | null {
  try {
    const fields = object(JSON.parse(json));
    const reader = Object.hasOwn(READERS, text(fields["type"]))
      ? (READERS[fields["type"] as ServerMessage["type"]] as (o: Fields) => ServerMessage)
      : undefined;
    return reader?.(fields) ?? null;
  } catch {
    return null; // not JSON, or Refused
  }
}
