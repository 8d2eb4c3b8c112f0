//! What the server sends.

use serde_json::{Value, json};
use windlass_protocol::{
    ErrorCode, Grant, IceServer, IceServers, Knock, LayerKnobs, OwnTrack, Participant,
    ProtocolError, Rung, ServerMessage, Track, TrackKind, TrackStats, Way, WayReason, Welcome,
};
use windlass_types::{Attributes, Bitrate, ConnectionQuality, Layer, Refusal};

use super::{servers_say, shape};

#[test]
fn the_page_of_the_protocol_has_every_reason_of_a_refusal() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/signaling.md");
    let page = std::fs::read_to_string(page).unwrap();
    let reasons = page.split_once("### Reasons of `refused`").unwrap().1;
    let reasons = reasons.split_once("\n### ").unwrap().0;
    for refusal in Refusal::ALL {
        assert!(reasons.contains(&format!("`{}`", refusal.name())), "{refusal:?}");
    }
}

#[test]
fn ways_and_their_reasons_have_one_name_in_messages_and_metrics() {
    for way in Way::ALL {
        assert_eq!(serde_json::to_value(way).unwrap(), way.name());
    }
    for reason in WayReason::ALL {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
    }
}

/// A track, and its text.
fn track() -> (Track, Value) {
    let track = Track {
        id: "t1".into(),
        participant: "p1".into(),
        kind: TrackKind::Video,
        name: "camera".into(),
        muted: false,
        encrypted: false,
        stream: Some(9),
    };
    let wire = json!({"id": "t1", "participant": "p1", "kind": "video", "name": "camera",
        "muted": false, "stream": 9});
    (track, wire)
}

#[test]
fn what_publishers_are_asked_for_has_the_documented_shapes() {
    servers_say([
        (
            ServerMessage::Knobs {
                track: "t1".into(),
                layers: [(
                    Layer::H,
                    LayerKnobs {
                        active: true,
                        bitrate: Bitrate::kbps(300.0),
                        fps: 15.0,
                        needed: true,
                    },
                )]
                .into(),
            },
            json!({"type": "knobs", "track": "t1",
                "layers": {"h": {"active": true, "kbps": 300.0, "fps": 15.0, "needed": true}}}),
        ),
        (
            ServerMessage::Knobs { track: "t1".into(), layers: [].into() },
            json!({"type": "knobs", "track": "t1"}),
        ),
        (
            ServerMessage::Regions {
                track: "t1".into(),
                id: 7,
                width: 640,
                height: 360,
                scale: 2,
                tiles: "DwAA".into(),
                bytes: 6000,
            },
            json!({"type": "regions", "track": "t1", "id": 7, "width": 640, "height": 360,
                "scale": 2, "tiles": "DwAA", "bytes": 6000}),
        ),
    ]);
}

#[test]
fn moves_to_other_servers_have_the_documented_shapes() {
    servers_say([
        (
            ServerMessage::Moved {
                url: "wss://sfu-2.example.org/ws".into(),
                ticket: None,
                others: Vec::new(),
            },
            json!({"type": "moved", "url": "wss://sfu-2.example.org/ws"}),
        ),
        (
            ServerMessage::Moved {
                url: "wss://sfu-2.example.org/ws".into(),
                ticket: Some("AQAB-_x".into()),
                others: vec!["wss://sfu-3.example.org/ws".into()],
            },
            json!({"type": "moved", "url": "wss://sfu-2.example.org/ws", "ticket": "AQAB-_x",
                "others": ["wss://sfu-3.example.org/ws"]}),
        ),
    ]);
}

#[test]
fn a_welcome_has_the_documented_shape() {
    let (track, track_json) = track();
    servers_say([(
        ServerMessage::Welcome(Welcome {
            version: 1,
            participant: "p2".into(),
            room: "tea".into(),
            loopback: false,
            budget_ms: 200,
            scale: 2,
            lr_pixels: 518_400,
            max_sections: 64,
            participants: vec![Participant {
                id: "p1".into(),
                name: "Ana".into(),
                identity: Some("ana@example.org".into()),
                was: None,
                attributes: [("hand".into(), "up".into())].into(),
            }],
            tracks: vec![track],
            identity: None,
            others: Vec::new(),
            grants: vec![Grant::Publish, Grant::Subscribe],
            locked: false,
            lobby: true,
            recording: true,
            attributes: [("pen".into(), "red".into())].into(),
            seat: Some("p2.17.x".into()),
            ice: IceServers::default(),
        }),
        json!({"type": "welcome", "version": 1, "participant": "p2", "room": "tea",
                "loopback": false, "budget_ms": 200, "scale": 2, "lr_pixels": 518_400, "max_sections": 64,
                "participants": [{"id": "p1", "name": "Ana", "identity": "ana@example.org",
                    "attributes": {"hand": "up"}}],
                "tracks": [track_json], "grants": ["publish", "subscribe"],
                "lobby": true, "recording": true, "attributes": {"pen": "red"}, "seat": "p2.17.x"}),
    )]);
}

#[test]
fn what_a_client_connects_by_has_the_documented_shapes() {
    servers_say([
        (
            ServerMessage::IceServers {
                ice: IceServers {
                    servers: vec![
                        IceServer {
                            urls: vec!["turn:a:3478".into()],
                            username: Some("1600:p1".into()),
                            credential: Some("pw".to_owned().into()),
                        },
                        IceServer { urls: vec!["stun:a".into()], username: None, credential: None },
                    ],
                    ttl_s: Some(600),
                },
            },
            json!({"type": "ice_servers", "ice": {"ttl_s": 600, "servers": [
                {"urls": ["turn:a:3478"], "username": "1600:p1", "credential": "pw"},
                {"urls": ["stun:a"]}]}}),
        ),
        (
            ServerMessage::Answer {
                id: 3,
                sdp: "v=0\r\n".into(),
                tracks: vec![OwnTrack { mid: "0".into(), track: "t1".into() }],
            },
            json!({"type": "answer", "id": 3, "sdp": "v=0\r\n",
                "tracks": [{"mid": "0", "track": "t1"}]}),
        ),
    ]);
}

#[test]
fn news_of_the_room_has_the_documented_shapes() {
    servers_say([
        (ServerMessage::Recording { on: true }, json!({"type": "recording", "on": true})),
        (
            ServerMessage::ParticipantJoined {
                participant: "p1".into(),
                name: "Ana".into(),
                identity: None,
                was: Some("p0".into()),
                attributes: Attributes::new(),
            },
            json!({"type": "participant_joined", "participant": "p1", "name": "Ana", "was": "p0"}),
        ),
        (
            ServerMessage::ParticipantLeft { participant: "p1".into() },
            json!({"type": "participant_left", "participant": "p1"}),
        ),
        (
            ServerMessage::Speaker { participant: "p1".into() },
            json!({"type": "speaker", "participant": "p1"}),
        ),
        (
            ServerMessage::Quality { participant: "p1".into(), quality: ConnectionQuality::Poor },
            json!({"type": "quality", "participant": "p1", "quality": "poor"}),
        ),
    ]);
}

#[test]
fn news_of_tracks_has_the_documented_shapes() {
    let (track, track_json) = track();
    servers_say([
        (ServerMessage::TrackAdded { track }, json!({"type": "track_added", "track": track_json})),
        (
            ServerMessage::TrackRemoved { track: "t1".into() },
            json!({"type": "track_removed", "track": "t1"}),
        ),
        (
            ServerMessage::TrackMuted { track: "t1".into(), muted: true },
            json!({"type": "track_muted", "track": "t1", "muted": true}),
        ),
    ]);
}

#[test]
fn what_viewers_are_told_of_a_track_has_the_documented_shapes() {
    servers_say([
        (
            ServerMessage::Paused { track: "t1".into(), paused: true },
            json!({"type": "paused", "track": "t1", "paused": true}),
        ),
        (
            ServerMessage::Rung {
                track: "t1".into(),
                rung: Rung::QPlus,
                epoch: 4,
                width: 320,
                height: 180,
                scale: 2,
                spatial_layers: 1,
            },
            json!({"type": "rung", "track": "t1", "rung": "q+", "epoch": 4, "width": 320,
                "height": 180, "scale": 2, "spatial_layers": 1}),
        ),
        (
            ServerMessage::Way {
                track: "t1".into(),
                way: Way::Flow,
                reason: WayReason::NetworkSlow,
            },
            json!({"type": "way", "track": "t1", "way": "flow", "reason": "network_slow"}),
        ),
        (
            ServerMessage::Stats {
                tracks: vec![TrackStats {
                    track: "t1".into(),
                    video_bitrate: Bitrate::kbps(150.0),
                    anchor_bitrate: Bitrate::kbps(80.5),
                    anchors_per_s: 5.0,
                    anchors_dropped: 2,
                    refused: Some(Refusal::Promise),
                }],
            },
            json!({"type": "stats", "tracks": [{"track": "t1", "video_kbps": 150.0,
                "anchor_kbps": 80.5, "anchors_per_s": 5.0, "anchors_dropped": 2, "refused": "promise"}]}),
        ),
    ]);
}

#[test]
fn pongs_and_errors_have_the_documented_shapes() {
    servers_say([
        (ServerMessage::Pong { time: 12.5 }, json!({"type": "pong", "time": 12.5})),
        (
            ProtocolError::new(ErrorCode::RoomFull, "the room is full").into(),
            json!({"type": "error", "code": "room_full", "message": "the room is full",
                "hint": ErrorCode::RoomFull.hint(), "fatal": false}),
        ),
    ]);
}

#[test]
fn what_is_told_of_rights_has_the_documented_shapes() {
    let knock = Knock { id: "w1".into(), name: "Cy".into(), identity: None };
    for (message, text) in [
        (ServerMessage::Waiting {}, json!({"type": "waiting"})),
        (
            ServerMessage::Grants { grants: vec![Grant::Subscribe, Grant::Moderate] },
            json!({"type": "grants", "grants": ["subscribe", "moderate"]}),
        ),
        (
            ServerMessage::Entry { locked: true, lobby: false },
            json!({"type": "entry", "locked": true, "lobby": false}),
        ),
        (
            ServerMessage::Lobby { waiting: vec![knock] },
            json!({"type": "lobby", "waiting": [{"id": "w1", "name": "Cy"}]}),
        ),
        (ServerMessage::Done { id: Some(7) }, json!({"type": "done", "id": 7})),
    ] {
        assert_eq!(shape(&message), text);
        assert_eq!(ServerMessage::parse(&text.to_string()).unwrap(), message);
    }
}

#[test]
fn every_error_code_has_a_hint_and_a_name_in_snake_case() {
    for code in ErrorCode::ALL {
        let name = serde_json::to_value(code).unwrap();
        let name = name.as_str().unwrap();
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        assert!(code.hint().ends_with('.'), "{name}");
    }
}
