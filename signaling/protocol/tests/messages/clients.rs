//! What clients send.

use serde_json::{Value, json};
use windlass_protocol::{
    Base64, ClientMessage, ErrorCode, FrameNetwork, Grant, Join, Moderate, NoNetwork, Offer,
    Publish, Report, Request, Rung, SendData, ServerMessage, SetAttributes, SetRung, Subscribe,
    TrackKind, Uplink, View,
};
use windlass_types::{Attributes, Bitrate, DecayReport, Layer, Size, UplinkReport};

use super::{clients_say, parse, shape};

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
                "reconstruct_ms": 4.5, "network": "none", "no_network": "slow", "anchor_decay": {"per_frame": 0.25, "frames": 30.0}}),
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
            anchor_decay: Some(DecayReport { per_frame: 0.25, frames: 30.0 }),
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

#[test]
fn fields_that_a_newer_client_adds_are_ignored() {
    let wire = json!({"type": "leave", "why": "tea is ready", "id": 4});
    let request = parse(&wire).unwrap();
    assert_eq!((request.id, request.message), (Some(4), ClientMessage::Leave {}));
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
