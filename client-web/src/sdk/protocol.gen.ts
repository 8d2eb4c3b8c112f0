// Written by `cargo xtask protocol` from the types of signaling/protocol. Change those, not this.

/** The protocol version that these types are of. */
export const VERSION = 1;

/** A message of the client. `type` in JSON is the variant's name in snake case. */
export type ClientMessage = {
  type: "join";
} & Join
  | {
  type: "offer";
} & Offer
  | {
  type: "set_rung";
} & SetRung
  | {
  type: "view";
} & View
  | {
  type: "key_anchor";
  /** The subscribed track. */
  track: string;
}
  | {
  type: "mute";
  /** The participant's own track. */
  track: string;
  /** Whether it is muted now. */
  muted: boolean;
}
  | {
  type: "report";
} & Report
  | {
  type: "uplink";
} & Uplink
  | {
  type: "send";
} & SendData
  | {
  type: "attributes";
} & SetAttributes
  | {
  type: "ice_servers";
}
  | {
  type: "arrived";
}
  | {
  type: "moderate";
} & Moderate
  | {
  type: "leave";
}
  | {
  type: "ping";
  /** Time by the client's own clock; the server only repeats it. */
  time: number;
};

/** Enter a room. */
export type Join = {
  /** Protocol version of the client. */
  version: number;
  /** Name of the room, as in its link. */
  room: string;
  /** Display name, which the others see. */
  name: string;
  /** Whether to join a loopback room, in which the participant is alone and may subscribe to its own tracks. */
  loopback?: boolean;
  /** Names of the anchor codecs that the client can decode. Unknown names are ignored. Without `htj2k`, the client gets plain rungs. */
  anchor_codecs?: Array<string>;
  /** Access token, for a server with token keys. */
  token?: AccessToken;
  /** Ticket of the `moved` message, where a server has sent the client here. By it the others learn whose place the client takes. */
  ticket?: string;
  /** Seat token of the last `welcome` to the room. With it, the client may come back into a locked room, and does not wait in the lobby. */
  seat?: string;
  /** Attributes of the participant at first: after a lost connection, or on another server, those that it had. They are ignored without the grant `data`. */
  attributes?: {
    [key in string]: string;
  };
};

/** A WebRTC offer, with the tracks of its sections. */
export type Offer = {
  /** Session description of the browser. */
  sdp: string;
  /** Sections that send a track. */
  publish: Array<Publish>;
  /** Sections that receive a track. */
  subscribe: Array<Subscribe>;
};

/** A section of an offer that sends a track. */
export type Publish = {
  /** `a=mid` of the section. */
  mid: string;
  /** Whether the section sends audio or video. */
  kind: TrackKind;
  /** Name of the track that the others see, such as `camera`. */
  name: string;
  /** Largest layer of a video that the client sends where its uplink carries it. */
  max?: Layer;
  /** Whether its frames are encrypted end to end. The server then reads none of it, and does not record it. */
  encrypted?: boolean;
  /** `a=mid` of an earlier entry, whose video this one sends in another codec. Nobody is told of such a backup: those who cannot decode the other's codec get it in its place. */
  backup_of?: string;
};

/** A section of an offer that receives a track. */
export type Subscribe = {
  /** `a=mid` of the section. */
  mid: string;
  /** Id of the track that the section receives. */
  track: string;
  /** Maximum rung from the first packet on. Absent: the last `set_rung` holds. */
  max?: Rung;
};

/** Set the maximum rung of a subscribed track. */
export type SetRung = {
  /** The subscribed track. */
  track: string;
  /** Maximum rung of the track. */
  max: Rung;
};

/** How a subscribed track is shown. The server derives from it which layer suffices, and the track's weight among others. */
export type View = {
  /** The subscribed track. */
  track: string;
  /** Width of the tile in device pixels; 0: the tile is not visible, and the track is not sent. */
  width: number;
  /** Height of the tile in device pixels; 0: the tile is not visible, and the track is not sent. */
  height: number;
  /** Whether the user has pinned the tile, so that the track comes before all others. */
  pinned?: boolean;
};

/** Report on a subscribed track since the last report. Absent figures are zero. */
export type Report = {
  /** The subscribed track. */
  track: string;
  /** Frames shown, per second. */
  shown_fps: number;
  /** Frames shown with detail from anchors, per second. */
  enhanced_fps: number;
  /** Number of anchors that were used. */
  anchors_used: number;
  /** Number of used anchors that came after their frame was shown. */
  anchors_late: number;
  /** Number of anchors that began to arrive, but could not be used. */
  anchors_lost: number;
  /** Number of anchors that added nothing to their frame. */
  anchors_duplicate: number;
  /** Number of anchors that came after one of a newer epoch. */
  anchors_former_epoch: number;
  /** Median time from a frame's arrival at the server to its anchor's use, in ms. */
  latency_p50_ms: number;
  /** 95th percentile of the time from a frame's arrival at the server to its anchor's use, in ms. */
  latency_p95_ms: number;
  /** Mean time to decode a frame, in ms. */
  decode_ms: number;
  /** Mean time to rebuild a frame's HR picture, in ms. */
  reconstruct_ms: number;
  /** Network that runs on every frame. */
  network: FrameNetwork;
  /** Why no network runs, where none does. */
  no_network?: NoNetwork;
  /** How the picture gets worse after an anchor, where that was measured. */
  anchor_decay?: DecayReport;
};

/** How a viewer's rebuilt picture gets worse from frame to frame after an anchor, as the viewer measures it (ARISE §4.3). */
export type DecayReport = {
  /** Loss with each frame (`d ÷ L`), in squared grey levels of luma: the mean over the picture's samples. */
  per_frame: number;
  /** Number of frames after an anchor in which the loss was seen (`L`): the mean over the anchors. */
  frames: number;
};

/** Report on the uplink of one's own track. */
export type Uplink = {
  /** The participant's own track. */
  track: string;
  /** What the uplink carries, by the browser's congestion control. In messages it is in kbit/s. */
  kbps: number;
  /** The camera's frames per second. */
  fps: number;
  /** Width in pixels. */
  width: number;
  /** Height in pixels. */
  height: number;
};

/** A message to others in the room, with either `text` or `bytes`. Needs the grant `data`. */
export type SendData = {
  /** Topic of the message: 1 to 64 letters, digits, `-`, `_` and `.`. */
  topic: string;
  /** Content as text: at most 16 KiB. */
  text?: string;
  /** Content as bytes, in Base64: at most 16 KiB before encoding. */
  bytes?: string;
  /** Ids of the participants that get the message. Ids that are not in the room are ignored. Absent: all others. */
  to?: Array<string>;
  /** Whether each receiver gets the message. If not, it is dropped for receivers for which too much waits already. */
  reliable?: boolean;
  /** Number that the client gives the message; receivers get it too. A client that lost its connection before `done` may send the message again with the same number. Receivers that have it already drop it. */
  number?: number;
};

/** Change the attributes and the name that the others see of this participant. Needs the grant `data`. */
export type SetAttributes = {
  /** New values by key; `null` removes a key. Keys that are not listed keep their values. */
  set: {
    [key in string]: string | null;
  };
  /** New name, if the access token sets none. */
  name?: string;
};

/** A moderator's request. `action` in JSON is the variant's name in snake case. */
export type Moderate = {
  "action": "grants";
  /** Id of the participant whose grants change. */
  participant: string;
  /** All grants that the participant has from now on. */
  grants: Array<Grant>;
}
  | {
  "action": "lock";
  /** Whether the room is locked from now on. */
  locked: boolean;
}
  | {
  "action": "lobby";
  /** Whether the room has a lobby from now on. */
  lobby: boolean;
}
  | {
  "action": "admit";
  /** `id` of the participant in the lobby. */
  waiting: string;
}
  | {
  "action": "refuse";
  /** `id` of the participant in the lobby. */
  waiting: string;
}
  | {
  "action": "remove";
  /** Id of the participant to remove. */
  participant: string;
}
  | {
  "action": "ban";
  /** Id of the participant to ban. */
  participant: string;
  /** Time of the ban in seconds. Absent: until the participant's token and all others that were used have expired, and at least a day. */
  seconds?: number;
}
  | {
  "action": "unban";
  /** Identity whose ban to lift. */
  identity: string;
}
  | {
  "action": "mute";
  /** Id of the track. */
  track: string;
  /** Whether the track is muted from now on. */
  muted: boolean;
};

/** A JSON Web Token (RFC 7519) as a client sends it. Its `Debug` form hides it, so that it reaches no log. */
export type AccessToken = string;

/** A message of the server. `type` in JSON is the variant's name in snake case. */
export type ServerMessage = {
  type: "welcome";
} & Welcome
  | {
  type: "moved";
  /** Signalling address of that server (`wss://…/ws`). */
  url: string;
  /** Ticket for the `join` there, if the client is in the room. By it the others learn which participant it was. */
  ticket?: string;
  /** Signalling addresses of other servers of the cluster, as in `welcome`. */
  others?: Array<string>;
}
  | {
  type: "answer";
  /** Id of the offer. */
  id: number;
  /** Session description of the server. */
  sdp: string;
  /** The client's own tracks. */
  tracks: Array<OwnTrack>;
}
  | {
  type: "participant_joined";
  /** Id of the participant who has joined. */
  participant: string;
  /** Display name of the participant. */
  name: string;
  /** Identity in the participant's access token, if there is one. */
  identity?: string;
  /** Former id of a participant who moved here from another server of the cluster. The participant takes the place of the one with that id. */
  was?: string;
  /** The attributes that the participant tells the others. */
  attributes?: {
    [key in string]: string;
  };
}
  | {
  type: "participant_changed";
  /** Id of the participant who has changed. */
  participant: string;
  /** Display name of the participant from now on. */
  name: string;
  /** All attributes of the participant from now on. */
  attributes?: {
    [key in string]: string;
  };
}
  | {
  type: "data";
  /** Id of the participant who sent the message. */
  from: string;
  /** Number of the message: each message of a sender has a larger one than its earlier messages. A client that moves is at two servers for a while, and gets each message from both. */
  seq: number;
  /** Number that the sender gave the message, if any. A message that is sent again has the same number, even if its sender has come back with another id (`was`). */
  number?: number;
  /** Topic of the message. */
  topic: string;
  /** Content of the message, if it is text. */
  text?: string;
  /** Content of the message, if it is bytes, in Base64. */
  bytes?: string;
}
  | {
  type: "participant_left";
  /** Id of the participant who has left. */
  participant: string;
}
  | {
  type: "track_added";
  /** The new track. */
  track: Track;
}
  | {
  type: "track_removed";
  /** Id of the track. */
  track: string;
}
  | {
  type: "track_muted";
  /** Id of the track. */
  track: string;
  /** Whether it is muted now. */
  muted: boolean;
}
  | {
  type: "paused";
  /** The subscribed track. */
  track: string;
  /** Whether it is paused now. */
  paused: boolean;
}
  | {
  type: "speaker";
  /** Id of the participant who speaks. */
  participant: string;
}
  | {
  type: "quality";
  /** Id of the participant whose connection it is. */
  participant: string;
  /** Quality of the connection from now on. */
  quality: ConnectionQuality;
}
  | {
  type: "rung";
  /** The subscribed track. */
  track: string;
  /** Rung that the client receives. */
  rung: Rung;
  /** Epoch that begins. Anchors of other epochs do not fit its frames. */
  epoch: number;
  /** Width of the layer in pixels; zero while unknown. */
  width: number;
  /** Height of the layer in pixels; zero while unknown. */
  height: number;
  /** Scale of the rung's anchors (HR size over LR size), where the rung is enhanced. */
  scale: number;
  /** Number of spatial layers in which the publisher sends the track (SVC). Pictures of several are not rebuilt. */
  spatial_layers: number;
}
  | {
  type: "way";
  /** The subscribed track. */
  track: string;
  /** Way in which the picture is made. */
  way: Way;
  /** Why the picture is made in this way. */
  reason: WayReason;
}
  | {
  type: "knobs";
  /** The client's own track. */
  track: string;
  /** Parameters by layer. Layers that are not listed keep theirs. */
  layers?: {
    [key in Layer]?: LayerKnobs;
  };
}
  | {
  type: "backup_wanted";
  /** The client's own track. */
  track: string;
  /** The codecs that serve those who cannot decode the track, what serves most of them first. */
  codecs: Array<VideoCodec>;
}
  | {
  type: "regions";
  /** The client's own track. */
  track: string;
  /** Id of the request, which the answer repeats as its epoch. */
  id: number;
  /** Width of the low layer in pixels. */
  width: number;
  /** Height of the low layer in pixels. */
  height: number;
  /** Scale of the answer: size of its picture over that of the low layer. */
  scale: number;
  /** Tile map in Base64: one bit for each tile of 64×64 pixels of the low layer, row by row, the lowest bit first. */
  tiles: string;
  /** Maximum bytes of the answer. */
  bytes: number;
}
  | {
  type: "stats";
  /** One entry for each subscribed video track. */
  tracks: Array<TrackStats>;
}
  | {
  type: "waiting";
}
  | {
  type: "grants";
  /** Grants of the client from now on. */
  grants: Array<Grant>;
}
  | {
  type: "entry";
  /** Whether the room is locked: no new participants may enter. */
  locked: boolean;
  /** Whether the room has a lobby: new participants wait until a moderator admits them. */
  lobby: boolean;
}
  | {
  type: "recording";
  /** Whether the room is recorded now. */
  on: boolean;
}
  | {
  type: "lobby";
  /** All participants in the lobby, the first one first. */
  waiting: Array<Knock>;
}
  | {
  type: "done";
  /** Id of the message, if it had one. */
  id?: number;
}
  | {
  type: "ice_servers";
  /** Servers that are valid from now on. */
  ice: IceServers;
}
  | {
  type: "pong";
  /** The time of the `ping`. */
  time: number;
}
  | {
  type: "error";
} & Error;

/** State of the room that the client has joined. */
export type Welcome = {
  /** Protocol version of the server. */
  version: number;
  /** Id of the client's participant. */
  participant: string;
  /** Name of the room. */
  room: string;
  /** Whether the room is a loopback room, in which the participant is alone. */
  loopback: boolean;
  /** The operator's latency budget for anchors, in ms. */
  budget_ms: number;
  /** Minimum scale of enhanced rungs (HR size over LR size). `rung` has the scale of each track. */
  scale: number;
  /** Maximum pixels of a layer that is enhanced, in either orientation: larger pictures need not be rebuilt. */
  lr_pixels: number;
  /** Maximum number of sections that send or receive media in an offer of the client. */
  max_sections: number;
  /** Other participants in the room. */
  participants: Array<Participant>;
  /** Tracks that the client may subscribe to. */
  tracks: Array<Track>;
  /** Identity in the client's access token, if there is one. */
  identity?: string;
  /** Grants of the client. */
  grants: Array<Grant>;
  /** Whether the room is locked: no new participants may enter. */
  locked?: boolean;
  /** Whether the room has a lobby: new participants wait until a moderator admits them. */
  lobby?: boolean;
  /** Whether the room is recorded. */
  recording?: boolean;
  /** Attributes of the client's participant, as in `join`. */
  attributes?: {
    [key in string]: string;
  };
  /** Seat token, with which the client may come back into a locked room, and does not wait in the lobby. Keep it secret. */
  seat?: string;
  /** STUN and TURN servers for the client. */
  ice?: IceServers;
  /** Signalling addresses of other servers of the cluster, the best first: for when the connection to this one is lost. */
  others?: Array<string>;
};

/** A participant in the room. */
export type Participant = {
  /** Id of the participant. */
  id: string;
  /** Display name of the participant. */
  name: string;
  /** Identity in the participant's access token, if there is one. */
  identity?: string;
  /** Former id of a participant who moved here from another server of the cluster. The participant takes the place of the one with that id. */
  was?: string;
  /** The attributes that the participant tells the others. */
  attributes?: {
    [key in string]: string;
  };
};

/** A participant in the lobby. */
export type Knock = {
  /** Id by which the participant is admitted or refused. It is not a participant id. */
  id: string;
  /** Display name of the participant. */
  name: string;
  /** Identity in the participant's access token, if there is one. */
  identity?: string;
};

/** A published track. */
export type Track = {
  /** Id of the track, unique on the server. */
  id: string;
  /** Id of the participant who publishes the track. */
  participant: string;
  /** Kind of the track: audio or video. */
  kind: TrackKind;
  /** Name that the publisher gives the track, such as `camera`. */
  name: string;
  /** Whether the publisher, or an operator, has muted the track. */
  muted: boolean;
  /** Whether its frames are encrypted end to end. */
  encrypted?: boolean;
  /** The `stream` field of the track's anchor messages; video only. */
  stream?: number;
};

/** A track that the client publishes. */
export type OwnTrack = {
  /** `a=mid` of the section that sends the track. */
  mid: string;
  /** Id of the track, for `mute` and for the others. */
  track: string;
};

/** Statistics of one subscription in the last second. */
export type TrackStats = {
  /** The subscribed track. */
  track: string;
  /** Bitrate of the video in kbit/s. */
  video_kbps: number;
  /** Bitrate of the anchors in kbit/s. */
  anchor_kbps: number;
  /** Anchors sent, per second. */
  anchors_per_s: number;
  /** Number of anchors dropped since the subscription began: they were late, or did not fit. */
  anchors_dropped: number;
  /** Why the server makes no anchors of the track, although the client could have them. */
  refused?: Refusal;
};

/** An error: a message was refused, or the session has failed. */
export type Error = {
  /** The reason, for programs. */
  code: ErrorCode;
  /** Description of the error for people. */
  message: string;
  /** Advice for people on what to do next. */
  hint: string;
  /** Id of the message that the error answers, if it had one. */
  id?: number;
  /** Whether the server closes the socket after this error. */
  fatal: boolean;
};

/** The reason of an `error` message. Stable: clients may branch on it. */
export type ErrorCode = "unsupported_version"
  | "malformed"
  | "unknown_type"
  | "not_joined"
  | "already_joined"
  | "unauthorized"
  | "token_expired"
  | "forbidden"
  | "replaced"
  | "removed"
  | "banned"
  | "revoked"
  | "refused"
  | "locked"
  | "room_full"
  | "server_full"
  | "bad_sdp"
  | "unknown_track"
  | "unknown_participant"
  | "no_identity"
  | "too_many_rules"
  | "no_codec"
  | "too_large"
  | "rate_limited"
  | "no_media"
  | "shutting_down"
  | "internal";

/** STUN and TURN servers for a client, with the lifetime of their credentials. */
export type IceServers = {
  /** The servers; empty where clients need none. */
  servers: Array<IceServer>;
  /** Lifetime of the credentials in seconds from now on; absent where they do not expire. */
  ttl_s?: number;
};

/** A STUN or TURN server, as `RTCPeerConnection` takes it. */
export type IceServer = {
  /** URLs of the server (`turn:…`, `turns:…`, `stun:…`). */
  urls: Array<string>;
  /** User name of the client at the server. */
  username?: string;
  /** Password for the user name. */
  credential?: IceCredential;
};

/** The password of a TURN server. Its `Debug` form hides it, so that it reaches no log. */
export type IceCredential = string;

/** A grant: something that an access token allows. */
export type Grant = "publish"
  | "subscribe"
  | "enhance"
  | "data"
  | "moderate"
  | "admin";

/** Kind of a track. */
export type TrackKind = "audio"
  | "video";

/** The network that a browser runs on every frame of a track. */
export type FrameNetwork = "none"
  | "xxs"
  | "xs"
  | "other";

/** Why a browser runs no network on the frames of a track. */
export type NoNetwork = "off"
  | "slow"
  | "trying"
  | "size"
  | "other";

/** How a viewer's picture of a track is made. */
export type Way = "layer"
  | "filters"
  | "flow"
  | "network"
  | "both";

/** Why a viewer's picture is made in its [`Way`]: without anchors why there are none, with anchors why it needs them. */
export type WayReason = "fills"
  | "unavailable"
  | "limit"
  | "bandwidth"
  | "other_layer"
  | "little_gain"
  | "network_off"
  | "network_slow"
  | "network_trying"
  | "network_size"
  | "gain";

/** One simulcast encoding: quarter, half or full size. Ordered by size. */
export type Layer = "q"
  | "h"
  | "f";

/** What a subscriber can be given: a layer, or a layer plus anchors. Ordered by quality. */
export type Rung = "q"
  | "q+"
  | "h"
  | "h+"
  | "f";

/** A video codec that the SFU forwards. Anchors are made of VP9 alone. */
export type VideoCodec = "vp9"
  | "vp8"
  | "h264"
  | "av1";

/** Why a stream is not enhanced though somebody wants it to be. */
export type Refusal = "promise"
  | "cpu"
  | "memory"
  | "full"
  | "size"
  | "slow"
  | "codec"
  | "encrypted";

/** What a publisher is asked to send as one of its layers. */
export type LayerKnobs = {
  /** Whether the layer is sent at all. */
  active: boolean;
  /** Bitrate of the layer. In messages it is in kbit/s. */
  kbps: number;
  /** Frames per second. */
  fps: number;
  /** Whether a subscriber takes no larger layer, so that this one comes before the larger ones. */
  needed: boolean;
};

/** The quality of a participant's connection, in words. Ordered from the best to the worst. */
export type ConnectionQuality = "good"
  | "fair"
  | "poor"
  | "lost";
