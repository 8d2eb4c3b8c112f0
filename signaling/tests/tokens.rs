//! Access tokens over a real socket: who gets in, what they may do.

mod common;

use serde_json::json;
use windlass_protocol::Grant;

use common::tokens::{NEW, OLD, STRANGER, config, guest, join, token};
use common::{Client, get, http, post, start};
use windlass_signaling::{AdmissionLimits, SignalingConfig};

#[tokio::test]
async fn only_a_good_token_for_the_room_lets_anybody_in() {
    let server = start(config()).await;
    let mut client = Client::open(&server).await;
    client.say(&json!({"type": "join", "version": 1, "room": "tea", "name": "Ana"})).await;
    assert_eq!(client.hear_error().await, "unauthorized");
    let all = Grant::PARTICIPANT;
    for (token, code) in [
        ("eyJhbGciOiJub25lIn0.eyJyb29tIjoidGVhIn0.".to_owned(), "unauthorized"),
        (token(STRANGER, "tea", "ana", &all, 60.0), "unauthorized"),
        (token(OLD, "tea", "ana", &all, -60.0), "token_expired"),
        (token(OLD, "coffee", "ana", &all, 60.0), "forbidden"),
        ("x".repeat(5000), "too_large"),
    ] {
        client.say(&join("tea", &token)).await;
        assert_eq!(client.hear_error().await, code);
    }
    // Both keys, while both are configured.
    client.say(&join("tea", &token(OLD, "tea", "ana", &all, 60.0))).await;
    let welcome = client.hear("welcome").await;
    assert_eq!(welcome["identity"], "ana");
    assert_eq!(welcome["grants"], json!(["publish", "subscribe", "enhance", "data"]));
    let mut other = Client::open(&server).await;
    other.say(&join("tea", &guest("*", "bo"))).await;
    assert_eq!(other.hear("welcome").await["participants"][0]["identity"], "ana");
    assert_eq!(client.hear("participant_joined").await["identity"], "bo");
}

#[tokio::test]
async fn the_same_identity_replaces_itself_and_nobody_else() {
    let server = start(config()).await;
    let mut bo = Client::open(&server).await;
    bo.say(&join("tea", &guest("tea", "bo"))).await;
    bo.hear("welcome").await;
    let mut first = Client::open(&server).await;
    first.say(&join("tea", &guest("tea", "ana"))).await;
    let old = first.hear("welcome").await["participant"].clone();
    bo.hear("participant_joined").await;
    let mut second = Client::open(&server).await;
    second.say(&join("tea", &guest("tea", "ana"))).await;
    let others = second.hear("welcome").await["participants"].clone();
    assert_eq!(others.as_array().unwrap().len(), 1);
    let error = first.hear("error").await;
    assert_eq!((&error["code"], &error["fatal"]), (&json!("replaced"), &json!(true)));
    assert_eq!(first.close_code().await, 4001);
    assert_eq!(bo.hear("participant_left").await["participant"], old);
    assert_eq!(bo.hear("participant_joined").await["identity"], "ana");
    second.check_alive().await;
    // The same identity in another room is somebody else's seat.
    let mut elsewhere = Client::open(&server).await;
    elsewhere.say(&join("coffee", &guest("*", "ana"))).await;
    elsewhere.hear("welcome").await;
    second.check_alive().await;
}

#[tokio::test]
async fn who_may_only_watch_cannot_publish() {
    let server = start(config()).await;
    let mut client = Client::open(&server).await;
    client.say(&join("tea", &token(NEW, "tea", "ana", &[Grant::Subscribe], 60.0))).await;
    client.hear("welcome").await;
    let publish = json!([{"mid": "0", "kind": "video", "name": "camera"}]);
    let offer = json!({"type": "offer", "id": 3, "sdp": "v=0\r\n", "publish": publish});
    client.say(&offer).await;
    let error = client.hear("error").await;
    assert_eq!((&error["code"], &error["id"]), (&json!("forbidden"), &json!(3)));
    assert!(error["hint"].as_str().unwrap().contains("token"));
    client.check_alive().await;
}

#[tokio::test]
async fn with_keys_administering_needs_a_token_even_on_this_machine() {
    let server = start(config()).await;
    let off = r#"{"enabled":false}"#;
    let call = |token: Option<String>| {
        let header = token.map_or(String::new(), |t| format!("authorization: Bearer {t}\r\n"));
        post("/admin/enhancer", &header, off)
    };
    let refused = http(&server, &call(None)).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.to_ascii_lowercase().contains("www-authenticate: bearer"), "{refused}");
    for (token, status) in [
        (guest("*", "ana"), "403"),
        (token(NEW, "tea", "ana", &[Grant::Admin], 60.0), "403"),
        (token(NEW, "*", "ana", &[Grant::Admin], -60.0), "401"),
        (token(STRANGER, "*", "ana", &[Grant::Admin], 60.0), "401"),
        (token(NEW, "*", "ana", &[Grant::Admin], 60.0), "200"),
    ] {
        let answer = http(&server, &call(Some(token))).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

fn loopback(token: &str) -> serde_json::Value {
    let mut join = join("me", token);
    join["loopback"] = true.into();
    join
}

#[tokio::test]
async fn a_room_of_ones_own_needs_the_grants_of_any_other() {
    let server = start(config()).await;
    for grants in [&[][..], &[Grant::Publish], &[Grant::Subscribe, Grant::Enhance]] {
        let mut client = Client::open(&server).await;
        client.say(&loopback(&token(NEW, "me", "mallory", grants, 60.0))).await;
        assert_eq!(client.hear_error().await, "forbidden");
    }
    let mut ana = Client::open(&server).await;
    ana.say(&loopback(&guest("me", "ana"))).await;
    ana.hear("welcome").await;
}

#[tokio::test]
async fn one_identity_has_a_quarter_of_the_rooms_and_of_those_of_its_own() {
    let admission = AdmissionLimits { rooms: 8, ..AdmissionLimits::default() };
    let server = start(SignalingConfig { admission, ..config() }).await;
    let token = guest("*", "mallory");
    let mut held = Vec::new();
    for n in 0..3 {
        for message in [join(&format!("room-{n}"), &token), loopback(&token)] {
            let mut client = Client::open(&server).await;
            client.say(&message).await;
            if n < 2 {
                client.hear("welcome").await;
            } else {
                let error = client.hear("error").await;
                assert_eq!(
                    (&error["code"], &error["fatal"]),
                    (&json!("rate_limited"), &json!(false))
                );
            }
            held.push(client);
        }
    }
    // It may go where others are, and others may begin rooms.
    let mut ana = Client::open(&server).await;
    ana.say(&join("tea", &guest("tea", "ana"))).await;
    ana.hear("welcome").await;
    let mut mallory = held.pop().unwrap();
    mallory.say(&join("tea", &token)).await;
    mallory.hear("welcome").await;
    // Who ends one may begin another.
    held[0].say(&json!({"type": "leave"})).await;
    held[0].check_alive().await;
    held[4].say(&join("room-9", &token)).await;
    held[4].hear("welcome").await;
    let metrics = get(&server, "/metrics").await;
    assert!(metrics.contains("windlass_signaling_joins_over_share_total 2\n"), "{metrics}");
}
