//! What a server gives to whoever only seems to be on its own machine, and a log that nobody reads.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::honest::Scene;
use crate::server::{Client, Server, get_from};

/// A page of `http://evil.example`, whose name has been made to lead here (DNS rebinding): for the browser, the server
/// is its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_name_leads_to_the_server_is_not_its_own() {
    let scene = Scene::open(&["--origins", "https://calls.example"]);
    let host = format!("evil.example:{}", scene.server.addr.port());
    let origin = format!("http://{host}");
    let head = [("host", host.as_str()), ("origin", origin.as_str())];
    assert_eq!(Client::try_open(&scene.server, "/ws", &head).await.err(), Some(403));
    let join = Client::try_open(&scene.server, "/ws", &[("origin", "https://calls.example")]).await;
    assert!(join.is_ok(), "the page that was named");
    // Without an origin, as a page asks for what is of its own origin.
    for path in ["/admin/rooms", "/admin/rooms/loadtest-0"] {
        let answer = asked(&scene.server, path, &host);
        assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
    }
    let own = asked(&scene.server, "/admin/rooms", "localhost");
    assert!(own.starts_with("HTTP/1.1 200"), "{own}");
    // Through what passes requests of others on.
    for passed_on in ["cf-connecting-ip", "x-client-ip", "true-client-ip", "x-forwarded-host"] {
        let head = format!("{passed_on}: 192.0.2.1\r\n");
        let answer = get_from(scene.server.addr, "/admin/rooms", &head);
        assert!(answer.starts_with("HTTP/1.1 403"), "{passed_on}: {answer}");
    }
    scene.close();
}

/// The answer to a request that calls the server by a name.
fn asked(server: &Server, path: &str, host: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(server.addr).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Strangers come and go until the log is so long.
async fn make_lines(server: &Server, done: impl Fn(&Server) -> bool) {
    let since = Instant::now();
    while !done(server) {
        assert!(since.elapsed() < Duration::from_secs(20), "the log does not fill");
        let come = (0..16).map(|_| async {
            let mut client = Client::open(server).await;
            for _ in 0..16 {
                let room = json!({"type": "join", "version": 1, "room": "tea", "name": "Eve"});
                client.say(&room).await;
                client.hear(&["welcome", "error"]).await;
                client.say(&json!({"type": "leave"})).await;
            }
        });
        futures_util::future::join_all(come).await;
    }
}

const LOST: &str = "windlass_log_lines_lost_total";

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_holds_up_no_call_and_says_what_it_lost() {
    let scene = Scene::open(&["--log", "debug"]);
    let server = &scene.server;
    server.is_read(false);
    make_lines(server, |server| server.metric(LOST) > 0.0).await;
    let since = Instant::now();
    for path in ["/healthz", "/readyz", "/"] {
        server.get(path);
    }
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    server.is_read(true);
    server.wait_for_log("log lines dropped");
    scene.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_log_nobody_reads_ends_when_it_is_told_to() {
    for signal in ["-INT", "-TERM"] {
        let mut server = Server::start(&["--log", "debug", "--drain-timeout", "1s"]);
        server.is_read(false);
        make_lines(&server, |server| server.metric(LOST) > 0.0).await;
        server.signal(signal);
        let (code, took) = server.ended();
        assert_eq!(code, Some(0), "{signal}");
        assert!(took < Duration::from_secs(6), "{signal}: {took:?}");
    }
}
