//! Logs tell what happens and not to whom.

mod server;

use std::process::Command;

use serde_json::json;
use server::{Client, Server, lab};

/// What nobody may read in a log: of the joins below, and of session descriptions.
const SECRETS: [&str; 12] = [
    "Quarterly-Layoffs",
    "Ana Kowalska",
    "eyJhbGciOiJIUzI1NiJ9",
    "198.51.100.77",
    "2001:db8:77",
    "loadtest-",
    "ice-pwd",
    "ice-ufrag",
    "a=fingerprint",
    "a=candidate",
    "m=video",
    "Cookie-Of-Ana",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_level_up_to_debug_logs_names_rooms_addresses_tokens_or_session_descriptions() {
    for level in ["error", "warn", "info", "debug"] {
        let server = Server::start(&["--log", level, "--trusted-proxies", "127.0.0.1"]);
        // A person through a proxy, with everything that could be logged.
        let path = "/ws?token=eyJhbGciOiJIUzI1NiJ9&room=Quarterly-Layoffs";
        let head = [
            ("x-forwarded-for", "198.51.100.77"),
            ("authorization", "Bearer eyJhbGciOiJIUzI1NiJ9"),
            ("cookie", "session=Cookie-Of-Ana"),
        ];
        let mut client = Client::open_with(&server, path, &head).await;
        let answer = client.ask_to_join("Quarterly-Layoffs", "Ana Kowalska").await;
        assert_eq!(answer["type"], "welcome");
        // What is refused is not quoted either.
        client.say_text(r#"{"type":"Ana Kowalska","room":"Quarterly-Layoffs"}"#).await;
        client.hear(&["error"]).await;
        let refused = [("x-forwarded-for", "2001:db8:77::1")];
        let mut other = Client::open_with(&server, path, &refused).await;
        other
            .say_text(
                r#"{"type":"join","version":99,"room":"Quarterly-Layoffs","name":"Ana Kowalska"}"#,
            )
            .await;
        other.hear(&["error"]).await;
        // Calls of real WebRTC clients.
        let url = format!("http://{}", server.addr);
        let ran = lab()
            .args(["loadtest", "--server", &url, "--publishers", "1", "--seconds", "1"])
            .args(["--ramp", "0", "--clip-seconds", "1"])
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        assert!(server.metric("windlass_sfu_rtp_in_total") > 0.0);
        drop((client, other));
        server.wait_for_metric("windlass_sfu_participants", 0.0);
        let log = server.log();
        assert_eq!(log.contains("joined"), ["info", "debug"].contains(&level), "{level}: {log}");
        for secret in SECRETS {
            let line = log.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} at {level}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_access_tokens_nor_their_keys_are_logged() {
    let key = "k1=Do-Not-Tell-Anybody-What-Stands-Here-0";
    let made = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args([
            "token",
            "--key",
            key,
            "--room",
            "Quarterly-Layoffs",
            "--identity",
            "ana.k",
            "--ttl",
            "1h",
        ])
        .output()
        .unwrap();
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let server = Server::start(&["--log", "debug", "--token-key", key]);
    for (room, expected) in [("Quarterly-Layoffs", "welcome"), ("Another-Room", "error")] {
        let mut client = Client::open(&server).await;
        let join =
            json!({"type": "join", "version": 1, "room": room, "name": "Ana", "token": token});
        client.say(&join).await;
        assert_eq!(client.hear(&["welcome", "error"]).await["type"], expected);
    }
    server.wait_for_log("join refused");
    let log = server.log();
    let signature = token.rsplit('.').next().unwrap();
    for secret in [signature, "Do-Not-Tell", "ana.k", "Quarterly-Layoffs", "Another-Room"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_so_many_sockets_and_joins_and_its_neighbours_have_theirs() {
    let limits = ["--max-per-ip", "sockets=2,joins=3"];
    let server = Server::start(&[&limits[..], &["--trusted-proxies", "127.0.0.1"]].concat());
    let from = |address| [("x-forwarded-for", address)];
    let mut one = Client::open_with(&server, "/ws", &from("2001:db8::1")).await;
    let mut two = Client::open_with(&server, "/ws", &from("2001:db8::2")).await;
    let refused = Client::try_open(&server, "/ws", &from("2001:db8::3")).await;
    assert_eq!(refused.err(), Some(429), "one customer's network is one address");
    let mut other = Client::open_with(&server, "/ws", &from("192.0.2.1")).await;
    for client in [&mut one, &mut two] {
        assert_eq!(client.ask_to_join("tea", "Ana").await["type"], "welcome");
    }
    one.say_text(r#"{"type":"leave"}"#).await;
    assert_eq!(one.ask_to_join("tea", "Ana").await["type"], "welcome");
    one.say_text(r#"{"type":"leave"}"#).await;
    let answer = one.ask_to_join("tea", "Ana").await;
    assert_eq!((&answer["code"], &answer["fatal"]), (&"rate_limited".into(), &false.into()));
    assert_eq!(other.ask_to_join("tea", "Bo").await["type"], "welcome");
    let refused = "windlass_signaling_sockets_refused_total{reason=\"address\"}";
    assert!((server.metric(refused) - 1.0).abs() < 1e-9);
    assert!((server.metric("windlass_signaling_joins_limited_total") - 1.0).abs() < 1e-9);
}
