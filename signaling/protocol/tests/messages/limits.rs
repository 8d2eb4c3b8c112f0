//! Texts that are refused: malformed, unknown, or too large.

use serde_json::{Value, json};
use windlass_protocol::{AccessToken, Base64, ClientMessage, ErrorCode, Join, Request, limits};
use windlass_types::Attributes;

use super::{code, parse};

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
fn an_offer_for_camera_and_microphone_of_thirty_one_others_is_within_them() {
    // What Chromium writes with all of its codecs: 187 kB, in lines of 40 bytes.
    let sdp = format!("v=0\r\n{}", "a=fmtp:100 level-asymmetry-allowed=1;x\r\n".repeat(4_690));
    let subscribe: Vec<Value> =
        (0..62).map(|i| json!({"mid": i.to_string(), "track": "t".repeat(20)})).collect();
    let offer =
        json!({"type": "offer", "id": 1, "sdp": sdp, "publish": [], "subscribe": subscribe});
    assert!(sdp.len() > 187_000 && parse(&offer).is_ok());
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
