//! The admin API over HTTP: what it shows, what it does to calls, and whom it refuses.

mod common;

use serde_json::{Value, json};
use windlass_protocol::Grant;
use windlass_signaling::SignalingConfig;

use common::tokens::{NEW, config, guest, join, token};
use common::{Client, Server, get, http, offer, start, start_in};

/// Status and JSON body of a request; no body is null.
async fn call(server: &Server, request: &str, headers: &str, body: Option<Value>) -> (u16, Value) {
    let body = body.map_or(String::new(), |b| b.to_string());
    let request = format!(
        "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = http(server, &request).await;
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or_default())
}

async fn ask(server: &Server, request: &str, body: Option<Value>) -> (u16, Value) {
    call(server, request, "", body).await
}

#[tokio::test]
async fn rooms_are_listed_and_shown_while_somebody_is_in_them() {
    let server = start(SignalingConfig::default()).await;
    let (status, body) = ask(&server, "GET /admin/rooms", None).await;
    assert_eq!((status, body), (200, json!({"rooms": []})));
    let (_ana, ana) = Client::joined(&server, "tea", "Ana").await;
    let (bo, _) = Client::joined(&server, "tea", "Bo").await;
    let (_, body) = ask(&server, "GET /admin/rooms", None).await;
    assert_eq!(body["rooms"], json!([{"room": "tea", "participants": 2, "tracks": 0}]));
    let (_, room) = ask(&server, "GET /admin/rooms/tea", None).await;
    let names: Vec<_> = room["participants"].as_array().unwrap().iter().collect();
    let first = names.iter().find(|p| p["id"] == ana["participant"]).unwrap();
    assert_eq!(first["name"], "Ana");
    assert_eq!(first["grants"], json!(["publish", "subscribe", "enhance", "data"]));
    drop(bo);
    let (status, body) = ask(&server, "GET /admin/rooms/coffee", None).await;
    assert_eq!((status, &body["code"]), (404, &json!("unknown_room")));
    assert!(body["hint"].as_str().unwrap().ends_with('.'));
}

#[tokio::test]
async fn a_removed_participant_is_told_and_the_others_stay() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, welcome) = Client::joined(&server, "tea", "Ana").await;
    let (mut bo, _) = Client::joined(&server, "tea", "Bo").await;
    let id = welcome["participant"].as_str().unwrap();
    let other = format!("DELETE /admin/rooms/coffee/participants/{id}");
    assert_eq!(ask(&server, &other, None).await.0, 404);
    let path = format!("DELETE /admin/rooms/tea/participants/{id}");
    assert_eq!(ask(&server, &path, None).await.0, 204);
    let error = ana.hear("error").await;
    assert_eq!((&error["code"], &error["fatal"]), (&json!("removed"), &json!(true)));
    assert_eq!(ana.close_code().await, 4002);
    assert_eq!(bo.hear("participant_left").await["participant"], id);
    bo.check_alive().await;
    assert_eq!(ask(&server, &path, None).await.1["code"], "unknown_participant");
}

#[tokio::test]
async fn a_room_is_created_limited_and_ended() {
    let server = start(SignalingConfig::default()).await;
    let settings = json!({"max_participants": 1, "policy": "cost-effective"});
    let (status, room) = ask(&server, "PUT /admin/rooms/tea", Some(settings)).await;
    let expected = json!({"room": "tea", "max_participants": 1, "policy": "cost-effective",
        "participants": []});
    assert_eq!((status, room), (200, expected));
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    let mut bo = Client::open(&server).await;
    let join = json!({"type": "join", "version": 1, "room": "tea", "name": "Bo"});
    bo.say(&join).await;
    assert_eq!(bo.hear_error().await, "room_full");
    assert_eq!(ask(&server, "PUT /admin/rooms/tea", Some(json!({}))).await.0, 200);
    bo.say(&join).await;
    bo.hear("welcome").await;
    assert_eq!(ask(&server, "DELETE /admin/rooms/tea", None).await.0, 204);
    assert_eq!(ana.hear_error().await, "removed");
    assert_eq!(bo.close_code().await, 4002);
    assert_eq!(ask(&server, "GET /admin/rooms", None).await.1, json!({"rooms": []}));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_reason() {
    let server = start(SignalingConfig::default()).await;
    let (_ana, _) = Client::joined(&server, "tea", "Ana").await;
    for (request, body, status, code) in [
        ("PUT /admin/rooms/a%20b", json!({}), 400, "malformed"),
        ("PUT /admin/rooms/tea", json!({"max_participants": 0}), 400, "malformed"),
        ("PUT /admin/rooms/tea", json!({"max_participants": -1}), 422, "malformed"),
        ("PUT /admin/rooms/tea", json!({"colour": "blue"}), 422, "malformed"),
        ("PUT /admin/rooms/tea", json!({"policy": "best"}), 422, "malformed"),
        ("DELETE /admin/rooms/tea/participants/ana", json!({}), 404, "unknown_participant"),
        ("PUT /admin/rooms/tea/tracks/t9/muted", json!({"muted": true}), 404, "unknown_track"),
        ("PUT /admin/rooms/tea/tracks/%00/muted", json!({"muted": true}), 404, "unknown_track"),
        ("PUT /admin/rooms/coffee/tracks/t9/muted", json!({"muted": true}), 404, "unknown_room"),
    ] {
        let (got, error) = ask(&server, request, Some(body)).await;
        assert_eq!((got, &error["code"]), (status, &json!(code)), "{request}: {error}");
        assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
    }
}

#[tokio::test]
async fn a_token_administers_its_own_room_and_no_other() {
    let server = start(config()).await;
    let mut ana = Client::open(&server).await;
    ana.say(&join("tea", &guest("tea", "ana"))).await;
    ana.hear("welcome").await;
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    let host = bearer(&token(NEW, "tea", "host", &[Grant::Admin], 60.0));
    let operator = bearer(&token(NEW, "*", "ops", &[Grant::Admin], 60.0));
    let guest = bearer(&guest("*", "eve"));
    for (headers, request, status) in [
        (host.as_str(), "GET /admin/rooms/tea", 200),
        (&host, "GET /admin/rooms/coffee", 403),
        (&host, "GET /admin/rooms", 403),
        (&operator, "GET /admin/rooms", 200),
        (&operator, "GET /admin/rooms/tea", 200),
        (&guest, "GET /admin/rooms/tea", 403),
        (&guest, "DELETE /admin/rooms/tea", 403),
        ("", "GET /admin/rooms/tea", 401),
        ("authorization: Basic eDp5\r\n", "GET /admin/rooms/tea", 401),
    ] {
        let (got, body) = call(&server, request, headers, None).await;
        assert_eq!(got, status, "{headers}{request}: {body}");
    }
    let (_, room) = call(&server, "GET /admin/rooms/tea", &host, None).await;
    assert_eq!(room["participants"][0]["identity"], "ana");
}

#[tokio::test]
async fn a_track_that_an_operator_mutes_stays_muted_until_that_ends() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    let (mut bo, _) = Client::joined(&server, "tea", "Bo").await;
    ana.say(&offer::camera(1)).await;
    let answer = ana.hear("answer").await;
    let track = answer["tracks"][0]["track"].as_str().unwrap();
    bo.hear("track_added").await;
    let path = format!("PUT /admin/rooms/tea/tracks/{track}/muted");
    let (status, body) = ask(&server, &path, Some(json!({"muted": true}))).await;
    let held = json!({"id": track, "kind": "video", "name": "camera", "muted": true,
        "muted_by_operator": true});
    assert_eq!((status, &body), (200, &held));
    let told = json!({"type": "track_muted", "track": track, "muted": true});
    assert_eq!(ana.hear("track_muted").await, told);
    assert_eq!(bo.hear("track_muted").await, told);
    ana.say(&json!({"type": "mute", "track": track, "muted": false})).await;
    assert_eq!(ana.hear_error().await, "forbidden");
    let (_, room) = ask(&server, "GET /admin/rooms/tea", None).await;
    let tracks: Vec<_> = room["participants"].as_array().unwrap().iter().collect();
    assert!(tracks.iter().any(|p| p["tracks"] == json!([held])), "{room}");
    ask(&server, &path, Some(json!({"muted": false}))).await;
    assert_eq!(bo.hear("track_muted").await["muted"], false);
    ana.say(&json!({"type": "mute", "track": track, "muted": true})).await;
    assert_eq!(bo.hear("track_muted").await["muted"], true);
}

#[tokio::test]
async fn the_interface_describes_itself() {
    let server = start(SignalingConfig::default()).await;
    let answer = get(&server, "/openapi.json").await;
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    // Each path that it names is served: what it needs may be missing, but not the route.
    for (path, item) in body["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys().map(|m| m.to_uppercase()) {
            let path = path.replace("{room}", "nowhere").replace("{participant}", "p1");
            let request = format!("{method} {}", path.replace("{track}", "t1"));
            let (status, error) = ask(&server, &request, None).await;
            let found = status != 405 && (status != 404 || error["code"].is_string());
            assert!(found, "{request}: {status}");
        }
    }
}

/// Status of a request with exactly these lines as its head.
async fn status(server: &Server, request: &str, head: &[&str]) -> u16 {
    let head = head.join("\r\n");
    let request = format!("{request} HTTP/1.1\r\n{head}\r\nconnection: close\r\n\r\n");
    http(server, &request).await.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn nobody_administers_a_server_without_token_keys_unless_that_is_allowed() {
    let server = start_in(SignalingConfig::default(), None).await;
    let (got, error) = ask(&server, "GET /admin/rooms", None).await;
    assert_eq!((got, &error["code"]), (403, &json!("forbidden")));
    assert!(error["hint"].as_str().unwrap().contains("`windlass key`"), "{error}");
}

#[tokio::test]
async fn a_server_that_programs_of_its_machine_may_administer_is_not_administered_through_others() {
    let server = start(SignalingConfig::default()).await;
    for own in ["host: localhost:7880", "host: 127.0.0.1", "host: [::1]:7880"] {
        assert_eq!(status(&server, "GET /admin/rooms", &[own]).await, 200, "{own}");
        for passed_on in [
            "cf-connecting-ip: 192.0.2.1",
            "x-client-ip: 192.0.2.1",
            "x-forwarded-proto: https",
            "forwarded: for=192.0.2.1",
            "origin: http://localhost:7880",
            "sec-fetch-site: cross-site",
        ] {
            let got = status(&server, "GET /admin/rooms", &[own, passed_on]).await;
            assert_eq!(got, 403, "{own}, {passed_on}");
        }
    }
    for foreign in ["host: evil.example:7880", "host: 192.0.2.1", "host: localhost.evil.example"] {
        assert_eq!(status(&server, "GET /admin/rooms", &[foreign]).await, 403, "{foreign}");
    }
}

#[tokio::test]
async fn a_drain_says_how_long_rooms_have() {
    let server = start(SignalingConfig::default()).await;
    let (status, body) = ask(&server, "POST /admin/drain", None).await;
    assert_eq!((status, body), (200, json!({"seconds": 30})));
}
