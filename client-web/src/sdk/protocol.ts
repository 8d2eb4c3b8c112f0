/**
 * The signalling messages, protocol version 1 (`docs/signaling.md`), and the validation of the server's.
 *
 * Unknown fields are ignored. A message with an invalid field is rejected as a whole (null).
 */

import { isVideoCodec } from "./codec.js";
import type {
  ConnectionQuality,
  Welcome as Entered,
  ErrorCode,
  IceServer,
  IceServers,
  LayerKnobs,
  OwnTrack,
  Participant as ParticipantInfo,
  Publish,
  Rung,
  ClientMessage as Said,
  Error as ServerFailure,
  Refusal as ServerRefusal,
  WayReason as ServerWayReason,
  Subscribe,
  ServerMessage as Told,
  Track,
  TrackStats,
  Uplink,
  Knock as WaitingInfo,
  Way,
} from "./protocol.gen.js";
import { VERSION } from "./protocol.gen.js";

export type {
  ConnectionQuality,
  Grant,
  IceServers,
  Knock as WaitingInfo,
  Layer,
  Participant as ParticipantInfo,
  Refusal as ServerRefusal,
  Report,
  Rung,
  Way,
  WayReason as ServerWayReason,
} from "./protocol.gen.js";

/** The protocol version of this client. */
export const PROTOCOL_VERSION: number = VERSION;

/** The anchor codecs of the WASM decoder, by their names in the protocol. */
export const ANCHOR_CODECS: readonly string[] = ["htj2k"];

/** Known reasons why a server does not enhance a track. */
const REFUSALS: readonly Exclude<Refusal, "other">[] = [
  "promise",
  "cpu",
  "memory",
  "full",
  "size",
  "slow",
  "codec",
  "encrypted",
];

/** Every way to make a picture. */
const WAYS: readonly Way[] = ["layer", "filters", "flow", "network", "both"];

/** Known reasons for a way. */
const WAY_REASONS: readonly Exclude<WayReason, "other">[] = [
  "fills",
  "unavailable",
  "limit",
  "bandwidth",
  "other_layer",
  "little_gain",
  "network_off",
  "network_slow",
  "network_trying",
  "network_size",
  "gain",
];

/** Every quality of a connection, best first. */
const QUALITIES: readonly ConnectionQuality[] = ["good", "fair", "poor", "lost"];

/** Default of `lr_pixels`, the max pixels of an LR picture that is rebuilt: 960×540. */
const DEFAULT_LR_PIXELS = 518_400;
/** Default of `max_sections`, the max sections of an offer. */
const DEFAULT_MAX_SECTIONS = 64;

/** Every rung, worst first. */
export const RUNGS: readonly Rung[] = ["q", "q+", "h", "h+", "f"];

/** A track of the room. */
export type TrackInfo = Track;
/** A publication in an offer. */
export type PublishEntry = Publish;
/** A subscription in an offer. */
export type SubscribeEntry = Subscribe;

/** Why the server does not enhance a track; `other`: a reason that this client does not know. */
export type Refusal = ServerRefusal | "other";

/** Why a picture is made in its way; `other`: a reason that this client does not know. */
export type WayReason = ServerWayReason | "other";

/** The server's statistics of a track. */
export type ServerTrackStats = Omit<TrackStats, "refused"> & { refused?: Refusal };

/** The report of the uplink of a publication. */
export type UplinkReport = Omit<Uplink, "track">;

/** The server's requests for one layer. An absent field leaves its request unchanged. */
export type LayerRequest = { [Knob in keyof LayerKnobs]: LayerKnobs[Knob] | undefined };

type Message<Type extends Told["type"]> = Extract<Told, { type: Type }>;

/** The server's requests for the layers of a publication. */
export type Knobs = Omit<Message<"knobs">, "layers"> & { layers: Record<string, LayerRequest> };

/** The server's request for a still of the next camera frame. `scale` undefined: that of the welcome. */
export type RegionRequest = Omit<Message<"regions">, "scale"> & { scale: number | undefined };

/** A message of the client. The server's answer carries the same id. */
export type ClientMessage = Said & { id?: number };

/** The server's answer to `join`. */
export type Welcome = { type: "welcome" } & Omit<Entered, "version" | "grants" | "ice"> & {
    /** Undefined where the server uses no access tokens. */
    grants: readonly string[] | undefined;
    /** STUN and TURN servers; may be empty. */
    ice: IceServers;
  };

/** A failure, as an answer or by itself. */
export type ServerError = { type: "error" } & ServerFailure;

/** A message of the server. */
export type ServerMessage =
  | Exclude<Told, { type: "welcome" | "grants" | "rung" | "way" | "stats" | "knobs" | "regions" | "error" }>
  | Welcome
  | { type: "grants"; grants: readonly string[] }
  | (Omit<Message<"rung">, "scale" | "spatial_layers"> & {
      scale: number | undefined;
      spatial_layers: number | undefined;
    })
  | (Omit<Message<"way">, "reason"> & { reason: WayReason })
  | { type: "stats"; tracks: ServerTrackStats[] }
  | Knobs
  | RegionRequest
  | ServerError;

class InvalidMessage extends Error {}

/** The fields of a JSON object. */
type Fields = Record<string, unknown>;

const object = (value: unknown): Fields => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new InvalidMessage();
  return value as Fields;
};
const text = (value: unknown): string => {
  if (typeof value !== "string") throw new InvalidMessage();
  return value;
};
const number = (value: unknown): number => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new InvalidMessage();
  return value;
};
const flag = (value: unknown): boolean => {
  if (typeof value !== "boolean") throw new InvalidMessage();
  return value;
};
const list = <T>(value: unknown, item: (value: unknown) => T): T[] => {
  if (!Array.isArray(value)) throw new InvalidMessage();
  return value.map(item);
};
const optional = <T>(value: unknown, read: (value: unknown) => T): T | undefined =>
  value === undefined || value === null ? undefined : read(value);
const oneOf =
  <T extends string>(allowed: readonly T[]) =>
  (value: unknown): T => {
    if (!allowed.includes(value as T)) throw new InvalidMessage();
    return value as T;
  };

/** An optional field, absent where its value is undefined. */
const field = <Name extends string, T>(name: Name, value: T | undefined): { [N in Name]?: T } =>
  value === undefined ? {} : ({ [name]: value } as { [N in Name]?: T });

const attributes = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(object(value)).map(([key, of]) => [key, text(of)]));
const participant = (value: unknown): ParticipantInfo => {
  const o = object(value);
  return {
    id: text(o["id"]),
    name: text(o["name"]),
    ...field("identity", optional(o["identity"], text)),
    ...field("was", optional(o["was"], text)),
    ...field("attributes", optional(o["attributes"], attributes)),
  };
};
const knock = (value: unknown): WaitingInfo => {
  const o = object(value);
  return { id: text(o["id"]), name: text(o["name"]), ...field("identity", optional(o["identity"], text)) };
};
const track = (value: unknown): TrackInfo => {
  const o = object(value);
  return {
    id: text(o["id"]),
    participant: text(o["participant"]),
    kind: oneOf(["audio", "video"] as const)(o["kind"]),
    name: text(o["name"]),
    muted: flag(o["muted"]),
    ...field("encrypted", optional(o["encrypted"], flag)),
    ...field("stream", optional(o["stream"], number)),
  };
};
const iceServer = (value: unknown): IceServer => {
  const o = object(value);
  return {
    urls: list(o["urls"], text),
    ...field("username", optional(o["username"], text)),
    ...field("credential", optional(o["credential"], text)),
  };
};
const iceServers = (value: unknown): IceServers => {
  const o = object(value);
  return { servers: list(o["servers"], iceServer), ...field("ttl_s", optional(o["ttl_s"], number)) };
};
const ownTrack = (value: unknown): OwnTrack => {
  const o = object(value);
  return { mid: text(o["mid"]), track: text(o["track"]) };
};
const layerRequest = (value: unknown): LayerRequest => {
  const o = object(value);
  return {
    kbps: optional(o["kbps"], number),
    fps: optional(o["fps"], number),
    active: optional(o["active"], flag),
    needed: optional(o["needed"], flag),
  };
};
const wayReason = (value: unknown): WayReason => {
  const reason = text(value);
  return WAY_REASONS.find((known) => known === reason) ?? "other";
};
const refusal = (value: unknown): Refusal => {
  const reason = text(value);
  // A later server may have further reasons.
  return REFUSALS.find((known) => known === reason) ?? "other";
};
const trackStats = (value: unknown): ServerTrackStats => {
  const o = object(value);
  return {
    track: text(o["track"]),
    video_kbps: number(o["video_kbps"]),
    anchor_kbps: number(o["anchor_kbps"]),
    anchors_per_s: number(o["anchors_per_s"]),
    anchors_dropped: number(o["anchors_dropped"]),
    ...field("refused", optional(o["refused"], refusal)),
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
    lr_pixels: optional(o["lr_pixels"], number) ?? DEFAULT_LR_PIXELS,
    max_sections: optional(o["max_sections"], number) ?? DEFAULT_MAX_SECTIONS,
    participants: list(o["participants"], participant),
    tracks: list(o["tracks"], track),
    ...field("identity", optional(o["identity"], text)),
    grants: optional(o["grants"], (v) => list(v, text)),
    locked: optional(o["locked"], flag) ?? false,
    lobby: optional(o["lobby"], flag) ?? false,
    recording: optional(o["recording"], flag) ?? false,
    ...field("attributes", optional(o["attributes"], attributes)),
    ...field("seat", optional(o["seat"], text)),
    ice: optional(o["ice"], iceServers) ?? { servers: [] },
    others: optional(o["others"], (v) => list(v, text)) ?? [],
  }),
  moved: (o) => ({
    type: "moved",
    url: text(o["url"]),
    ...field("ticket", optional(o["ticket"], text)),
    others: optional(o["others"], (v) => list(v, text)) ?? [],
  }),
  ice_servers: (o) => ({ type: "ice_servers", ice: iceServers(o["ice"]) }),
  answer: (o) => ({
    type: "answer",
    id: number(o["id"]),
    sdp: text(o["sdp"]),
    tracks: optional(o["tracks"], (v) => list(v, ownTrack)) ?? [],
  }),
  participant_joined: (o) => ({
    type: "participant_joined",
    participant: text(o["participant"]),
    name: text(o["name"]),
    ...field("identity", optional(o["identity"], text)),
    ...field("was", optional(o["was"], text)),
    ...field("attributes", optional(o["attributes"], attributes)),
  }),
  participant_changed: (o) => ({
    type: "participant_changed",
    participant: text(o["participant"]),
    name: text(o["name"]),
    ...field("attributes", optional(o["attributes"], attributes)),
  }),
  data: (o) => ({
    type: "data",
    from: text(o["from"]),
    seq: number(o["seq"]),
    ...field("number", optional(o["number"], number)),
    topic: text(o["topic"]),
    ...field("text", optional(o["text"], text)),
    ...field("bytes", optional(o["bytes"], text)),
  }),
  participant_left: (o) => ({ type: "participant_left", participant: text(o["participant"]) }),
  track_added: (o) => ({ type: "track_added", track: track(o["track"]) }),
  track_removed: (o) => ({ type: "track_removed", track: text(o["track"]) }),
  track_muted: (o) => ({ type: "track_muted", track: text(o["track"]), muted: flag(o["muted"]) }),
  paused: (o) => ({ type: "paused", track: text(o["track"]), paused: flag(o["paused"]) }),
  speaker: (o) => ({ type: "speaker", participant: text(o["participant"]) }),
  quality: (o) => ({ type: "quality", participant: text(o["participant"]), quality: oneOf(QUALITIES)(o["quality"]) }),
  rung: (o) => ({
    type: "rung",
    track: text(o["track"]),
    rung: oneOf(RUNGS)(o["rung"]),
    epoch: number(o["epoch"]),
    width: number(o["width"]),
    height: number(o["height"]),
    scale: optional(o["scale"], number),
    spatial_layers: optional(o["spatial_layers"], number),
  }),
  way: (o) => ({
    type: "way",
    track: text(o["track"]),
    way: oneOf(WAYS)(o["way"]),
    reason: wayReason(o["reason"]),
  }),
  stats: (o) => ({ type: "stats", tracks: list(o["tracks"], trackStats) }),
  knobs: (o) => ({
    type: "knobs",
    track: text(o["track"]),
    layers: Object.fromEntries(
      Object.entries(optional(o["layers"], object) ?? {}).map(([rid, request]) => [rid, layerRequest(request)]),
    ),
  }),
  backup_wanted: (o) => ({
    type: "backup_wanted",
    track: text(o["track"]),
    // A later server may know further ones.
    codecs: list(o["codecs"], text).filter((codec) => isVideoCodec(codec)),
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
  waiting: () => ({ type: "waiting" }),
  grants: (o) => ({ type: "grants", grants: list(o["grants"], text) }),
  entry: (o) => ({ type: "entry", locked: flag(o["locked"]), lobby: flag(o["lobby"]) }),
  recording: (o) => ({ type: "recording", on: flag(o["on"]) }),
  lobby: (o) => ({ type: "lobby", waiting: list(o["waiting"], knock) }),
  done: (o) => ({ type: "done", ...field("id", optional(o["id"], number)) }),
  pong: (o) => ({ type: "pong", time: number(o["time"]) }),
  error: (o) => ({
    type: "error",
    code: text(o["code"]) as ErrorCode,
    message: text(o["message"]),
    hint: optional(o["hint"], text) ?? "",
    ...field("id", optional(o["id"], number)),
    fatal: optional(o["fatal"], flag) ?? false,
  }),
};

/** Parses a message of the server; null where it is invalid. */
export function parseServerMessage(json: string): ServerMessage | null {
  try {
    const fields = object(JSON.parse(json));
    const reader = Object.hasOwn(READERS, text(fields["type"]))
      ? (READERS[fields["type"] as ServerMessage["type"]] as (o: Fields) => ServerMessage)
      : undefined;
    return reader?.(fields) ?? null;
  } catch {
    return null; // not JSON, or InvalidMessage
  }
}
