//! Rights while a call runs, on several real servers with a real `nats-server`.

mod cluster;
mod server;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_protocol::Grant;
use windlass_signaling::access::{Claims, Grants, TokenKey};

use cluster::{Nats, TOKEN, alone};
use server::free::free_address;
use server::{Client, Server, eventually};

const KEY: &str = "k1=0123456789abcdef0123456789abcdef";

fn token(room: &str, identity: &str, grants: &[Grant]) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let claims = Claims {
        room: room.to_owned(),
        sub: identity.to_owned(),
        name: None,
        grants: Grants::new(grants.iter().copied()),
        exp: now.as_secs_f64() + 600.0,
        nbf: None,
        jti: Some(format!("{identity}-token")),
    };
    KEY.parse::<TokenKey>().unwrap().sign(&claims).unwrap()
}

fn guest(identity: &str) -> String {
    token("tea", identity, &Grant::PARTICIPANT)
}

/// A server that wants one participant of a room.
fn serve(nats: &Nats) -> Server {
    let port = free_address().port();
    let (http, url) = (format!("127.0.0.1:{port}"), format!("ws://127.0.0.1:{port}/ws"));
    let nats = nats.url();
    Server::start(&[
        "--http",
        &http,
        "--nats",
        &nats,
        "--cluster-token",
        TOKEN,
        "--token-key",
        KEY,
        "--node-url",
        &url,
        "--node-listen",
        "127.0.0.1:0",
        "--node-max-participants",
        "1",
    ])
}

fn know_each_other(servers: &[&Server]) {
    for server in servers {
        eventually(server, "all servers", || {
            server.metric_if_any("windlass_cluster_nodes") == Some(servers.len() as f64)
        });
    }
}

/// Joins wherever the room is; what it is told there.
async fn join(server: &Server, token: &str, seat: &Value) -> (Client, Value) {
    let own = format!("ws://{}/ws", server.addr);
    let (mut url, since) = (own.clone(), Instant::now());
    while since.elapsed() < Duration::from_secs(10) {
        let Ok((socket, _)) = tokio_tungstenite::connect_async(&url).await else {
            // It was sent to one that is lost, which is not known yet.
            tokio::time::sleep(Duration::from_millis(100)).await;
            url.clone_from(&own);
            continue;
        };
        let mut client = Client(socket);
        let mut ask =
            json!({"type": "join", "version": 1, "room": "tea", "name": "N", "token": token});
        if seat.is_string() {
            ask["seat"] = seat.clone();
        }
        client.say(&ask).await;
        let answer = client.hear(&["welcome", "error", "waiting", "moved"]).await;
        if answer["type"] != "moved" {
            return (client, answer);
        }
        answer["url"].as_str().unwrap().clone_into(&mut url);
    }
    panic!("sent on and on: {}", server.log());
}

async fn refusal(server: &Server, token: &str) -> String {
    let (_, answer) = join(server, token, &Value::Null).await;
    answer["code"].as_str().unwrap_or("welcome").to_owned()
}

/// Until it is so, within five seconds.
async fn refused_as(server: &Server, token: &str, code: &str) {
    let since = Instant::now();
    while refusal(server, token).await != code {
        assert!(since.elapsed() < Duration::from_secs(5), "never {code}: {}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn moderate(client: &mut Client, mut order: Value) {
    order["type"] = json!("moderate");
    client.say(&order).await;
    let answer = client.hear(&["done", "error"]).await;
    assert_eq!(answer["type"], "done", "{answer}");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

#[test]
fn a_moderator_at_one_server_admits_restricts_and_bans_who_is_at_another() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    let (one, other) = (serve(&nats), serve(&nats));
    know_each_other(&[&one, &other]);
    runtime().block_on(async {
        let boss = token("tea", "boss", &[Grant::Subscribe, Grant::Moderate]);
        let (mut boss, _) = join(&one, &boss, &Value::Null).await;
        moderate(&mut boss, json!({"action": "lobby", "lobby": true})).await;
        let (mut ana, answer) = join(&one, &guest("ana"), &Value::Null).await;
        assert_eq!(answer["type"], "waiting");
        assert!(other.metric("windlass_signaling_sockets_open") > 0.5, "it waits at the other");
        let lobby = boss.hear(&["lobby"]).await;
        assert_eq!(lobby["waiting"][0]["identity"], "ana");
        let admit = json!({"action": "admit", "waiting": lobby["waiting"][0]["id"]});
        moderate(&mut boss, admit).await;
        let welcome = ana.hear(&["welcome", "error"]).await;
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        let joined = boss.hear(&["participant_joined"]).await;
        let whom = &joined["participant"];
        moderate(&mut boss, json!({"action": "grants", "participant": whom, "grants": []})).await;
        assert_eq!(ana.hear(&["grants"]).await["grants"], json!([]));
        let begun = Instant::now();
        moderate(&mut boss, json!({"action": "ban", "participant": whom})).await;
        assert_eq!(ana.hear(&["error"]).await["code"], "banned");
        println!("banned at another server {:?} later", begun.elapsed());
        assert_eq!(refusal(&one, &guest("ana")).await, "banned");
        assert_eq!(refusal(&other, &guest("ana")).await, "banned");
    });
}

#[test]
fn bans_locks_and_revocations_hold_everywhere_and_outlive_the_server_that_was_told() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    let (one, other) = (serve(&nats), serve(&nats));
    know_each_other(&[&one, &other]);
    let (ops, at) = (token("*", "ops", &[Grant::Admin]), one.addr);
    let put = |path: &str, body: &str| {
        let out = std::process::Command::new("curl")
            .args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "-X", "PUT", "--json", body])
            .args(["-H", &format!("authorization: Bearer {ops}")])
            .arg(format!("http://{at}{path}"))
            .output()
            .unwrap();
        assert!(out.stdout.starts_with(b"20"), "{path}: {}", String::from_utf8_lossy(&out.stdout));
    };
    runtime().block_on(async {
        let (_bo, welcome) = join(&one, &guest("bo"), &Value::Null).await;
        let seat = welcome["seat"].clone();
        put("/admin/rooms/tea/bans/mallory", "{}");
        put("/admin/revoked/eve-token", "{}");
        put("/admin/rooms/tea/entry", r#"{"locked": true, "seconds": 600}"#);
        refused_as(&other, &guest("mallory"), "banned").await;
        refused_as(&other, &guest("eve"), "revoked").await;
        refused_as(&other, &guest("cy"), "locked").await;
        one.signal("-KILL");
        drop(one);
        let third = serve(&nats);
        for server in [&other, &third] {
            refused_as(server, &guest("mallory"), "banned").await;
            refused_as(server, &guest("eve"), "revoked").await;
            refused_as(server, &guest("cy"), "locked").await;
        }
        // Who was in the room comes back into it, wherever it is now.
        let (_bo, answer) = join(&third, &guest("bo"), &seat).await;
        assert_eq!(answer["type"], "welcome", "{answer}");
    });
}

#[test]
fn rules_are_told_again_when_nats_has_lost_them() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    let one = serve(&nats);
    let ops = token("*", "ops", &[Grant::Admin]);
    let head = format!("authorization: Bearer {ops}");
    let url = format!("http://{}/admin/rooms/tea/bans/mallory", one.addr);
    let curl = ["-sS", "-X", "PUT", "--json", "{}", "-H", &head, &url];
    assert!(std::process::Command::new("curl").args(curl).status().unwrap().success());
    runtime().block_on(async {
        assert_eq!(refusal(&one, &guest("mallory")).await, "banned", "also without the others");
    });
    let port = nats.port;
    drop(nats);
    let Some(nats) = Nats::start(Some(port)) else { return };
    let other = serve(&nats);
    runtime().block_on(refused_as(&other, &guest("mallory"), "banned"));
}
