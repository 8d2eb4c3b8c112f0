//! HTTPS and secure WebSockets, under a TLS client that checks the certificate.

mod server;

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use server::Server;
use server::tls::{Stream, get_of};
use tokio_tungstenite::tungstenite::{self, Message};

fn connect(server: &Server, trusted: &[u8], name: &str) -> Result<Stream, String> {
    server::tls::connect(server.addr, trusted, name)
}

fn get(stream: Stream, path: &str) -> String {
    get_of(stream, "localhost", path)
}

/// A certificate for localhost and its key, in files of a folder.
fn write_pair(folder: &Path) -> Vec<u8> {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("key.pem"), pair.signing_key.serialize_pem()).unwrap();
    std::fs::write(folder.join("cert.pem"), pair.cert.pem()).unwrap();
    pair.cert.pem().into_bytes()
}

fn with_files(folder: &Path) -> Server {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    Server::start(&["--tls", &format!("{},{}", path("cert.pem"), path("key.pem"))])
}

#[test]
fn the_page_and_secure_websockets_are_served_by_a_certificate_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let trusted = write_pair(dir.path());
    let server = with_files(dir.path());
    assert!(server.said.contains("https://localhost:"), "{}", server.said);
    let answer = get(connect(&server, &trusted, "localhost").unwrap(), "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let stream = connect(&server, &trusted, "localhost").unwrap();
    let (mut socket, _) = tungstenite::client("wss://localhost/ws", stream).unwrap();
    let join = r#"{"type":"join","version":1,"room":"tea","name":"Ana"}"#;
    socket.send(Message::text(join)).unwrap();
    let Message::Text(text) = socket.read().unwrap() else { panic!("no text") };
    let welcome: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(welcome["type"], "welcome");
    assert!(connect(&server, &trusted, "example.org").is_err(), "it is for localhost");
    let metrics = get(connect(&server, &trusted, "localhost").unwrap(), "/metrics");
    assert!(metrics.contains("windlass_tls_handshakes_total{outcome=\"done\"} 3"), "{metrics}");
    let ends = metrics.lines().find_map(|l| {
        l.strip_prefix("windlass_tls_certificate_not_after_timestamp_seconds ")?.parse::<f64>().ok()
    });
    assert!(ends > Some(1.7e9), "{metrics}");
}

#[test]
fn browsers_are_told_to_come_by_https_alone_but_not_at_localhost_nor_by_a_certificate_of_the_servers_own()
 {
    let dir = tempfile::tempdir().unwrap();
    let trusted = write_pair(dir.path());
    let told = |server: &Server, trusted: &[u8], host: &str| {
        let answer = get_of(connect(server, trusted, "localhost").unwrap(), host, "/healthz");
        answer.to_ascii_lowercase().contains("\r\nstrict-transport-security: max-age=15552000\r\n")
    };
    let server = with_files(dir.path());
    assert!(told(&server, &trusted, "calls.example"));
    assert!(!told(&server, &trusted, "localhost:7880") && !told(&server, &trusted, "192.0.2.1"));
    let env = [("XDG_CACHE_HOME", dir.path().to_str().unwrap())];
    let server = Server::start_with(&["--tls=self-signed"], &env);
    let own = std::fs::read(dir.path().join("windlass/tls/cert.pem")).unwrap();
    assert!(!told(&server, &own, "calls.example"));
}

#[test]
fn a_changed_certificate_is_used_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let first = write_pair(dir.path());
    let server = with_files(dir.path());
    let second = write_pair(dir.path());
    server.signal("-HUP");
    server.wait_for_log("TLS certificate reloaded");
    assert!(connect(&server, &first, "localhost").is_err());
    assert!(connect(&server, &second, "localhost").is_ok());
    // Without a signal: the change is seen. The former certificate stays in use.
    std::fs::write(dir.path().join("cert.pem"), "broken").unwrap();
    server.wait_for_log("TLS certificate not reloaded, the former one stays in use");
    assert!(server.log().contains("cert.pem"), "{}", server.log());
    assert!(connect(&server, &second, "localhost").is_ok());
}

#[test]
fn a_development_certificate_is_made_kept_and_for_localhost() {
    let cache = tempfile::tempdir().unwrap();
    let env = [("XDG_CACHE_HOME", cache.path().to_str().unwrap())];
    let server = Server::start_with(&["--tls=self-signed"], &env);
    let certificate = cache.path().join("windlass/tls/cert.pem");
    let first = std::fs::read(&certificate).unwrap();
    let answer = get(connect(&server, &first, "localhost").unwrap(), "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(server);
    let server = Server::start_with(&["--tls=self-signed"], &env);
    assert_eq!(std::fs::read(&certificate).unwrap(), first);
    assert!(connect(&server, &first, "127.0.0.1").is_ok());
}

#[test]
fn slow_and_plain_clients_hold_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let trusted = write_pair(dir.path());
    let server = with_files(dir.path());
    let mut slow: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(server.addr).unwrap()).collect();
    for stream in &mut slow {
        // The beginning of a ClientHello, and no more.
        stream.write_all(&[22, 3, 1]).unwrap();
    }
    let since = Instant::now();
    let answer = get(connect(&server, &trusted, "localhost").unwrap(), "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200") && since.elapsed() < Duration::from_secs(5));
    let answer = server.get("/");
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("https://"), "{answer}");
}

#[test]
fn certificate_and_key_come_together_or_not_at_all() {
    for args in [
        ["--tls", "a.pem"].as_slice(),
        &["--tls", ",a.pem"],
        &["--tls=self-signed", "--tls", "a.pem,b.pem"],
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"))
            .arg("serve")
            .args(args)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains("--tls"), "{error}");
    }
}
