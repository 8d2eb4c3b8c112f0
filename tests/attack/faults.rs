//! What breaks all the same breaks one connection, or ends the process: panics that are planted into a server built for
//! development (`sfu/src/core/fault_injection.rs`), clients that never connect, and data channels without end.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use str0m::Rtc;
use str0m::media::{Direction, MediaKind};

use crate::guest::Guest;
use crate::honest::{Scene, alone};
use crate::server::load::Load;
use crate::server::{Client, Server};

const FAULTS: &str = "windlass_sfu_faults_total";
const SECOND: Duration = Duration::from_secs(1);

/// A scene with faults planted; none where the server is no build for development.
fn scene(plant: &str) -> Option<Scene> {
    let env = [("WINDLASS_PLANT", plant)];
    cfg!(debug_assertions).then(|| Scene::with(&["--device=off"], &["--no-anchors"], &env))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_in_an_offer_a_packet_or_a_timer_ends_that_connection_and_nothing_else() {
    let rooms = [("offer", "attic"), ("packet", "barn"), ("timer", "cellar")];
    let plant = rooms.map(|(what, room)| format!("{what}@{room}")).join(",");
    let Some(scene) = scene(&plant) else { return };
    for (n, (what, room)) in rooms.into_iter().enumerate() {
        let mut guest = Guest::join(&scene.server, room).await;
        let answer = guest.negotiate().await;
        assert_eq!(answer["type"] == "error", what == "offer", "{answer}");
        guest.connect(SECOND / 2);
        let error = if answer["fatal"] == true { answer } else { guest.ended().await };
        assert_eq!(error["code"], "internal", "{error}");
        assert!(error["message"].as_str().is_some_and(|m| m.contains("fault")), "{error}");
        scene.server.wait_for_metric(FAULTS, n as f64 + 1.0);
        // It was that connection's: the next one in the same room is served.
        let mut next = Guest::join(&scene.server, room).await;
        let answer = next.negotiate().await;
        assert_eq!(answer["type"], "answer", "{answer}");
        assert!(next.connect(5 * SECOND), "{what}: {}", scene.server.log());
    }
    let log = scene.server.log();
    assert_eq!(log.matches("panic in the work for one participant").count(), 3, "{log}");
    assert_eq!(log.matches("fault_injection.rs").count(), 3, "each with its place, once: {log}");
    for (_, room) in rooms {
        assert!(!log.contains(room), "nothing foreign is logged: {log}");
    }
    scene.close();
}

/// Runs a test that has a server of its own, where there is a build for development.
fn alone_where_planted(test: impl Future<Output = ()>) {
    if cfg!(debug_assertions) {
        let _alone = alone();
        tokio::runtime::Runtime::new().expect("a runtime").block_on(test);
    }
}

/// Somebody who publishes and somebody who watches, alone on their server, until they are told to end.
fn call(server: &Server) -> Load {
    let one = ["--publishers", "1", "--ramp", "0.1", "--settle", "0.5", "--seconds", "60"];
    let short = ["--clip-seconds", "1", "--key-every", "1", "--no-anchors"];
    let call = Load::begin(server, &[&one[..], &short].concat(), 2.0, 20 * SECOND);
    // It measures from now on: what it asks the server for first, a server that is ill could not tell.
    std::thread::sleep(2 * SECOND);
    call
}

fn gap_ms(call: Load) -> f64 {
    let row = call.ended();
    let figure = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("no {key} in {row}"));
    let gap = figure("gap_max_ms");
    assert!(gap > 0.0, "there was no call");
    // Without the time for which the machine kept the viewers waiting themselves.
    gap - figure("stall_max_ms")
}

#[test]
fn a_media_thread_that_panics_ends_the_process_within_a_second() {
    alone_where_planted(async {
        let env = [("WINDLASS_PLANT", "thread@attic")];
        let mut server = Server::start_with(&["--forwarding-threads", "2"], &env);
        let mut other = Guest::join(&server, "barn").await;
        assert_eq!(other.negotiate().await["type"], "answer");
        assert!(other.connect(5 * SECOND));
        let mut client = Client::open(&server).await;
        client.say(&json!({"type": "join", "version": 1, "room": "attic", "name": "Guest"})).await;
        let (status, took) = server.ended();
        assert!(status.is_some_and(|status| status != 0), "{status:?}: {}", server.log());
        assert!(took < SECOND, "{took:?}: {}", server.log());
        let log = server.log();
        assert!(log.contains("has ended") && log.contains("supervisor"), "{log}");
        assert_eq!(log.matches("fault_injection.rs").count(), 1, "{log}");
        assert!(!log.contains("attic"), "{log}");
    });
}

#[test]
fn a_media_thread_that_hangs_is_told_and_gets_no_rooms_while_the_other_goes_on() {
    alone_where_planted(async {
        let env = [("WINDLASS_PLANT", "hang@attic")];
        let mut server = Server::start_with(&["--forwarding-threads", "2"], &env);
        let call = call(&server);
        assert_eq!(server.status("/healthz"), 200);
        let (_gone, _) = Client::join(&server, "attic", "Guest").await;
        let since = Instant::now();
        while server.status("/healthz") == 200 {
            assert!(since.elapsed() < 9 * SECOND, "healthy for ever: {}", server.log());
            std::thread::sleep(SECOND / 5);
        }
        assert!(server.get("/healthz").contains("has not responded"), "{}", server.get("/healthz"));
        let health = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["health", "--server", &format!("http://{}", server.addr)])
            .output()
            .expect("windlass health");
        assert!(!health.status.success(), "{health:?}");
        let page = server.get("/metrics");
        assert!(page.contains("windlass_sfu_healthy 0"), "{page}");
        assert!(!page.contains("windlass_sfu_participants"), "no figures that nobody can give");
        for room in ["barn", "cellar", "den"] {
            let (_client, welcome) = Client::join(&server, room, "Guest").await;
            assert_eq!(
                welcome["type"], "welcome",
                "a new room at the thread that lives: {welcome}"
            );
        }
        let gap = gap_ms(call);
        assert!(gap < 200.0, "a gap of {gap} ms at the other thread");
        assert!(server.is_running());
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_never_offers_or_never_connects_is_gone_in_time() {
    // 30 s, but for this server.
    let Some(scene) = scene("connect@4") else { return };
    let server = &scene.server;
    let mut silent = Guest::join(server, "attic").await;
    let mut away = Guest::join(server, "attic").await;
    assert_eq!(away.negotiate().await["type"], "answer");
    let session = post(server, "/whip/attic", &camera());
    assert!(session.starts_with("HTTP/1.1 201"), "{session}");
    for guest in [&mut silent, &mut away] {
        let error = guest.ended().await;
        assert_eq!(error["code"], "no_media", "{error}");
    }
    // The third is the session of WHIP.
    let count = || server.metric("windlass_sfu_peers_unconnected_total");
    let since = Instant::now();
    while count() < 3.0 {
        assert!(since.elapsed() < 5 * SECOND, "{} gone: {}", count(), server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    drop((silent, away));
    scene.close();
}

/// An offer to publish, from an address where nobody is.
fn camera() -> String {
    let mut rtc = Rtc::builder().clear_codecs().enable_vp9(true).build(Instant::now());
    let mut api = rtc.sdp_api();
    api.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
    api.apply().expect("an offer").0.to_sdp_string()
}

/// Status line, head and body of the answer.
fn post(server: &Server, path: &str, sdp: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(server.addr).expect("the server");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/sdp\r\ncontent-length: {}\r\n\r\n",
        sdp.len()
    );
    stream.write_all((head + sdp).as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channel_after_channel_ends_whoever_opens_them() {
    let scene = Scene::open(&[]);
    let server = &scene.server;
    // Other clients open an empty one by habit: it is closed, and they stay.
    let mut habit = Guest::join(server, "attic").await;
    assert_eq!(habit.negotiate().await["type"], "answer");
    assert!(habit.connect(5 * SECOND));
    let chat = habit.open(None);
    for stream in [None, Some(100)] {
        let mut guest = Guest::join(server, "attic").await;
        assert_eq!(guest.negotiate().await["type"], "answer");
        assert!(guest.connect(5 * SECOND));
        // Opened, or only sent on.
        let all: Vec<_> = (0..400).map(|n| guest.open(stream.map(|first| first + n))).collect();
        guest.linger(SECOND / 4);
        for id in all {
            if let Some(mut channel) = guest.rtc().channel(id) {
                let _ = channel.write(true, b"more");
            }
        }
        guest.linger(SECOND / 4);
        let error = guest.ended().await;
        assert_eq!(error["code"], "too_large", "{error}");
    }
    habit.linger(SECOND / 2);
    assert!(habit.rtc().channel(chat).is_none(), "closed");
    server.wait_for_metric("windlass_sfu_peers_channels_total", 2.0);
    assert!(server.metric("windlass_sfu_connected") > 4.5, "the one by habit is there");
    drop(habit);
    scene.close();
}
