//! WHIP and WHEP over HTTP: sessions begin, are seen by others, and end.

mod common;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use str0m::media::{Direction, MediaKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass_protocol::Grant;
use windlass_sfu::ParticipantId;
use windlass_signaling::cluster::{Answers, Cluster, Mover, Ordered, Placed, RoomServer};
use windlass_signaling::{
    AdmissionLimits, SignalingConfig, TrustedProxies, TurnAccess, TurnConfig,
};

use common::tokens::{NEW, config, token};
use common::{Client, Server, http, offer, start, start_in};

const SDP: &str = "content-type: application/sdp\r\n";
const FRAGMENT: &str = "content-type: application/trickle-ice-sdpfrag\r\n";

/// An answer in its parts.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn code(&self) -> Value {
        serde_json::from_str::<Value>(&self.body).unwrap()["code"].clone()
    }
}

async fn call(server: &Server, request: &str, headers: &str, body: &str) -> Answer {
    let request = format!(
        "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = http(server, &request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

fn sends() -> String {
    let both = [MediaKind::Audio, MediaKind::Video].map(|kind| (kind, Direction::SendOnly));
    offer::sdp(&both).0
}

fn receives() -> String {
    let both = [MediaKind::Video, MediaKind::Audio].map(|kind| (kind, Direction::RecvOnly));
    offer::sdp(&both).0
}

/// Has a room that another server has.
struct Other;

impl Cluster for Other {
    fn place<'a>(&'a self, room: &'a str, _local: usize) -> Placed<'a> {
        let elsewhere = RoomServer::Redirect("wss://b.example:8443/ws".to_owned());
        let place = if room == "afar" { elsewhere } else { RoomServer::Local };
        Box::pin(async { place })
    }

    fn others(&self) -> Vec<String> {
        Vec::new()
    }

    fn order(&self, _order: Vec<u8>) -> Ordered<'_> {
        Box::pin(async { Answers::default() })
    }

    fn ticket(&self, _mover: &Mover<'_>, _id: ParticipantId) -> Option<String> {
        None
    }

    fn former_id(&self, _mover: &Mover<'_>, _ticket: &str) -> Option<String> {
        None
    }
}

#[tokio::test]
async fn who_offers_to_a_room_of_another_server_is_sent_there() {
    let server = start_in(SignalingConfig::default(), Some(Arc::new(Other))).await;
    let answer = call(&server, "POST /whip/afar", SDP, &sends()).await;
    assert_eq!(answer.status, 307);
    assert_eq!(answer.header("location"), Some("https://b.example:8443/whip/afar"));
    let answer = call(&server, "POST /whep/afar?participant=p7", SDP, &receives()).await;
    assert_eq!(answer.status, 307);
    let there = "https://b.example:8443/whep/afar?participant=p7";
    assert_eq!(answer.header("location"), Some(there));
    assert_eq!(call(&server, "POST /whip/here", SDP, &sends()).await.status, 201);
}

#[tokio::test]
async fn an_encoder_is_told_of_turn_servers() {
    let url = "turn:turn.example.org:3478".parse().unwrap();
    let access = TurnAccess::Rest("north".parse().unwrap(), Duration::from_secs(600));
    let turn = TurnConfig { urls: vec![url], access };
    let server = start(SignalingConfig { turn, ..SignalingConfig::default() }).await;
    let begun = call(&server, "POST /whip/tea", SDP, &sends()).await;
    let link = begun.header("link").unwrap();
    assert!(link.starts_with("<turn:turn.example.org:3478>; rel=\"ice-server\"; username=\""));
    assert!(link.contains(":p") && link.ends_with("\"; credential-type=\"password\""), "{link}");
}

#[tokio::test]
async fn an_encoder_publishes_until_it_deletes_its_session() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    let begun = call(&server, "POST /whip/tea", SDP, &sends()).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    assert_eq!(begun.header("content-type"), Some("application/sdp"));
    assert!(begun.body.starts_with("v=0") && begun.body.contains("a=recvonly"), "{}", begun.body);
    assert!(begun.body.contains("a=ice-lite") && begun.body.contains("a=candidate:"));
    assert_eq!(begun.header("accept-patch"), Some("application/trickle-ice-sdpfrag"));
    let session = begun.header("location").unwrap().to_owned();
    let tag = begun.header("etag").unwrap().to_owned();
    assert_eq!(ana.hear("participant_joined").await["name"], "WHIP");
    let kinds = [ana.hear("track_added").await, ana.hear("track_added").await];
    assert_eq!(kinds.map(|t| t["track"]["kind"].as_str().unwrap().to_owned()), ["audio", "video"]);

    let patch = format!("PATCH {session}");
    for (headers, status) in [
        (format!("{FRAGMENT}if-match: {tag}\r\n"), 204),
        (format!("{FRAGMENT}if-match: \"other\"\r\n"), 412),
        (format!("{FRAGMENT}if-match: *\r\n"), 400),
        (FRAGMENT.to_owned(), 428),
        (SDP.to_owned(), 415),
    ] {
        let answer = call(&server, &patch, &headers, "a=ice-ufrag:x\r\n").await;
        assert_eq!(answer.status, status, "{headers}");
    }
    assert_eq!(call(&server, &format!("DELETE {session}"), "", "").await.status, 200);
    ana.hear("track_removed").await;
    ana.hear("participant_left").await;
    assert_eq!(call(&server, &format!("DELETE {session}"), "", "").await.status, 404);
}

#[tokio::test]
async fn a_player_is_given_what_a_participant_sends() {
    let server = start(SignalingConfig::default()).await;
    let early = call(&server, "POST /whep/tea", SDP, &receives()).await;
    assert_eq!((early.status, early.header("retry-after")), (409, Some("2")), "{}", early.body);
    call(&server, "POST /whip/tea", SDP, &sends()).await;
    let begun = call(&server, "POST /whep/tea", SDP, &receives()).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    assert_eq!(begun.body.matches("a=sendonly").count(), 2, "{}", begun.body);
    let nobody = call(&server, "POST /whep/tea?participant=p1", SDP, &receives()).await;
    assert_eq!(nobody.status, 409);
    let session = begun.header("location").unwrap();
    // One way's sessions are not the other's.
    let other = session.replace("/whep/", "/whip/");
    assert_eq!(call(&server, &format!("DELETE {other}"), "", "").await.status, 404);
    assert_eq!(call(&server, &format!("DELETE {session}"), "", "").await.status, 200);
}

#[tokio::test]
async fn a_player_is_told_why_it_gets_no_enhanced_picture_and_leaves_nothing_behind() {
    let server = start(SignalingConfig::default()).await;
    call(&server, "POST /whip/tea", SDP, &sends()).await;
    let request = "POST /whep/tea?enhanced=true";
    let plain = receives();
    let with_av1 =
        plain.replace("a=rtpmap:98 VP9/90000", "a=rtpmap:45 AV1/90000\r\na=rtpmap:98 VP9/90000");
    for (body, status, code) in [(&plain, 422, "no_codec"), (&with_av1, 501, "unknown_track")] {
        let refused = call(&server, request, SDP, body).await;
        assert_eq!((refused.status, refused.code()), (status, code.into()), "{}", refused.body);
        let hint = serde_json::from_str::<Value>(&refused.body).unwrap()["hint"].to_string();
        assert!(hint.contains("without `enhanced`"), "{hint}");
    }
    let room = call(&server, "GET /admin/rooms/tea", "", "").await;
    let room: Value = serde_json::from_str(&room.body).unwrap();
    assert_eq!(room["participants"].as_array().unwrap().len(), 1);
    let unclear = call(&server, "POST /whep/tea?enhanced=perhaps", SDP, &with_av1).await;
    assert_eq!(unclear.status, 400);
}

#[tokio::test]
async fn what_is_no_offer_is_refused_and_leaves_nothing_behind() {
    let server = start(SignalingConfig::default()).await;
    let sends = sends();
    for (request, headers, body, status) in [
        ("POST /whip/tea", "content-type: text/plain\r\n", sends.as_str(), 415),
        ("POST /whip/tea", "", &sends, 415),
        ("POST /whip/a%20b", SDP, &sends, 400),
        ("POST /whip/tea", SDP, "", 400),
        ("POST /whip/tea", SDP, "v=0\r\nm=video 9 X 1\r\na=mid:0\r\n", 400),
        ("POST /whip/tea", SDP, &sends.replace("VP9/90000", "H264/90000"), 422),
        ("POST /whip/tea", SDP, &receives(), 400),
        ("POST /whep/tea", SDP, &sends, 400),
        ("POST /whip/tea", SDP, &"x".repeat(200_000), 413),
        ("GET /whip/tea", "", "", 405),
        ("DELETE /whip/tea/0", "", "", 404),
    ] {
        let answer = call(&server, request, headers, body).await;
        assert_eq!(answer.status, status, "{request} {}", answer.body);
    }
    let rooms = call(&server, "GET /admin/rooms", "", "").await;
    assert_eq!(rooms.body, r#"{"rooms":[]}"#);
    let options = call(&server, "OPTIONS /whip/tea", "", "").await;
    assert_eq!((options.status, options.header("accept-post")), (204, Some("application/sdp")));
}

#[tokio::test]
async fn tokens_say_who_may_send_and_who_may_watch() {
    let server = start(config()).await;
    let bearer = |grant: Grant| {
        format!("authorization: Bearer {}\r\n{SDP}", token(NEW, "tea", "obs", &[grant], 60.0))
    };
    let none = call(&server, "POST /whip/tea", SDP, &sends()).await;
    assert_eq!((none.status, none.header("www-authenticate")), (401, Some("Bearer")));
    let watch = bearer(Grant::Subscribe);
    assert_eq!(call(&server, "POST /whip/tea", &watch, &sends()).await.code(), "forbidden");
    let send = bearer(Grant::Publish);
    assert_eq!(call(&server, "POST /whip/coffee", &send, &sends()).await.status, 403);
    let begun = call(&server, "POST /whip/tea", &send, &sends()).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    assert_eq!(call(&server, "POST /whep/tea", &send, &receives()).await.code(), "forbidden");
    let session = begun.header("location").unwrap();
    assert_eq!(call(&server, &format!("DELETE {session}"), "", "").await.status, 401);
    assert_eq!(call(&server, &format!("DELETE {session}"), &send, "").await.status, 200);
}

/// The value of the first line that begins so.
fn line<'a>(text: &'a str, prefix: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap()
}

#[tokio::test]
async fn an_encoder_restarts_ice_and_goes_on_with_its_tracks() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    let begun = call(&server, "POST /whip/tea", SDP, &sends()).await;
    let (session, tag) = (begun.header("location").unwrap(), begun.header("etag").unwrap());
    ana.hear("track_added").await;
    ana.hear("track_added").await;
    let patch = format!("PATCH {session}");
    let restart = format!("{FRAGMENT}if-match: *\r\n");
    let fragment = "a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\nm=audio 9 X 0\r\na=mid:0\r\n\
        a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host\r\na=end-of-candidates\r\n";
    let answer = call(&server, &patch, &restart, fragment).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("content-type"), Some("application/trickle-ice-sdpfrag"));
    assert!(answer.body.contains("a=candidate:") && answer.body.contains("a=ice-lite"));
    for credential in ["a=ice-ufrag:", "a=ice-pwd:"] {
        assert_ne!(line(&answer.body, credential), line(&begun.body, credential));
    }
    let new = answer.header("etag").unwrap();
    assert_ne!(new, tag);
    // Candidates belong to the ICE session that the tag names.
    for (tag, status) in [(tag, 412), (new, 204)] {
        let headers = format!("{FRAGMENT}if-match: {tag}\r\n");
        assert_eq!(call(&server, &patch, &headers, fragment).await.status, status);
    }
    let room = call(&server, "GET /admin/rooms/tea", "", "").await;
    let room: Value = serde_json::from_str(&room.body).unwrap();
    let tracks = |n: usize| room["participants"][n]["tracks"].as_array().unwrap().len();
    assert_eq!(tracks(0) + tracks(1), 2, "the same tracks");
    let mut last = 0;
    for _ in 0..40 {
        last = call(&server, &patch, &restart, fragment).await.status;
    }
    assert_eq!(last, 429, "each costs the media thread time");
}

#[tokio::test]
async fn pages_of_other_origins_may_ask_and_read() {
    let server = start(SignalingConfig::default()).await;
    let begun = call(&server, "POST /whip/tea", SDP, &sends()).await;
    let session = begun.header("location").unwrap();
    let exposed = begun.header("access-control-expose-headers").unwrap();
    assert!(["location", "etag", "link"].iter().all(|name| exposed.contains(name)), "{exposed}");
    for path in ["/whip/tea", "/whep/tea", session] {
        let asked =
            call(&server, &format!("OPTIONS {path}"), "origin: https://x.test\r\n", "").await;
        assert_eq!(asked.status, 204, "{path}");
        assert_eq!(asked.header("access-control-allow-origin"), Some("*"));
        let methods = asked.header("access-control-allow-methods").unwrap();
        assert!(["POST", "PATCH", "DELETE"].iter().all(|method| methods.contains(method)));
        let headers = asked.header("access-control-allow-headers").unwrap();
        assert!(headers.contains("authorization") && headers.contains("if-match"));
    }
    let refused = call(&server, "POST /whip/tea", "content-type: text/plain\r\n", "").await;
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"), "a page can tell why");
    let page = call(&server, "GET /", "", "").await;
    assert_eq!(page.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn no_body_is_read_of_somebody_who_may_not_enter() {
    let server = start(config()).await;
    for path in ["/whip/tea", "/whep/tea", "/whip/tea/0"] {
        let method = if path.ends_with('0') { "PATCH" } else { "POST" };
        let mut stream = TcpStream::connect(server.addr).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{SDP}content-length: 60000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        let answered = tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut answer));
        answered.await.expect("an answer before the body").unwrap();
        assert_eq!(&answer, b"HTTP/1.1 401");
    }
}

#[tokio::test]
async fn a_session_is_its_makers_alone() {
    let server = start(config()).await;
    let bearer = |identity: &str, grants: &[Grant]| {
        format!("authorization: Bearer {}\r\n", token(NEW, "tea", identity, grants, 60.0))
    };
    let bo = bearer("bo", &[Grant::Publish]);
    let begun = call(&server, "POST /whip/tea", &format!("{SDP}{bo}"), &sends()).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    let session = begun.header("location").unwrap();
    let tag = begun.header("etag").unwrap();
    let (delete, patch) = (format!("DELETE {session}"), format!("PATCH {session}"));
    for (identity, grants) in [("mallory", &[][..]), ("eve", &Grant::PARTICIPANT[..])] {
        let other = bearer(identity, grants);
        let headers = format!("{FRAGMENT}{other}if-match: {tag}\r\n");
        for refused in [
            call(&server, &delete, &other, "").await,
            call(&server, &patch, &headers, "a=end-of-candidates\r\n").await,
        ] {
            assert_eq!((refused.status, refused.code()), (403, "forbidden".into()));
        }
    }
    assert_eq!(call(&server, &delete, "", "").await.status, 401);
    // Another token of the same identity is good, and whether there is no such session nobody has to guess.
    let again = bearer("bo", &[]);
    assert_eq!(call(&server, &delete, &again, "").await.status, 200);
    assert_eq!(call(&server, &delete, &again, "").await.status, 404);
}

#[tokio::test]
async fn sessions_count_at_the_door_like_sockets() {
    let (sockets_per_address, joins_per_address) = (2, 4);
    let admission = AdmissionLimits {
        sockets: 3,
        sockets_per_address,
        joins_per_address,
        ..AdmissionLimits::default()
    };
    let proxies = TrustedProxies(vec!["127.0.0.1".parse().unwrap()]);
    let server = start(SignalingConfig { admission, proxies, ..SignalingConfig::default() }).await;
    let from = |last: u8| format!("x-forwarded-for: 192.0.2.{last}\r\n{SDP}");
    let post = async |last| call(&server, "POST /whip/tea", &from(last), &sends()).await;
    let held = [post(1).await, post(1).await];
    assert_eq!(held.each_ref().map(|a| a.status), [201, 201]);
    let third = post(1).await;
    assert_eq!((third.status, third.header("retry-after")), (429, Some("60")), "{}", third.body);
    assert_eq!(post(2).await.status, 201);
    let full = post(3).await;
    assert_eq!((full.status, full.code()), (503, "server_full".into()));
    let session = held[0].header("location").unwrap();
    assert_eq!(call(&server, &format!("DELETE {session}"), "", "").await.status, 200);
    let mut joined = 2;
    while joined < 4 {
        // The place is free when the participant is gone.
        let again = post(1).await;
        match again.status {
            201 => {
                joined += 1;
                let session = again.header("location").unwrap();
                call(&server, &format!("DELETE {session}"), "", "").await;
            }
            429 if !again.body.contains("joins") => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            _ => panic!("{}", again.body),
        }
    }
    loop {
        let over = post(1).await;
        if over.body.contains("joins") {
            assert_eq!(over.status, 429);
            break;
        }
        assert_eq!(over.status, 429, "{}", over.body);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let metrics = call(&server, "GET /metrics", "", "").await.body;
    assert!(!metrics.contains("windlass_signaling_joins_limited_total 0\n"));
}

#[tokio::test]
async fn an_encoder_without_our_codecs_is_told_which_to_use() {
    let server = start(SignalingConfig::default()).await;
    let h264 = sends().replace("VP9/90000", "H264/90000");
    let refused = call(&server, "POST /whip/tea", SDP, &h264).await;
    assert_eq!((refused.status, refused.code()), (422, "no_codec".into()), "{}", refused.body);
    let hint = serde_json::from_str::<Value>(&refused.body).unwrap()["hint"].to_string();
    assert!(hint.contains("VP9") && hint.contains("Opus"), "{hint}");
}

#[tokio::test]
async fn an_operator_removes_an_encoder_like_anybody() {
    let server = start(SignalingConfig::default()).await;
    let begun = call(&server, "POST /whip/tea", SDP, &sends()).await;
    let session = begun.header("location").unwrap();
    let room = call(&server, "GET /admin/rooms/tea", "", "").await;
    let room: Value = serde_json::from_str(&room.body).unwrap();
    let encoder = &room["participants"][0];
    assert_eq!(encoder["tracks"].as_array().unwrap().len(), 2);
    let id = encoder["id"].as_str().unwrap();
    let remove = format!("DELETE /admin/rooms/tea/participants/{id}");
    assert_eq!(call(&server, &remove, "", "").await.status, 204);
    for _ in 0..100 {
        let gone = call(&server, &format!("DELETE {session}"), "", "").await.status == 404;
        if gone {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the session is still there");
}
