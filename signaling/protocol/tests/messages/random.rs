//! Random messages and random texts.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_protocol::{
    Base64, ClientMessage, Join, Offer, Publish, Report, Request, Rung, SendData, ServerMessage,
    SetAttributes, SetRung, Subscribe, TrackKind,
};
use windlass_types::Attributes;

use super::parse;

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
