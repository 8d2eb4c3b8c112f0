//! The front: what a stranger, or the bearer of a weak token, sends to the port of page and signalling.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use str0m::Rtc;
use str0m::media::{Direction, MediaKind};
use windlass_protocol::Grant;
use windlass_signaling::access::{Claims, Grants, TokenKey};

use crate::honest::{ALLOCATOR, Scene, TOKEN_KEY, alone, memory};
use crate::server::{Client, Server};

const KIB: f64 = 1024.0;

/// A token that is good for a minute.
fn token(room: &str, identity: &str, grants: &[Grant]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs_f64();
    let (room, sub) = (room.to_owned(), identity.to_owned());
    let grants = Grants::new(grants.iter().copied());
    let claims = Claims { room, sub, name: None, grants, exp: now + 60.0, nbf: None, jti: None };
    TOKEN_KEY.parse::<TokenKey>().expect("a key").sign(&claims).expect("a token")
}

fn join(room: &str, token: &str, loopback: bool) -> Value {
    json!({"type": "join", "version": 1, "room": room, "name": "x", "token": token, "loopback": loopback})
}

/// The code of the error, or `welcome`.
async fn asked(client: &mut Client, join: &Value) -> String {
    client.say(join).await;
    let answer = client.hear(&["welcome", "error"]).await;
    answer["code"].as_str().unwrap_or("welcome").to_owned()
}

/// How many of `clients` are let in, and how many are refused by each code.
async fn all_ask(clients: &mut [Client], join: impl Fn(usize) -> Value) -> (usize, Vec<String>) {
    let mut refused = Vec::new();
    for (n, client) in clients.iter_mut().enumerate() {
        let answer = asked(client, &join(n)).await;
        if answer != "welcome" {
            refused.push(answer);
        }
    }
    let let_in = clients.len() - refused.len();
    refused.dedup();
    (let_in, refused)
}

async fn opened(server: &Server, count: usize, address: &str) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(Client::open_with(server, "/ws", &[("x-forwarded-for", address)]).await);
    }
    clients
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rooms_of_ones_own_take_no_room_from_anybody() {
    let scene = Scene::open(&["--token-key", TOKEN_KEY, "--trusted-proxies", "127.0.0.1"]);
    let server = &scene.server;
    let mut mallory = opened(server, 200, "203.0.113.1").await;
    let weak = token("me", "mallory", &[]);
    let nobody = all_ask(&mut mallory, |_| join("me", &weak, true)).await;
    assert_eq!(nobody, (0, vec!["forbidden".to_owned()]));
    // One identity, with a token that is good for that: a quarter of as many as there may be rooms.
    let good = token("*", "mallory", &Grant::PARTICIPANT);
    let quarter = (50, vec!["rate_limited".to_owned()]);
    assert_eq!(all_ask(&mut mallory, |_| join("me", &good, true)).await, quarter);
    drop(mallory);
    server.wait_for_metric("windlass_sfu_rooms", 2.0);
    // One address, with as many identities as it likes: the same of either kind.
    let mut many = opened(server, 100, "203.0.113.2").await;
    let each = |n: usize| token("*", &format!("m{n}"), &Grant::PARTICIPANT);
    for loopback in [true, false] {
        let rooms = all_ask(&mut many, |n| join(&format!("room-{n}"), &each(n), loopback)).await;
        // Those who were let in have joined already.
        let refused = if loopback { (50, "rate_limited") } else { (50, "already_joined") };
        assert_eq!((rooms.0, rooms.1[0].as_str()), refused, "{rooms:?}");
    }
    // An honest user gets a room, and so does another beside it.
    for (n, address) in ["198.51.100.7", "198.51.100.8"].into_iter().enumerate() {
        let mut ana = opened(server, 1, address).await;
        let ana_s = token(&format!("tea-{n}"), "ana", &Grant::PARTICIPANT);
        assert_eq!(asked(&mut ana[0], &join(&format!("tea-{n}"), &ana_s, false)).await, "welcome");
    }
    drop(many);
    server.wait_for_metric("windlass_sfu_rooms", 2.0);
    scene.close();
}

/// Raises the limit of open files to what the system lets a process have.
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).expect("files");
}

#[test]
fn a_thousand_unfinished_request_heads_cost_forty_mebibytes() {
    raise_descriptors();
    let scene = Scene::open(&[]);
    let before = memory(&scene.server);
    // All but the end of the longest head that there may be, and of one that is longer.
    let head = |bytes: usize| format!("GET / HTTP/1.1\r\nhost: x\r\nx-pad: {}", "y".repeat(bytes));
    let (long, longer) = (head(12_000), head(64_000));
    let mut held = Vec::new();
    for n in 0..1000 {
        let mut stream = TcpStream::connect(scene.server.addr).expect("a connection");
        stream.set_nonblocking(true).expect("a connection");
        let head = if n % 10 == 0 { &longer } else { &long };
        // What the system does not take the server will not get.
        let _ = stream.write(head.as_bytes());
        held.push(stream);
    }
    std::thread::sleep(Duration::from_millis(500));
    let grown = (memory(&scene.server) - before) / KIB / KIB;
    eprintln!("1000 unfinished heads: {grown:.1} MiB");
    assert!(grown <= 40.0, "{grown} MiB");
    drop(held);
    scene.close();
}

/// Resident bytes of a server that speaks no plain HTTP.
fn resident(server: &Server) -> f64 {
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", server.pid())).expect("memory");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).expect("pages") * 4.0 * KIB
}

#[test]
fn unfinished_request_heads_over_tls_cost_no_more() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let file = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let (cert, key) = (file("cert.pem", certificate.clone()), file("key.pem", key));
    let server = Server::start_with(&["--tls", &format!("{cert},{key}")], &[ALLOCATOR]);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")).expect("one");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let opened = || {
        let name = "localhost".try_into().expect("a name");
        let connection = ClientConnection::new(config.clone(), name).expect("a connection");
        let stream = TcpStream::connect(server.addr).expect("a connection");
        let mut stream = StreamOwned::new(connection, stream);
        let head = format!("GET / HTTP/1.1\r\nhost: x\r\nx-pad: {}", "y".repeat(12_000));
        stream.write_all(head.as_bytes()).expect("a handshake");
        stream
    };
    let first = opened();
    let before = resident(&server);
    let held: Vec<_> = (0..250).map(|_| opened()).collect();
    std::thread::sleep(Duration::from_millis(500));
    let each = (resident(&server) - before) / KIB / held.len() as f64;
    eprintln!("an unfinished head over TLS: {each:.0} KiB");
    assert!(each <= 41.0, "{each} KiB each");
    drop((first, held));
}

/// The bytes of an upgrade, up to a socket that is open.
fn socket(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a connection");
    let upgrade = "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).expect("a connection");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
    stream
}

/// A masked frame (with zeros), of fewer than 64 KiB.
fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![head];
    match u8::try_from(payload.len()) {
        Ok(short) if short < 126 => frame.push(0x80 | short),
        _ => {
            frame.push(0x80 | 0x7e);
            frame.extend((payload.len() as u16).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

const TEXT: u8 = 0x01;
const CONTINUATION: u8 = 0x00;
const LAST: u8 = 0x80;
const PING: u8 = 0x89;

/// Everything that is said until the socket ends.
fn last_words(mut stream: TcpStream) -> String {
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

/// CPU time of the threads that serve sockets, in seconds.
fn sockets_time(server: &Server) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("threads");
    let ticks = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let spent = fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?;
        (!name.starts_with("sfu-")).then_some(spent)
    });
    ticks.sum::<f64>() / 100.0
}

/// What the threads that serve sockets take meanwhile, as a share of a core, beyond what they take without.
fn cost(server: &Server, attack: impl FnOnce()) -> f64 {
    let (from, begun) = (sockets_time(server), Instant::now());
    attack();
    // Of one that is closed at once, too: the system counts time in hundredths of a second.
    std::thread::sleep(SHORT.saturating_sub(begun.elapsed()));
    (sockets_time(server) - from) / begun.elapsed().as_secs_f64()
}

/// Long enough to count CPU time.
const SHORT: Duration = Duration::from_secs(2);
/// By then a socket that is flooded is closed.
const LONG: Duration = Duration::from_secs(15);

/// Sends the same again and again, however much the server takes, for so long at most; the socket's last words.
fn flood(server: &Server, first: &[u8], again: &[u8], most: Duration) -> String {
    let until = Instant::now() + most;
    let mut stream = socket(server);
    let _ = stream.write_all(first);
    let listening = stream.try_clone().expect("a socket");
    let heard = std::thread::spawn(move || last_words(listening));
    let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
    while Instant::now() < until && !heard.is_finished() {
        if stream.write(again).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
    heard.join().expect("what was heard")
}

#[test]
fn a_flood_of_frames_on_one_socket_costs_a_twentieth_of_a_core_and_ends_it() {
    let scene = Scene::open(&[]);
    let server = &scene.server;
    let idle = cost(server, || ());
    let begin = frame(TEXT, b"");
    let (empty, pings) = (frame(CONTINUATION, b"").repeat(10_000), frame(PING, b"").repeat(1000));
    // A whole one, in a packet of its own, is the dearest.
    let (one, single) = (frame(CONTINUATION, b""), frame(PING, b""));
    let floods = [
        ("empty", &begin, &empty, LONG),
        ("alone", &begin, &one, SHORT),
        ("ping", &single, &pings, LONG),
    ];
    for (name, first, again, most) in floods {
        let (mut heard, begun) = (String::new(), Instant::now());
        let cost = cost(server, || heard = flood(server, first, again, most)) - idle;
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("{name}: {:.1} % of a core for {seconds:.1} s", cost * 100.0);
        assert!(cost <= 0.05, "{name}: {cost} of a core, {idle} without");
        if name != "alone" {
            let told = heard.contains("rate_limited") && heard.contains(r#""fatal":true"#);
            assert!(told, "{name}: {heard}");
            assert!(seconds < LONG.as_secs_f64(), "{name}: it was closed before");
        }
    }
    server.wait_for_metric("windlass_signaling_sockets_flooded_total", 2.0);
    scene.close();
}

#[test]
fn strangers_send_no_long_messages() {
    let scene = Scene::open(&[]);
    let before = memory(&scene.server);
    let piece = vec![b'x'; 30 * 1024];
    let unfinished = |pieces: usize| {
        let mut stream = socket(&scene.server);
        for n in 0..pieces {
            let head = if n == 0 { TEXT } else { CONTINUATION };
            stream.write_all(&frame(head, &piece)).expect("a socket that takes it");
        }
        stream
    };
    let held: Vec<_> = (0..100).map(|_| unfinished(5)).collect();
    std::thread::sleep(Duration::from_millis(500));
    let each = (memory(&scene.server) - before) / KIB / held.len() as f64;
    eprintln!("an unfinished message of 150 KiB: {each:.0} KiB");
    // The bytes, and as much again while the buffer of the message grows.
    assert!(each < 200.0, "{each} KiB each");
    let heard = last_words(unfinished(6));
    assert!(heard.contains("rate_limited"), "{heard}");
    // A message as long as a `join` may be is read, and answered.
    let mut honest = socket(&scene.server);
    honest.write_all(&frame(TEXT, &piece)).expect("a socket");
    honest.write_all(&frame(LAST, b"")).expect("a socket");
    let mut answer = [0; 64];
    let read = honest.read(&mut answer).expect("an answer");
    assert!(String::from_utf8_lossy(&answer[..read]).contains("error"));
    drop((held, honest));
    scene.close();
}

/// A request by hand; status, location and body.
fn request(server: &Server, line: &str, head: &str, body: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(server.addr).expect("a connection");
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{head}content-length: {length}\r\n\r\n{body}"
    )
    .expect("a connection");
    let answer = last_words(stream);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let location = head.lines().find_map(|line| line.strip_prefix("location: "));
    (status, location.unwrap_or_default().to_owned(), body.to_owned())
}

/// An offer that sends, or receives, one video; and its mid.
fn offer(direction: Direction) -> (String, String) {
    let mut rtc = Rtc::builder().clear_codecs().enable_vp9(true).build(Instant::now());
    let mut api = rtc.sdp_api();
    let mid = api.add_media(MediaKind::Video, direction, None, None, None);
    (api.apply().expect("an offer").0.to_sdp_string(), mid.to_string())
}

#[test]
fn a_whip_or_whep_session_is_its_makers_whoever_else_has_its_address() {
    let scene = Scene::open(&["--token-key", TOKEN_KEY]);
    let server = &scene.server;
    let bearer = |identity: &str, grants: &[Grant]| {
        format!("authorization: Bearer {}\r\n", token("tea", identity, grants))
    };
    let others = [bearer("mallory", &[]), bearer("eve", &Grant::PARTICIPANT)];
    let begin = |way: &str, maker: &str, direction: Direction| {
        let head = format!("{maker}content-type: application/sdp\r\n");
        let (status, session, body) =
            request(server, &format!("POST /{way}/tea"), &head, &offer(direction).0);
        assert_eq!(status, 201, "{body}");
        for other in &others {
            let (status, _, body) = request(server, &format!("DELETE {session}"), other, "");
            assert!(status == 403 && body.contains("forbidden"), "{status} {body}");
            let head =
                format!("{other}content-type: application/trickle-ice-sdpfrag\r\nif-match: *\r\n");
            let (status, _, body) = request(server, &format!("PATCH {session}"), &head, "a=x\r\n");
            assert!(status == 403 && body.contains("forbidden"), "{status} {body}");
        }
        session
    };
    let (bob, carol) = (bearer("bob", &[Grant::Publish]), bearer("carol", &[Grant::Subscribe]));
    let whip = begin("whip", &bob, Direction::SendOnly);
    let whep = begin("whep", &carol, Direction::RecvOnly);
    // Nor is either the other's.
    assert_eq!(request(server, &format!("DELETE {whip}"), &carol, "").0, 403);
    assert_eq!(request(server, &format!("DELETE {whep}"), &bob, "").0, 403);
    assert_eq!(request(server, &format!("DELETE {whep}"), &carol, "").0, 200);
    assert_eq!(request(server, &format!("DELETE {whip}"), &bob, "").0, 200);
    scene.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_of_what_was_never_sent_change_no_figure() {
    let scene = Scene::open(&[]);
    let server = &scene.server;
    let rooms: Value = {
        let answer = server.get("/admin/rooms");
        serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("rooms")
    };
    let room = rooms["rooms"][0]["room"].as_str().expect("the honest call's room");
    let mut mallory = Client::open(server).await;
    let welcome = mallory.ask_to_join(room, "Mallory").await;
    let track = welcome["tracks"][0]["id"].clone();
    assert!(track.is_string(), "{welcome}");
    let all = u32::MAX;
    let report = json!({"type": "report", "track": track, "anchors_used": all, "anchors_late": all,
        "anchors_lost": all, "anchors_duplicate": all, "anchor_decay": {"per_frame": 1e9, "frames": 1.0}});
    for _ in 0..30 {
        mallory.say(&report).await;
    }
    let ignored =
        |reason: &str| format!("windlass_client_reports_ignored_total{{reason=\"{reason}\"}}");
    server.wait_for_metric(&ignored("unwatched"), 30.0);
    // Who watches is believed once a second, and no more than it was sent: here nothing.
    let (sdp, mid) = offer(Direction::RecvOnly);
    let subscribe = json!([{"mid": mid, "track": track}]);
    mallory
        .say(&json!({"type": "offer", "id": 1, "sdp": sdp, "publish": [], "subscribe": subscribe}))
        .await;
    let answer = mallory.hear(&["answer", "error"]).await;
    assert_eq!(answer["type"], "answer", "{answer}");
    for _ in 0..30 {
        mallory.say(&report).await;
    }
    server.wait_for_metric(&ignored("too_soon"), 27.0);
    assert!(server.metric("windlass_client_anchors_excess_total") > 8.0 * f64::from(all) - 1.0);
    for name in ["used", "late", "lost", "duplicate", "former_epoch"] {
        let counted = server.metric(&format!("windlass_client_anchors_{name}_total"));
        assert!(counted.abs() < 0.5, "{name}: {counted}");
    }
    drop(mallory);
    scene.close();
}
