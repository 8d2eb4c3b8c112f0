//! A served router under a real WebSocket client: what is wrong is answered, what is right goes on.

mod common;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::SinkExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use windlass_signaling::{AdmissionLimits, SignalingConfig};

use common::{Client, get, http, post, start};

#[tokio::test]
async fn two_participants_meet_and_part() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, welcome) = Client::joined(&server, "tea", "Ana").await;
    assert_eq!(welcome["version"], 1);
    assert_eq!(welcome["participants"], json!([]));
    let (mut bo, welcome) = Client::joined(&server, "tea", "Bo").await;
    assert_eq!(welcome["participants"][0]["name"], "Ana");
    let joined = ana.hear("participant_joined").await;
    assert_eq!(joined["name"], "Bo");
    assert_eq!(joined["participant"], welcome["participant"]);
    bo.say(&json!({"type": "leave"})).await;
    assert_eq!(ana.hear("participant_left").await["participant"], joined["participant"]);
    let (bo, welcome) = Client::joined(&server, "tea", "Bo").await;
    ana.hear("participant_joined").await;
    drop(bo);
    let left = ana.hear("participant_left").await;
    assert_eq!(left["participant"], welcome["participant"]);
}

#[tokio::test]
async fn loopback_rooms_of_one_name_are_two_rooms() {
    let server = start(SignalingConfig::default()).await;
    let join = json!({"type": "join", "version": 1, "room": "me", "name": "Ana", "loopback": true});
    for _ in 0..2 {
        let mut client = Client::open(&server).await;
        client.say(&join).await;
        let welcome = client.hear("welcome").await;
        assert_eq!((&welcome["loopback"], &welcome["room"]), (&json!(true), &json!("me")));
        assert_eq!(welcome["participants"], json!([]));
    }
}

#[tokio::test]
async fn malformed_messages_are_answered_and_others_go_on() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    let mut rude = Client::open(&server).await;
    let cases = [
        (Message::text("{{{"), "malformed"),
        (Message::text("[1,2]"), "malformed"),
        (Message::binary(vec![0xff; 100]), "malformed"),
        (Message::text(r#"{"type":"fly"}"#), "unknown_type"),
        (Message::text(r#"{"type":"leave"}"#), "not_joined"),
        (Message::text(r#"{"type":"offer","id":1,"sdp":"v=0"}"#), "not_joined"),
    ];
    for (message, code) in cases {
        rude.0.send(message).await.unwrap();
        assert_eq!(rude.hear_error().await, code);
    }
    rude.check_alive().await;
    // Strangers may not send as much.
    let (mut long, _) = Client::joined(&server, "tea", "Bo").await;
    for (text, code) in
        [("x".repeat(230 * 1024), "too_large"), ("[".repeat(100 * 1024), "malformed")]
    {
        long.0.send(Message::text(text)).await.unwrap();
        assert_eq!(long.hear_error().await, code);
    }
    long.check_alive().await;
    ana.check_alive().await;
}

#[tokio::test]
async fn a_bad_session_description_is_refused_and_the_participant_stays() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    for sdp in ["", "nonsense", "v=0\r\nm=video 9 X\r\n", "v=0\r\na=fingerprint:\u{0}\r\n"] {
        ana.say(&json!({"type": "offer", "id": 5, "sdp": sdp})).await;
        let error = ana.hear("error").await;
        assert_eq!((&error["code"], &error["id"]), (&json!("bad_sdp"), &json!(5)), "{sdp:?}");
        assert_eq!(error["fatal"], false);
    }
    let subscribe = json!([{"mid": "0", "track": "t123456"}]);
    ana.say(&json!({"type": "offer", "id": 6, "sdp": "v=0\r\n", "subscribe": subscribe})).await;
    let code = ana.hear_error().await;
    assert!(["bad_sdp", "unknown_track"].contains(&code.as_str()), "{code}");
    ana.check_alive().await;
}

#[tokio::test]
async fn another_version_is_refused_and_the_right_one_welcome_after_it() {
    let server = start(SignalingConfig::default()).await;
    let mut old = Client::open(&server).await;
    old.say(&json!({"type": "join", "version": 0, "room": "tea", "name": "Ana"})).await;
    assert_eq!(old.hear_error().await, "unsupported_version");
    old.say(&json!({"type": "join", "version": 1, "room": "tea", "name": "Ana"})).await;
    old.hear("welcome").await;
}

#[tokio::test]
async fn a_flood_is_cut_and_others_go_on() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    let mut flood = Client::open(&server).await;
    // By time, not by count: the system's buffers take some hundred thousand messages that nobody reads.
    let (begun, patience) = (Instant::now(), Duration::from_secs(20));
    while begun.elapsed() < patience && flood.0.send(Message::text("{}")).await.is_ok() {}
    assert!(begun.elapsed() < patience, "the flood was never cut");
    ana.check_alive().await;
}

#[tokio::test]
async fn a_message_too_large_to_read_is_told_and_ends_only_its_own_socket() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    // By hand: a client library would wait for its message to be taken.
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let upgrade = "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    // The header of a masked text of 3 MiB.
    let header = [0x81, 0xff, 0, 0, 0, 0, 0, 0x30, 0, 0, 1, 2, 3, 4];
    stream.write_all(&header).await.unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await.unwrap();
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.contains(r#""code":"too_large""#), "{heard}");
    assert!(heard.contains(r#""fatal":true"#), "{heard}");
    ana.check_alive().await;
}

#[tokio::test]
async fn one_socket_too_many_is_refused_with_503() {
    let admission = AdmissionLimits { sockets: 1, ..AdmissionLimits::default() };
    let server = start(SignalingConfig { admission, ..SignalingConfig::default() }).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    let refused = connect_async(format!("ws://{}/ws", server.addr)).await.unwrap_err();
    assert!(refused.to_string().contains("503"), "{refused}");
    ana.check_alive().await;
}

#[tokio::test]
async fn shutting_down_tells_every_client_and_then_ends() {
    let mut server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    server.stop.take().unwrap().send(()).unwrap();
    let error = ana.hear("error").await;
    assert_eq!((&error["code"], &error["fatal"]), (&json!("shutting_down"), &json!(true)));
    assert_eq!(ana.close_code().await, 1012);
    let served = tokio::time::timeout(Duration::from_secs(5), &mut server.served).await;
    served.expect("the server ends").unwrap();
}

#[tokio::test]
async fn connections_that_never_ask_for_anything_are_closed() {
    let head_timeout = Duration::from_millis(300);
    let server = start(SignalingConfig { head_timeout, ..SignalingConfig::default() }).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    for said in ["", "GET /ws HTTP/1.1\r\nHost: localhost\r\n"] {
        let mut silent = TcpStream::connect(server.addr).await.unwrap();
        silent.write_all(said.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let end = silent.read_to_end(&mut answer);
        let ended = tokio::time::timeout(Duration::from_secs(3), end).await;
        assert!(ended.is_ok(), "still open after {said:?}");
    }
    ana.check_alive().await;
}

#[tokio::test]
async fn nothing_of_a_strangers_admin_request_is_read() {
    let server = start(SignalingConfig::default()).await;
    let mut stranger = TcpStream::connect(server.addr).await.unwrap();
    let head = "POST /admin/enhancer HTTP/1.1\r\nHost: localhost\r\nOrigin: http://example.org\r\n\
        Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n";
    stranger.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    let read = stranger.read_exact(&mut answer);
    tokio::time::timeout(Duration::from_secs(3), read).await.expect("an answer").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 403");
}

#[tokio::test]
async fn health_metrics_and_page_are_served() {
    let server = start(SignalingConfig::default()).await;
    let (_ana, _) = Client::joined(&server, "tea", "Ana").await;
    assert!(get(&server, "/healthz").await.ends_with("ok\n"));
    assert!(get(&server, "/").await.ends_with("the page"));
    let metrics = get(&server, "/metrics").await;
    for line in [
        "windlass_sfu_participants 1",
        "windlass_signaling_sockets_open 1",
        "windlass_signaling_join_seconds_count 1",
        "windlass_enhancer_frames_total 3",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
}

#[tokio::test]
async fn the_enhancer_is_switched_by_local_programs_only() {
    let server = start(SignalingConfig::default()).await;
    let post = |more: &str, body: &str| post("/admin/enhancer", more, body);
    let off = r#"{"enabled":false}"#;
    let refused = http(&server, &post("origin: http://example.org\r\n", off)).await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert!(server.enhancer_on.load(Ordering::Relaxed));
    let done = http(&server, &post("", off)).await;
    assert!(done.ends_with(off), "{done}");
    assert!(!server.enhancer_on.load(Ordering::Relaxed));
    let garbage = http(&server, &post("", "off")).await;
    assert!(garbage.starts_with("HTTP/1.1 400"), "{garbage}");
}

#[tokio::test]
async fn policies_are_set_from_this_machine_alone_and_by_their_names() {
    let server = start(SignalingConfig::default()).await;
    let post = |more: &str, body: &str| post("/admin/policy", more, body);
    let lectures = r#"{"room":"lectures","policy":"cost-effective"}"#;
    let refused = http(&server, &post("origin: http://example.org\r\n", lectures)).await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let done = http(&server, &post("", lectures)).await;
    assert!(done.starts_with("HTTP/1.1 200") && done.ends_with(lectures), "{done}");
    for wrong in
        [r#"{"policy":"best"}"#, r#"{"rom":"x","policy":"quality-sla"}"#, r#"{"room":"x"}"#]
    {
        let answer = http(&server, &post("", wrong)).await;
        assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
        let names = ["latency-sensitive", "`room`", "`policy`"];
        assert!(names.iter().any(|name| answer.contains(name)), "{answer}");
    }
}

#[tokio::test]
async fn connections_that_say_nothing_are_bounded_and_make_room_when_they_go() {
    let admission = AdmissionLimits { sockets: 1, ..AdmissionLimits::default() };
    let server = start(SignalingConfig { admission, ..SignalingConfig::default() }).await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(TcpStream::connect(server.addr).await.unwrap());
    }
    // Connections are taken in the order in which they were made.
    let mut one_too_many = TcpStream::connect(server.addr).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(3), one_too_many.read(&mut [0; 9])).await;
    assert!(matches!(ended.expect("closed at once"), Ok(0) | Err(_)));
    // The server ends its side when it has seen the client's end.
    let mut last = silent.pop().unwrap();
    last.shutdown().await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(3), last.read(&mut [0; 9])).await;
    assert_eq!(ended.expect("closed").unwrap(), 0);
    let metrics = get(&server, "/metrics").await;
    let refused = "windlass_signaling_connections_refused_total{reason=\"full\"} 1\n";
    assert!(metrics.contains(refused), "{metrics}");
}

/// What is answered to a head of so many bytes and headers, if anything is.
async fn answer_to(server: &common::Server, bytes: usize, headers: usize) -> String {
    let mut lines = vec!["GET /healthz HTTP/1.1".to_owned(), "host: x".to_owned()];
    lines.extend((2..headers).map(|n| format!("x-{n}: y")));
    let so_far = lines.iter().map(|line| line.len() + 2).sum::<usize>();
    let left = bytes.saturating_sub(so_far + "x-pad: \r\n\r\n".len());
    lines.push(format!("x-pad: {}\r\n\r\n", "z".repeat(left)));
    let head = lines.join("\r\n");
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // What is left unread of the head may end the connection behind the answer.
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_request_head_is_bounded_in_bytes_and_headers() {
    let server = start(SignalingConfig::default()).await;
    for (bytes, headers, status) in [
        (0, 3, 200),
        (11_500, 3, 200),
        (12_500, 3, 431),
        (16_500, 3, 431),
        (0, 60, 200),
        (0, 66, 431),
    ] {
        let answer = answer_to(&server, bytes, headers).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes} {headers}: {answer}");
    }
}

#[tokio::test]
async fn a_ping_flood_is_cut_with_a_reason_and_counted() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    // By hand: a client library hears nothing more once it cannot send.
    let mut flood = TcpStream::connect(server.addr).await.unwrap();
    let upgrade = "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    flood.write_all(upgrade.as_bytes()).await.unwrap();
    // Just enough, and read at once: of what lay unread at the end the system would tell instead of the server.
    let pings = [0x89, 0x80, 0, 0, 0, 0].repeat(1250);
    flood.write_all(&pings).await.unwrap();
    let mut heard = Vec::new();
    // What it said last is left unread, so the connection may end with an error.
    let _ = flood.read_to_end(&mut heard).await;
    let heard = String::from_utf8_lossy(&heard);
    assert!(
        heard.contains("far too many messages") && heard.contains(r#""fatal":true"#),
        "{heard}"
    );
    ana.check_alive().await;
    let metrics = get(&server, "/metrics").await;
    assert!(metrics.contains("windlass_signaling_sockets_flooded_total 1\n"), "{metrics}");
}
