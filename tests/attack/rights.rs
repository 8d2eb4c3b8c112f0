//! Rights: who was put out and comes back, who moderates without the grant, and a crowd before a lobby.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use windlass_protocol::Grant;
use windlass_signaling::access::{Claims, Grants, TokenKey};

use crate::honest::{Scene, TOKEN_KEY, memory};
use crate::server::{Client, Server};

fn token(identity: &str, grants: &[Grant]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    let claims = Claims {
        room: "tea".to_owned(),
        sub: identity.to_owned(),
        name: None,
        grants: Grants::new(grants.iter().copied()),
        exp: now.as_secs_f64() + 600.0,
        nbf: None,
        jti: None,
    };
    TOKEN_KEY.parse::<TokenKey>().expect("a key").sign(&claims).expect("a token")
}

fn guest(identity: &str) -> String {
    token(identity, &Grant::PARTICIPANT)
}

fn ask(token: &str) -> Value {
    json!({"type": "join", "version": 1, "room": "tea", "name": "M", "token": token})
}

/// What comes of a join.
async fn join(server: &Server, token: &str) -> (Client, Value) {
    let mut client = Client::open(server).await;
    client.say(&ask(token)).await;
    let answer = client.hear(&["welcome", "error", "waiting"]).await;
    (client, answer)
}

async fn moderator(server: &Server) -> Client {
    join(server, &token("boss", &[Grant::Subscribe, Grant::Moderate])).await.0
}

/// What a moderator's message is answered: `done`, or the error's code.
async fn moderate(client: &mut Client, mut order: Value) -> String {
    order["type"] = json!("moderate");
    client.say(&order).await;
    let answer = client.hear(&["done", "error"]).await;
    answer["code"].as_str().unwrap_or("done").to_owned()
}

fn run(attack: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(attack);
}

#[test]
fn rights_who_is_banned_does_not_come_back_by_the_same_token() {
    let scene = Scene::open(&["--token-key", TOKEN_KEY]);
    run(async {
        let mut boss = moderator(&scene.server).await;
        let mallory = guest("mallory");
        let (mut there, welcome) = join(&scene.server, &mallory).await;
        let ban = json!({"action": "ban", "participant": welcome["participant"]});
        assert_eq!(moderate(&mut boss, ban).await, "done");
        assert_eq!(there.hear(&["error"]).await["code"], "banned");
        for _ in 0..200 {
            let (_, answer) = join(&scene.server, &mallory).await;
            assert_eq!(answer["code"], "banned");
        }
        let post = format!(
            "content-type: application/sdp\r\nauthorization: Bearer {mallory}\r\ncontent-length: 0\r\n"
        );
        let answer = request(&scene.server, "POST /whip/tea", &post);
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    });
    scene.close();
}

#[test]
fn rights_nobody_moderates_without_the_grant() {
    let scene = Scene::open(&["--token-key", TOKEN_KEY]);
    run(async {
        let (mut victim, welcome) = join(&scene.server, &guest("ana")).await;
        let (mut mallory, _) = join(&scene.server, &guest("mallory")).await;
        let whom = &welcome["participant"];
        for _ in 0..3 {
            for order in [
                json!({"action": "grants", "participant": whom, "grants": []}),
                json!({"action": "lock", "locked": true}),
                json!({"action": "lobby", "lobby": true}),
                json!({"action": "admit", "waiting": "w1"}),
                json!({"action": "refuse", "waiting": "w1"}),
                json!({"action": "remove", "participant": whom}),
                json!({"action": "ban", "participant": whom}),
                json!({"action": "unban", "identity": "ana"}),
                json!({"action": "mute", "track": "t1", "muted": true}),
            ] {
                assert_eq!(moderate(&mut mallory, order).await, "forbidden");
            }
        }
        victim.say(&json!({"type": "ping", "time": 1.0})).await;
        let heard = victim.hear(&["pong", "error", "grants", "entry"]).await;
        assert_eq!(heard["type"], "pong");
        let (_, answer) = join(&scene.server, &guest("bo")).await;
        assert_eq!(answer["type"], "welcome", "it is neither locked nor has it a lobby");
    });
    assert!(scene.server.metric("windlass_signaling_rules") < 0.5, "nothing was noted");
    scene.close();
}

#[test]
fn rights_a_crowd_before_a_lobby_is_bounded_and_costs_no_media() {
    let scene = Scene::open(&["--token-key", TOKEN_KEY]);
    let (rooms, before) = (scene.server.metric("windlass_sfu_participants"), memory(&scene.server));
    run(async {
        let mut boss = moderator(&scene.server).await;
        assert_eq!(moderate(&mut boss, json!({"action": "lobby", "lobby": true})).await, "done");
        let mut crowd = Vec::new();
        let mut refused = 0;
        for n in 0..150 {
            let (client, answer) = join(&scene.server, &guest(&format!("mallory{n}"))).await;
            match answer["type"].as_str() {
                Some("waiting") => crowd.push(client),
                _ => refused += u32::from(answer["code"] == "room_full"),
            }
        }
        assert_eq!((crowd.len(), refused), (100, 50));
        // One identity, again and again: it waits once.
        for _ in 0..100 {
            drop(join(&scene.server, &guest("mallory0")).await);
        }
        let participants = scene.server.metric("windlass_sfu_participants") - rooms;
        assert!(participants < 1.5, "only the moderator is in a room");
        let grown = memory(&scene.server) - before;
        eprintln!("a crowd of {} holds {grown} bytes", crowd.len());
        assert!(grown < 20e6, "{grown} bytes");
        drop(crowd);
        let lobby = loop {
            let lobby = boss.hear(&["lobby"]).await;
            if lobby["waiting"].as_array().is_some_and(Vec::is_empty) {
                break lobby;
            }
        };
        assert_eq!(lobby["waiting"], json!([]));
        let (_honest, answer) = join(&scene.server, &guest("ana")).await;
        assert_eq!(answer["type"], "waiting", "there is room again");
    });
    std::thread::sleep(Duration::from_millis(100));
    scene.close();
}

fn request(server: &Server, line: &str, head: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(server.addr).expect("a connection");
    write!(stream, "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{head}\r\n")
        .expect("a request");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}
