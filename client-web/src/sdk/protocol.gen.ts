// Written by `cargo xtask protocol` from the types of signaling/protocol. Change those, not this.

/** The protocol version that these types are of. */
export const VERSION = 1;

/** What a client may say; `type` in JSON is the variant's name in snake case. */
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
  /** The client's own clock; the server only echoes it. */
  time: number;
};

/** Enter a room. */
export type Join = {
  /** The protocol version that the client speaks. */
  version: number;
  /** The room's name, as in its link. */
  room: string;
  /** The name that the others see. */
  name: string;
  /** A room of one's own, in which one receives one's own tracks as others would. */
  loopback?: boolean;
  /** Names of the anchor codecs that the client can decode; unknown ones are ignored. Without `htj2k` it gets plain rungs. */
  anchor_codecs?: Array<string>;
  /** What lets the client in, on a server with token keys. */
  token?: AccessToken;
  /** What `moved` gave, where a server has sent the client here: the others learn whose place it takes. */
  ticket?: string;
  /** The `seat` of one's last `welcome` to the room: with it one comes back into a locked room, and past the lobby. */
  seat?: string;
  /** What the others are told of this participant: after a lost connection, or at another server, the attributes that it had. Without the grant `data` they are ignored. */
  attributes?: {
    [key in string]: string;
  };
};

/** A WebRTC offer with what its sections mean. */
export type Offer = {
  /** The browser's session description. */
  sdp: string;
  /** The sections that send. */
  publish: Array<Publish>;
  /** The sections that receive. */
  subscribe: Array<Subscribe>;
};

/** A section of an offer that sends a track. */
export type Publish = {
  /** The section's `a=mid`. */
  mid: string;
  /** Whether the section sends audio or video. */
  kind: TrackKind;
  /** What the others see as the track's name, such as `camera`. */
  name: string;
  /** Of video: the largest layer that the client sends where its uplink carries it. */
  max?: Layer;
};

/** A section of an offer that receives a track. */
export type Subscribe = {
  /** The section's `a=mid`. */
  mid: string;
  /** The track that it shall receive. */
  track: string;
  /** The best rung that it may get, from its first packet on; without, what `set_rung` said last. */
  max?: Rung;
};

/** Cap what a participant is given of a track. */
export type SetRung = {
  /** The subscribed track. */
  track: string;
  /** The best rung that it may get. */
  max: Rung;
};

/** How a subscribed track is shown: what is enough for it, and how much it matters beside the others, follows. */
export type View = {
  /** The subscribed track. */
  track: string;
  /** Width of its place on the screen in pixels of the device; 0: it is not seen, and not sent. */
  width: number;
  /** Height of its place on the screen in pixels of the device; 0: it is not seen, and not sent. */
  height: number;
  /** Whether its user wants it above all others. */
  pinned?: boolean;
};

/** What a browser made of a track since its last report. Absent figures are zero. */
export type Report = {
  /** The subscribed track. */
  track: string;
  /** Frames shown each second. */
  shown_fps: number;
  /** Frames shown with detail from anchors each second. */
  enhanced_fps: number;
  /** Anchors used. */
  anchors_used: number;
  /** Of these, anchors that came after their frame was shown. */
  anchors_late: number;
  /** Anchors that began to arrive but could not be used. */
  anchors_lost: number;
  /** Anchors that gave nothing that their frame had not. */
  anchors_duplicate: number;
  /** Anchors that came after one of a newer epoch. */
  anchors_former_epoch: number;
  /** Median time from a frame's arrival at the server to its anchor's use, in ms. */
  latency_p50_ms: number;
  /** 95th percentile of the same, in ms. */
  latency_p95_ms: number;
  /** Mean time to decode a frame, in ms. */
  decode_ms: number;
  /** Mean time to rebuild a frame's HR picture, in ms. */
  reconstruct_ms: number;
  /** The network that runs on every frame. */
  network: FrameNetwork;
  /** Why none runs, where none does. */
  no_network?: NoNetwork;
  /** By how much the picture gets worse with each frame after an anchor, in mean square grey levels of luma. */
  decay?: number;
  /** In how many frames after it that was seen, in the mean. */
  decay_frames?: number;
};

/** What a browser says of the uplink of one's own track. */
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

/** A message to others in the room. Needs the grant `data`. It has `text` or `bytes`. */
export type SendData = {
  /** What it is about: 1 to 64 letters, digits, `-`, `_` and `.`. */
  topic: string;
  /** The message, if it is a text: at most 16 KiB. */
  text?: string;
  /** The message, if it is bytes, in Base64: at most 16 KiB of them. */
  bytes?: string;
  /** Ids of the participants that get it; those that are not in the room are passed over. Absent: all others. */
  to?: Array<string>;
  /** Whether each gets it; without, it is dropped for those to whom more is on its way than they take. */
  reliable?: boolean;
  /** The client's own number for it, which the receivers get. Who sends a message again, as its connection was lost before `done`, gives it the same number, and receivers that have it already drop it. */
  number?: number;
};

/** Change what the others are told of this participant. Needs the grant `data`. */
export type SetAttributes = {
  /** New values by key; `null` removes a key. Others stay as they are. */
  set: {
    [key in string]: string | null;
  };
  /** Its new name, if the access token has none. */
  name?: string;
};

/** What a moderator wants; `action` in JSON is the variant's name in snake case. */
export type Moderate = {
  "action": "grants";
  /** Id of the participant whose grants change. */
  participant: string;
  /** All grants that the participant has from now on. */
  grants: Array<Grant>;
}
  | {
  "action": "lock";
  /** Whether it is locked from now on. */
  locked: boolean;
}
  | {
  "action": "lobby";
  /** Whether there is one from now on. */
  lobby: boolean;
}
  | {
  "action": "admit";
  /** The `id` of who knocked. */
  waiting: string;
}
  | {
  "action": "refuse";
  /** The `id` of who knocked. */
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
  /** How long the ban holds, in seconds; without, for as long as its token, or any other, may live. */
  seconds?: number;
}
  | {
  "action": "unban";
  /** Identity of the ban to end. */
  identity: string;
}
  | {
  "action": "mute";
  /** The track. */
  track: string;
  /** Whether it is muted from now on. */
  muted: boolean;
};

/** A JSON Web Token (RFC 7519) as a client sends it. Its `Debug` form hides it, so that it reaches no log. */
export type AccessToken = string;

/** What the server may say; `type` in JSON is the variant's name in snake case. */
export type ServerMessage = {
  type: "welcome";
} & Welcome
  | {
  type: "moved";
  /** The address of that server's signalling (`wss://…/ws`). */
  url: string;
  /** To be given in `join` there by whoever is in the room: the others learn by it who that was. */
  ticket?: string;
  /** As in `welcome`: other servers of the cluster. */
  others?: Array<string>;
}
  | {
  type: "answer";
  /** The offer's id. */
  id: number;
  /** The server's session description. */
  sdp: string;
  /** The client's own tracks. */
  tracks: Array<OwnTrack>;
}
  | {
  type: "participant_joined";
  /** Id of the participant who has come. */
  participant: string;
  /** The name to show. */
  name: string;
  /** Who that is by the access token, where one was needed. */
  identity?: string;
  /** Its id at the server that its room was on before, where it has just come from there: it takes that participant's place. */
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
  /** The name to show from now on. */
  name: string;
  /** All attributes from now on. */
  attributes?: {
    [key in string]: string;
  };
}
  | {
  type: "data";
  /** Id of the participant who sent it. */
  from: string;
  /** Its number: each message of its sender has a larger one than those before. A client that is at two servers for a while, as it moves, gets each message at both. */
  seq: number;
  /** The sender's own number for it, if it gave one: the same where it sends a message again, also after it has come back with another id (`was`). */
  number?: number;
  /** The message's topic. */
  topic: string;
  /** The message, if it is a text. */
  text?: string;
  /** The message, if it is bytes, in Base64. */
  bytes?: string;
}
  | {
  type: "participant_left";
  /** Id of the participant who has gone. */
  participant: string;
}
  | {
  type: "track_added";
  /** The track. */
  track: Track;
}
  | {
  type: "track_removed";
  /** Its id. */
  track: string;
}
  | {
  type: "track_muted";
  /** Its id. */
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
  /** Whose. */
  participant: string;
  /** From now on. */
  quality: ConnectionQuality;
}
  | {
  type: "rung";
  /** The subscribed track. */
  track: string;
  /** The rung that the client is given. */
  rung: Rung;
  /** The epoch that begins; anchors of others do not fit its frames. */
  epoch: number;
  /** Width of the layer in pixels; zero while unknown. */
  width: number;
  /** Height of the layer in pixels; zero while unknown. */
  height: number;
  /** HR size / LR size, where the rung is enhanced. */
  scale: number;
}
  | {
  type: "way";
  /** The subscribed track. */
  track: string;
  /** How it is made. */
  way: Way;
  /** Why in that way. */
  reason: WayReason;
}
  | {
  type: "knobs";
  /** The client's own track. */
  track: string;
  /** Layers, by name; those that are not named stay as they are. */
  layers?: {
    [key in Layer]?: LayerKnobs;
  };
}
  | {
  type: "regions";
  /** The client's own track. */
  track: string;
  /** Names the request in the answer. */
  id: number;
  /** Width of the low layer in pixels. */
  width: number;
  /** Height of the low layer in pixels. */
  height: number;
  /** Size of the answer's picture over that. */
  scale: number;
  /** The bits of the tile map (64×64 pixels of the low layer each, row by row, the lowest bit first) in Base64. */
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
  /** What one may do from now on. */
  grants: Array<Grant>;
}
  | {
  type: "door";
  /** Whether nobody new may. */
  locked: boolean;
  /** Whether whoever comes waits until a moderator admits them. */
  lobby: boolean;
}
  | {
  type: "recording";
  /** Whether it is recorded now. */
  on: boolean;
}
  | {
  type: "lobby";
  /** All of them, who came first at first. */
  waiting: Array<Knock>;
}
  | {
  type: "done";
  /** The message's id, where it had one. */
  id?: number;
}
  | {
  type: "ice_servers";
  /** What helps from now on. */
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

/** The client is in the room. */
export type Welcome = {
  /** The protocol version that the server speaks. */
  version: number;
  /** The client's own id. */
  participant: string;
  /** The room. */
  room: string;
  /** Whether it is a room of one's own. */
  loopback: boolean;
  /** The operator's latency budget for anchors, in ms. */
  budget_ms: number;
  /** The least HR size / LR size of enhanced rungs: `rung` says that of each track. */
  scale: number;
  /** Maximum pixels of a layer that is enhanced, in either orientation: larger pictures need not be rebuilt. */
  lr_pixels: number;
  /** Maximum number of sections that send or receive media in an offer of the client. */
  max_sections: number;
  /** Who else is here. */
  participants: Array<Participant>;
  /** What can be subscribed to. */
  tracks: Array<Track>;
  /** The client's own identity by its access token, where one was needed. */
  identity?: string;
  /** What the client may do. */
  grants: Array<Grant>;
  /** Whether nobody new may come in. */
  locked?: boolean;
  /** Whether whoever comes waits until a moderator admits them. */
  lobby?: boolean;
  /** Whether the room is recorded. */
  recording?: boolean;
  /** The client's own attributes, which it had in `join`. */
  attributes?: {
    [key in string]: string;
  };
  /** By which the client comes back into a locked room, and past the lobby: a secret of its own. */
  seat?: string;
  /** Servers that help the client to reach this one. */
  ice?: IceServers;
  /** Signalling addresses of other servers of the cluster, for when this one is lost; the best first. */
  others?: Array<string>;
};

/** Someone in the room. */
export type Participant = {
  /** The participant's id. */
  id: string;
  /** The name to show. */
  name: string;
  /** Who that is by the access token, where one was needed. */
  identity?: string;
  /** Its id at the server that its room was on before, where it has just come from there: it takes that participant's place. */
  was?: string;
  /** The attributes that the participant tells the others. */
  attributes?: {
    [key in string]: string;
  };
};

/** Somebody who waits in the lobby. */
export type Knock = {
  /** By which it is admitted or refused; it is no participant's. */
  id: string;
  /** The name to show. */
  name: string;
  /** Who that is by the access token, where one was needed. */
  identity?: string;
};

/** A published track. */
export type Track = {
  /** The track's id, unique on the server. */
  id: string;
  /** Id of the participant who publishes the track. */
  participant: string;
  /** Audio or video. */
  kind: TrackKind;
  /** The publisher's name for it, such as `camera`. */
  name: string;
  /** Whether its owner muted it. */
  muted: boolean;
  /** The `stream` of the anchor messages; only of video. */
  stream?: number;
};

/** A track that the client publishes. */
export type OwnTrack = {
  /** The `a=mid` of the section that sends it. */
  mid: string;
  /** The id by which `mute`, and the others, know it. */
  track: string;
};

/** What was sent of one track in the last second. */
export type TrackStats = {
  /** The subscribed track. */
  track: string;
  /** Video in kbit/s. */
  video_kbps: number;
  /** Anchors in kbit/s. */
  anchor_kbps: number;
  /** Anchors each second. */
  anchors_per_s: number;
  /** Anchors dropped since the subscription began, for being late or for want of room. */
  anchors_dropped: number;
  /** Why no anchors are made of the track though this client could have them. */
  refused?: Refusal;
};

/** Something could not be done. */
export type Error = {
  /** The reason, for programs. */
  code: ErrorCode;
  /** What happened, for people. */
  message: string;
  /** What to do next, for people. */
  hint: string;
  /** The id of the message that this answers, where it had one. */
  id?: number;
  /** Whether the server closes the socket after this. */
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

/** All of them, with how long what they need is good. */
export type IceServers = {
  /** The servers; none where clients need none. */
  servers: Array<IceServer>;
  /** For how many seconds from now on their names and passwords are good; absent where they stay so. */
  ttl_s?: number;
};

/** A STUN or TURN server, as `RTCPeerConnection` takes it. */
export type IceServer = {
  /** Its addresses (`turn:…`, `turns:…`, `stun:…`). */
  urls: Array<string>;
  /** The name by which the client may use it. */
  username?: string;
  /** The password that belongs to it. */
  credential?: IceCredential;
};

/** The password of a TURN server. Its `Debug` form hides it, so that it reaches no log. */
export type IceCredential = string;

/** Something that an access token allows. */
export type Grant = "publish"
  | "subscribe"
  | "enhance"
  | "data"
  | "moderate"
  | "admin";

/** Audio or video. */
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

/** Why a stream is not enhanced though somebody wants it to be. */
export type Refusal = "promise"
  | "processor"
  | "memory"
  | "full"
  | "size"
  | "slow";

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
