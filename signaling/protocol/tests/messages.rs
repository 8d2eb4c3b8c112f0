//! The shapes of the messages on the wire, and what becomes of texts that have none of them.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_protocol::{
    AccessToken, Base64, ClientMessage, ErrorCode, FrameNetwork, Grant, IceServer, IceServers,
    Join, Knock, LayerKnobs, Moderate, NoNetwork, Offer, OwnTrack, Participant, ProtocolError,
    Publish, Report, Request, Rung, SendData, ServerMessage, SetAttributes, SetRung, Subscribe,
    Track, TrackKind, TrackStats, Uplink, View, Way, WayReason, Welcome, limits,
};
use windlass_types::{Attributes, Bitrate, ConnectionQuality, Layer, Refusal, Size, UplinkReport};

fn shape(message: &ServerMessage) -> Value {
    serde_json::from_str(&message.to_json()).unwrap()
}

fn code(text: &str) -> ErrorCode {
    Request::parse(text).unwrap_err().code
}

fn parse(value: &Value) -> Result<Request, ProtocolError> {
    Request::parse(&value.to_string())
}

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

/// Checks that clients' messages are read from these texts, and written as them.
fn clients_say(cases: impl IntoIterator<Item = (Value, Option<u32>, ClientMessage)>) {
    for (wire, id, message) in cases {
        let request = Request { id, message };
        assert_eq!(parse(&wire).as_ref(), Ok(&request), "{wire}");
        let written: Value = serde_json::from_str(&request.to_json()).unwrap();
        assert_eq!(written, wire);
    }
}

#[test]
fn joins_have_the_documented_shapes() {
    clients_say([
        (
            json!({"type": "join", "version": 1, "room": "tea-room", "name": "Ana"}),
            None,
            ClientMessage::Join(Join {
                version: 1,
                room: "tea-room".into(),
                name: "Ana".into(),
                loopback: false,
                anchor_codecs: None,
                token: None,
                ticket: None,
                seat: None,
                attributes: Attributes::new(),
            }),
        ),
        (
            json!({"type": "join", "version": 1, "room": "tea-room", "name": "Bo",
                "anchor_codecs": ["jpeg", "htj2k"], "ticket": "AQAB-_x", "seat": "p1.17.x",
                "attributes": {"hand": "up"}}),
            None,
            ClientMessage::Join(Join {
                version: 1,
                room: "tea-room".into(),
                name: "Bo".into(),
                loopback: false,
                anchor_codecs: Some(vec!["jpeg".into(), "htj2k".into()]),
                token: None,
                ticket: Some("AQAB-_x".into()),
                seat: Some("p1.17.x".into()),
                attributes: [("hand".into(), "up".into())].into(),
            }),
        ),
    ]);
}

#[test]
fn offers_have_the_documented_shape() {
    clients_say([(
        json!({"type": "offer", "id": 3, "sdp": "v=0\r\n",
                "publish": [{"mid": "0", "kind": "video", "name": "camera", "max": "h"}],
                "subscribe": [{"mid": "1", "track": "t1", "max": "q+"}, {"mid": "2", "track": "t2"}]}),
        Some(3),
        ClientMessage::Offer(Offer {
            sdp: "v=0\r\n".into(),
            publish: vec![Publish {
                mid: "0".into(),
                kind: TrackKind::Video,
                name: "camera".into(),
                max: Some(Layer::H),
                encrypted: false,
                backup_of: None,
            }],
            subscribe: vec![
                Subscribe { mid: "1".into(), track: "t1".into(), max: Some(Rung::QPlus) },
                Subscribe { mid: "2".into(), track: "t2".into(), max: None },
            ],
        }),
    )]);
}

#[test]
fn what_viewers_ask_of_a_track_has_the_documented_shapes() {
    clients_say([
        (
            json!({"type": "set_rung", "track": "t1", "max": "h+"}),
            None,
            ClientMessage::SetRung(SetRung { track: "t1".into(), max: Rung::HPlus }),
        ),
        (
            json!({"type": "view", "track": "t1", "width": 640, "height": 360}),
            None,
            ClientMessage::View(View {
                track: "t1".into(),
                width: 640,
                height: 360,
                pinned: false,
            }),
        ),
        (
            json!({"type": "view", "track": "t1", "width": 0, "height": 0, "pinned": true}),
            None,
            ClientMessage::View(View { track: "t1".into(), width: 0, height: 0, pinned: true }),
        ),
        (
            json!({"type": "key_anchor", "track": "t1"}),
            None,
            ClientMessage::KeyAnchor { track: "t1".into() },
        ),
    ]);
}

#[test]
fn what_publishers_say_of_a_track_has_the_documented_shapes() {
    clients_say([
        (
            json!({"type": "uplink", "track": "t1", "kbps": 410.5, "width": 1280, "height": 720, "fps": 30.0}),
            None,
            ClientMessage::Uplink(Uplink {
                track: "t1".into(),
                report: UplinkReport {
                    bitrate: Bitrate::kbps(410.5),
                    size: Size::new(1280, 720),
                    fps: 30.0,
                },
            }),
        ),
        (
            json!({"type": "mute", "track": "t1", "muted": true}),
            None,
            ClientMessage::Mute { track: "t1".into(), muted: true },
        ),
    ]);
}

#[test]
fn reports_have_the_documented_shape() {
    clients_say([(
        json!({"type": "report", "track": "t1", "shown_fps": 30.0, "enhanced_fps": 28.5,
                "anchors_used": 5, "anchors_late": 1, "anchors_lost": 0,
                "anchors_duplicate": 2, "anchors_former_epoch": 3,
                "latency_p50_ms": 120.0, "latency_p95_ms": 180.0, "decode_ms": 2.5,
                "reconstruct_ms": 4.5, "network": "none", "no_network": "slow", "decay": 0.25, "decay_frames": 30.0}),
        None,
        ClientMessage::Report(Report {
            track: "t1".into(),
            shown_fps: 30.0,
            enhanced_fps: 28.5,
            anchors_used: 5,
            anchors_late: 1,
            anchors_lost: 0,
            anchors_duplicate: 2,
            anchors_former_epoch: 3,
            latency_p50_ms: 120.0,
            latency_p95_ms: 180.0,
            decode_ms: 2.5,
            reconstruct_ms: 4.5,
            network: FrameNetwork::None,
            no_network: Some(NoNetwork::Slow),
            decay: Some(0.25),
            decay_frames: Some(30.0),
        }),
    )]);
}

#[test]
fn messages_without_a_track_have_the_documented_shapes() {
    clients_say([
        (json!({"type": "ice_servers"}), None, ClientMessage::IceServers {}),
        (json!({"type": "leave"}), None, ClientMessage::Leave {}),
        (json!({"type": "ping", "time": 12.5}), None, ClientMessage::Ping { time: 12.5 }),
    ]);
}

#[test]
fn a_report_of_another_clients_network_is_taken() {
    let network = |said: Value, why: Value| {
        let wire = json!({"type": "report", "track": "t1", "network": said, "no_network": why});
        match parse(&wire) {
            Ok(Request { message: ClientMessage::Report(report), .. }) => {
                (report.network, report.no_network)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(network(json!("xxl"), json!(null)), (FrameNetwork::Other, None));
    assert_eq!(network(json!("none"), json!("hot")), (FrameNetwork::None, Some(NoNetwork::Other)));
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

#[test]
fn a_client_decodes_anchors_if_it_names_their_codec_and_unknown_names_are_ignored() {
    let join = |codecs: Value| {
        let mut wire = json!({"type": "join", "version": 1, "room": "a", "name": "b"});
        wire["anchor_codecs"] = codecs;
        parse(&wire).map(|request| match request.message {
            ClientMessage::Join(join) => join.decodes_anchors(),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(join(Value::Null), Ok(false));
    assert_eq!(join(json!(["jpeg", "htj2k", "av9000"])), Ok(true));
    assert_eq!(join(json!(["jpeg"])), Ok(false));
    assert_eq!(join(json!([])), Ok(false));
    for wrong in [json!("jpeg"), json!([1]), json!([""]), json!(vec!["x"; 17]), json!(["a b"])] {
        assert!(join(wrong.clone()).is_err(), "{wrong}");
    }
}

/// Checks that the server's messages are written as these texts, and read from them.
fn servers_say(cases: impl IntoIterator<Item = (ServerMessage, Value)>) {
    for (message, wire) in cases {
        assert_eq!(shape(&message), wire);
        assert_eq!(ServerMessage::parse(&wire.to_string()).unwrap(), message);
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
            },
            json!({"type": "rung", "track": "t1", "rung": "q+", "epoch": 4, "width": 320,
                "height": 180, "scale": 2}),
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
fn fields_that_a_newer_client_adds_are_ignored() {
    let wire = json!({"type": "leave", "why": "tea is ready", "id": 4});
    let request = parse(&wire).unwrap();
    assert_eq!((request.id, request.message), (Some(4), ClientMessage::Leave {}));
}

#[test]
fn texts_that_are_no_message_are_malformed() {
    for text in [
        "",
        "{",
        "null",
        "[]",
        "3",
        "\"join\"",
        "{}",
        r#"{"type":3}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"ping","time":"noon"}"#,
        r#"{"type":"ping","time":1,"id":-1}"#,
        r#"{"type":"ping","time":1,"id":"x"}"#,
        r#"{"type":"set_rung","track":"t","max":"z"}"#,
        r#"{"type":"offer","sdp":"v=0"}"#,
        r#"{"type":"view","track":"t","width":-1,"height":1}"#,
    ] {
        assert_eq!(code(text), ErrorCode::Malformed, "{text}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(code(&deep), ErrorCode::Malformed);
}

#[test]
fn an_unknown_type_is_told_apart_from_a_malformed_message_and_keeps_its_id() {
    let error = parse(&json!({"type": "fly", "id": 7})).unwrap_err();
    assert_eq!((error.code, error.id), (ErrorCode::UnknownType, Some(7)));
}

#[test]
fn another_version_is_refused_before_the_other_fields_are_read() {
    let wire = json!({"type": "join", "version": 2, "lobby": "changed"});
    assert_eq!(parse(&wire).unwrap_err().code, ErrorCode::UnsupportedVersion);
    let wire = json!({"type": "join", "room": "a", "name": "b"});
    assert_eq!(parse(&wire).unwrap_err().code, ErrorCode::Malformed);
}

#[test]
fn names_and_rooms_are_held_to_their_limits() {
    let join = |room: &str, name: &str| {
        parse(&json!({"type": "join", "version": 1, "room": room, "name": name})).map(|_| ())
    };
    let refused = |room: &str, name: &str| join(room, name).unwrap_err().code;
    assert!(join(&"r".repeat(limits::ROOM_CHARS), &"ä".repeat(limits::NAME_CHARS)).is_ok());
    assert_eq!(refused(&"r".repeat(limits::ROOM_CHARS + 1), "Ana"), ErrorCode::TooLarge);
    assert_eq!(refused("r", &"ä".repeat(limits::NAME_CHARS + 1)), ErrorCode::TooLarge);
    for room in ["", "a b", "a/b", "ä", "<b>"] {
        assert_eq!(refused(room, "Ana"), ErrorCode::Malformed, "{room}");
    }
    for name in ["", "  ", "a\nb", "a\u{202e}b", "a\u{2060}b", "a\u{200d}b", "\u{e0041}a"] {
        assert_eq!(refused("r", name), ErrorCode::Malformed, "{name:?}");
    }
}

#[test]
fn offers_are_held_to_their_limits() {
    let offer = |sdp: &str, publish: Value, subscribe: Value| {
        parse(&json!({"type": "offer", "id": 1, "sdp": sdp, "publish": publish,
            "subscribe": subscribe}))
        .unwrap_err()
    };
    let long = offer(&"v".repeat(limits::SDP_BYTES + 1), json!([]), json!([]));
    assert_eq!((long.code, long.id), (ErrorCode::TooLarge, Some(1)));
    let many: Vec<Value> = (0..=limits::SUBSCRIBED_TRACKS)
        .map(|i| json!({"mid": i.to_string(), "track": "t"}))
        .collect();
    assert_eq!(offer("v=0", json!([]), json!(many)).code, ErrorCode::TooLarge);
    let twice = offer(
        "v=0",
        json!([{"mid": "0", "kind": "audio", "name": "mic"}]),
        json!([{"mid": "0", "track": "t"}]),
    );
    assert_eq!(twice.code, ErrorCode::Malformed);
    let message = "x".repeat(limits::MESSAGE_BYTES + 1);
    assert_eq!(code(&message), ErrorCode::TooLarge);
}

#[test]
fn what_moderators_say_has_the_documented_shapes_and_limits() {
    let said = [
        (
            json!({"action": "grants", "participant": "p7", "grants": ["subscribe"]}),
            Moderate::Grants { participant: "p7".into(), grants: vec![Grant::Subscribe] },
        ),
        (json!({"action": "lock", "locked": true}), Moderate::Lock { locked: true }),
        (json!({"action": "lobby", "lobby": false}), Moderate::Lobby { lobby: false }),
        (json!({"action": "admit", "waiting": "w1"}), Moderate::Admit { waiting: "w1".into() }),
        (json!({"action": "refuse", "waiting": "w1"}), Moderate::Refuse { waiting: "w1".into() }),
        (
            json!({"action": "remove", "participant": "p7"}),
            Moderate::Remove { participant: "p7".into() },
        ),
        (
            json!({"action": "ban", "participant": "p7"}),
            Moderate::Ban { participant: "p7".into(), seconds: None },
        ),
        (json!({"action": "unban", "identity": "ana"}), Moderate::Unban { identity: "ana".into() }),
        (
            json!({"action": "mute", "track": "t4", "muted": true}),
            Moderate::Mute { track: "t4".into(), muted: true },
        ),
    ];
    for (mut text, order) in said {
        text["type"] = json!("moderate");
        text["id"] = json!(7);
        let request = Request { id: Some(7), message: ClientMessage::Moderate(order) };
        assert_eq!(parse(&text), Ok(request.clone()));
        assert_eq!(serde_json::from_str::<Value>(&request.to_json()).unwrap(), text);
    }
    let bad = |mut text: Value| {
        text["type"] = json!("moderate");
        parse(&text).unwrap_err().code
    };
    assert_eq!(bad(json!({"action": "fly"})), ErrorCode::Malformed);
    assert_eq!(bad(json!({"action": "remove", "participant": "a b"})), ErrorCode::Malformed);
    assert_eq!(bad(json!({"action": "unban", "identity": "x".repeat(129)})), ErrorCode::Malformed);
    let many = json!({"action": "grants", "participant": "p7", "grants": vec!["publish"; 7]});
    assert_eq!(bad(many), ErrorCode::TooLarge);
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
fn what_participants_send_each_other_has_the_documented_shapes() {
    let send = SendData {
        topic: "chat".into(),
        text: Some("Tea?".into()),
        bytes: None,
        to: None,
        reliable: true,
        number: None,
    };
    let bytes = Some(Base64(vec![0, 1, 255]));
    let some = SendData {
        text: None,
        bytes: bytes.clone(),
        to: Some(vec!["p7".into()]),
        reliable: false,
        number: Some(4),
        ..send.clone()
    };
    let set = [("hand".to_owned(), Some("up".to_owned())), ("pen".to_owned(), None)].into();
    let change = SetAttributes { set, name: Some("Anna".into()) };
    for (message, wire) in [
        (
            ClientMessage::Send(send.clone()),
            json!({"type": "send", "topic": "chat", "text": "Tea?"}),
        ),
        (
            ClientMessage::Send(some),
            json!({"type": "send", "topic": "chat", "bytes": "AAH/", "to": ["p7"],
                "reliable": false, "number": 4}),
        ),
        (
            ClientMessage::Attributes(change),
            json!({"type": "attributes", "set": {"hand": "up", "pen": null}, "name": "Anna"}),
        ),
    ] {
        assert_eq!(serde_json::to_value(&message).unwrap(), wire);
        assert_eq!(parse(&wire).unwrap().message, message);
    }
    let given = json!({"type": "send", "topic": "chat", "text": "Tea?", "reliable": true});
    assert_eq!(parse(&given).unwrap().message, ClientMessage::Send(send));
    let (from, topic) = ("p1".to_owned(), "chat".to_owned());
    let attributes: Attributes = [("hand".into(), "up".into())].into();
    for (message, wire) in [
        (
            ServerMessage::Data {
                from: from.clone(),
                seq: 1,
                number: None,
                topic: topic.clone(),
                text: Some("Tea?".into()),
                bytes: None,
            },
            json!({"type": "data", "from": "p1", "seq": 1, "topic": "chat", "text": "Tea?"}),
        ),
        (
            ServerMessage::Data { from, seq: 2, number: Some(4), topic, text: None, bytes },
            json!({"type": "data", "from": "p1", "seq": 2, "number": 4, "topic": "chat",
                "bytes": "AAH/"}),
        ),
        (
            ServerMessage::ParticipantChanged {
                participant: "p1".into(),
                name: "Ana".into(),
                attributes,
            },
            json!({"type": "participant_changed", "participant": "p1", "name": "Ana",
                "attributes": {"hand": "up"}}),
        ),
    ] {
        assert_eq!(shape(&message), wire);
        assert_eq!(ServerMessage::parse(&wire.to_string()).unwrap(), message);
    }
}

#[test]
fn what_participants_send_each_other_is_held_to_its_limits() {
    let send = |mut fields: Value| {
        fields["type"] = json!("send");
        parse(&fields).map(|_| ()).map_err(|error| error.code)
    };
    let base64 = |bytes: usize| serde_json::to_value(Base64(vec![7; bytes])).unwrap();
    let max = windlass_types::data::MAX_CONTENT;
    assert_eq!(send(json!({"topic": "t", "bytes": base64(max)})), Ok(()));
    assert_eq!(send(json!({"topic": "t".repeat(64), "text": "x".repeat(max)})), Ok(()));
    assert_eq!(send(json!({"topic": "t", "text": "", "to": vec!["p1"; 100]})), Ok(()));
    for (fields, code) in [
        (json!({"topic": "t", "bytes": base64(max + 1)}), ErrorCode::TooLarge),
        (json!({"topic": "t", "text": "x".repeat(max + 1)}), ErrorCode::TooLarge),
        (json!({"topic": "t".repeat(65), "text": ""}), ErrorCode::TooLarge),
        (json!({"topic": "t", "text": "", "to": vec!["p1"; 101]}), ErrorCode::TooLarge),
        (json!({"topic": "", "text": ""}), ErrorCode::Malformed),
        (json!({"topic": "a b", "text": ""}), ErrorCode::Malformed),
        (json!({"text": ""}), ErrorCode::Malformed),
        (json!({"topic": "t"}), ErrorCode::Malformed),
        (json!({"topic": "t", "text": "", "bytes": ""}), ErrorCode::Malformed),
        (json!({"topic": "t", "bytes": "AAH"}), ErrorCode::Malformed),
        (json!({"topic": "t", "bytes": "AA-_"}), ErrorCode::Malformed),
        (json!({"topic": "t", "bytes": "AAF="}), ErrorCode::Malformed),
        (json!({"topic": "t", "bytes": [1, 2]}), ErrorCode::Malformed),
        (json!({"topic": "t", "text": "", "to": "p1"}), ErrorCode::Malformed),
        (json!({"topic": "t", "text": "", "to": ["p 1"]}), ErrorCode::Malformed),
    ] {
        assert_eq!(send(fields.clone()), Err(code), "{fields}");
    }
}

#[test]
fn attributes_are_held_to_their_limits() {
    let change = |set: Value| parse(&json!({"type": "attributes", "set": set}));
    for (set, code) in [
        (json!({"": "x"}), ErrorCode::Malformed),
        (json!({"a b": "x"}), ErrorCode::Malformed),
        (json!({"a": 1}), ErrorCode::Malformed),
        (json!([]), ErrorCode::Malformed),
        (json!({"k".repeat(65): "x"}), ErrorCode::TooLarge),
        (json!({"a": "x".repeat(257)}), ErrorCode::TooLarge),
    ] {
        assert_eq!(change(set.clone()).unwrap_err().code, code, "{set}");
    }
    let renamed = parse(&json!({"type": "attributes", "name": "a\u{202e}b"}));
    assert_eq!(renamed.unwrap_err().code, ErrorCode::Malformed);
    let apply = |set: Value, former: &Attributes| {
        let Ok(ClientMessage::Attributes(change)) = change(set).map(|request| request.message)
        else {
            panic!("no change");
        };
        change.apply(former).map_err(|error| error.code)
    };
    let full: Attributes = (0..16).map(|n| (format!("k{n}"), "x".repeat(10))).collect();
    assert_eq!(apply(json!({"more": "x"}), &full), Err(ErrorCode::TooLarge));
    let after = apply(json!({"more": "x", "k0": null, "k1": "y", "gone": null}), &full).unwrap();
    assert_eq!((after.len(), after["k1"].as_str(), after["more"].as_str()), (16, "y", "x"));
    assert!(!after.contains_key("k0"));
    let large: Attributes = (0..15).map(|n| (format!("k{n}"), "x".repeat(256))).collect();
    assert_eq!(apply(json!({"more": "x".repeat(256)}), &large), Err(ErrorCode::TooLarge));
    let join = json!({"type": "join", "version": 1, "room": "tea", "name": "Ana",
        "attributes": {"a": "x".repeat(257)}});
    assert_eq!(parse(&join).unwrap_err().code, ErrorCode::TooLarge);
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

#[test]
fn a_token_comes_with_a_join_and_has_a_bound() {
    let join = |token: String| {
        parse(&json!({"type": "join", "version": 1, "room": "tea", "name": "Ana", "token": token}))
    };
    let Ok(Request { message: ClientMessage::Join(Join { token, .. }), .. }) = join("a.b.c".into())
    else {
        panic!("no join");
    };
    assert_eq!(token, Some(AccessToken::from("a.b.c".to_owned())));
    let error = join("x".repeat(limits::TOKEN_BYTES + 1)).unwrap_err();
    assert_eq!(error.code, ErrorCode::TooLarge);
}

fn token() -> impl Strategy<Value = String> {
    "[A-Za-z0-9._-]{1,16}"
}

fn rung() -> impl Strategy<Value = Rung> {
    prop::sample::select(vec![Rung::Q, Rung::QPlus, Rung::H, Rung::HPlus, Rung::F])
}

fn message() -> impl Strategy<Value = ClientMessage> {
    prop_oneof![
        (token(), "[a-zA-Zäß ]{0,30}[a-z]", any::<bool>()).prop_map(|(room, name, loopback)| {
            ClientMessage::Join(Join {
                version: 1,
                room,
                name,
                loopback,
                anchor_codecs: None,
                token: None,
                ticket: None,
                seat: None,
                attributes: Attributes::new(),
            })
        }),
        (any::<String>(), token(), token()).prop_map(|(sdp, a, b)| {
            ClientMessage::Offer(Offer {
                sdp,
                publish: vec![Publish {
                    mid: "p".into(),
                    kind: TrackKind::Audio,
                    name: a,
                    max: None,
                    encrypted: false,
                    backup_of: None,
                }],
                subscribe: vec![Subscribe { mid: "s".into(), track: b, max: None }],
            })
        }),
        (token(), rung()).prop_map(|(track, max)| ClientMessage::SetRung(SetRung { track, max })),
        (token(), any::<bool>()).prop_map(|(track, muted)| ClientMessage::Mute { track, muted }),
        (token(), 0.0..240.0f64, any::<u32>()).prop_map(|(track, shown_fps, anchors_used)| {
            ClientMessage::Report(Report { track, shown_fps, anchors_used, ..Report::default() })
        }),
        (token(), any::<String>(), any::<bool>()).prop_map(|(topic, text, reliable)| {
            ClientMessage::Send(SendData {
                topic,
                text: Some(text),
                bytes: None,
                to: None,
                reliable,
                number: None,
            })
        }),
        (token(), any::<Vec<u8>>(), prop::collection::vec(token(), 0..4), any::<u32>()).prop_map(
            |(topic, bytes, to, number)| {
                ClientMessage::Send(SendData {
                    topic,
                    text: None,
                    bytes: Some(Base64(bytes)),
                    to: Some(to),
                    reliable: true,
                    number: Some(number),
                })
            }
        ),
        prop::collection::btree_map(token(), any::<Option<char>>(), 0..9).prop_map(|set| {
            let set = set.into_iter().map(|(key, value)| (key, value.map(String::from)));
            ClientMessage::Attributes(SetAttributes { set: set.collect(), name: None })
        }),
        Just(ClientMessage::IceServers {}),
        Just(ClientMessage::Leave {}),
        (-1e12..1e12f64).prop_map(|time| ClientMessage::Ping { time }),
    ]
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = Request::parse(&text);
        let _ = ServerMessage::parse(&text);
    }

    #[test]
    fn arbitrary_fields_of_known_types_never_panic(
        kind in prop::sample::select(vec!["join", "offer", "set_rung", "mute", "report", "send",
            "attributes", "leave", "ping"]),
        field in "version|room|name|sdp|publish|subscribe|track|max|muted|time|id|topic|text|bytes|to|set|attributes",
        text in any::<String>(),
        number in any::<f64>(),
    ) {
        for value in [json!(text), json!(number), json!([text]), json!({"mid": number})] {
            let mut message = serde_json::Map::new();
            message.insert(field.clone(), value);
            message.insert("type".to_owned(), json!(kind));
            let _ = parse(&Value::Object(message));
        }
    }

    #[test]
    fn what_is_written_is_read_back(id in any::<u32>(), message in message()) {
        let request = Request { id: Some(id), message };
        // Floats of random bits may lose their last digit on the way through text.
        let read = Request::parse(&request.to_json()).unwrap();
        prop_assert_eq!(read.to_json(), Request::parse(&read.to_json()).unwrap().to_json());
        if !matches!(request.message, ClientMessage::Ping { .. } | ClientMessage::Report(_)) {
            prop_assert_eq!(read, request);
        }
    }
}
