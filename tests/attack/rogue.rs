//! Somebody who can write to the cluster's NATS, and somebody who says that they are another.

use std::time::Duration;

use async_nats::jetstream::{self, kv::Store};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use windlass_cluster::rooms::room_key;

use crate::cluster::{Nats, TOKEN};
use crate::honest::Scene;
use crate::server::free::free_address;
use crate::server::{Client, Server, eventually};

const EVIL: &str = "127.0.0.1:9";
const NODES: &str = "windlass-nodes";
const ROOMS: &str = "windlass-rooms";

/// What a server of the cluster is told, at a port that it says to clients.
fn options(nats: &Nats) -> Vec<String> {
    let port = free_address().port();
    let node = format!("ws://127.0.0.1:{port}/ws");
    let all = ["--nats", &nats.url(), "--cluster-token", TOKEN, "--node-url", &node];
    let all = all.iter().map(ToString::to_string);
    all.chain(["--http".to_owned(), format!("127.0.0.1:{port}")]).collect()
}

/// Two servers that know each other, with an honest call at the first.
fn cluster(nats: &Nats) -> (Scene, Server) {
    let (ours, others) = (options(nats), options(nats));
    let strs = |all: &[String]| all.iter().map(|s| &*s.clone().leak()).collect::<Vec<&str>>();
    let scene = Scene::open(&strs(&ours));
    let other = Server::start(&strs(&others));
    for server in [&scene.server, &other] {
        eventually(server, "two servers", || server.metric("windlass_cluster_nodes") > 1.5);
    }
    (scene, other)
}

/// A bucket, as anybody sees it who can reach NATS.
async fn bucket(nats: &Nats, name: &str) -> Store {
    let client = async_nats::connect(nats.url()).await.unwrap();
    jetstream::new(client).get_key_value(name).await.unwrap()
}

/// The claim to a room: a server that has just begun lets people in before it can read and write claims.
async fn claim(rooms: &Store, room: &str) -> Bytes {
    for _ in 0..100 {
        if let Some(claim) = rooms.get(room_key(room)).await.unwrap() {
            return claim;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody claims {room}");
}

/// Asks to join; the answer is `welcome`, `moved` or `error`.
async fn asks(server: &Server, room: &str) -> (Client, Value) {
    let mut client = Client::open(server).await;
    client.say(&json!({"type": "join", "version": 1, "room": room, "name": "Ana"})).await;
    let answer = client.hear(&["welcome", "moved", "error"]).await;
    (client, answer)
}

/// Whether somebody is told to go elsewhere.
async fn is_sent_away(client: &mut Client) -> bool {
    timeout(Duration::from_millis(500), client.hear(&["moved"])).await.is_ok()
}

fn rogues(server: &Server, bucket: &str, reason: &str) -> f64 {
    let name = format!(
        "windlass_cluster_rejected_entries_total{{bucket=\"{bucket}\",reason=\"{reason}\"}}"
    );
    server.metric_if_any(&name).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_can_write_to_nats_takes_no_room_and_sends_nobody_away() {
    let Some(nats) = Nats::start(None) else { return };
    let (scene, other) = cluster(&nats);
    let (mut ana, answer) = asks(&scene.server, "board").await;
    assert_eq!(answer["type"], "welcome", "{answer}");
    let (nodes, rooms) = (bucket(&nats, NODES).await, bucket(&nats, ROOMS).await);
    let lease = format!(r#"{{"url":"ws://{EVIL}/ws","participants":0,"draining":false}}"#);
    for turn in 0..15 {
        nodes.put("deadbeefdeadbeef", lease.clone().into()).await.unwrap();
        for room in ["board", "fresh"] {
            let claim = r#"{"node":"deadbeefdeadbeef"}"#;
            rooms.put(room_key(room), claim.into()).await.unwrap();
        }
        if turn % 5 == 4 {
            rooms.delete(room_key("board")).await.unwrap();
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert!(!is_sent_away(&mut ana).await, "those who are in a room stay");
    let (_fresh, answer) = asks(&scene.server, "fresh").await;
    assert_eq!(answer["type"], "welcome", "a room that nobody has is whose who is asked: {answer}");
    let others = answer["others"].as_array().unwrap();
    assert!(others.len() == 1 && others[0] == format!("ws://{}/ws", other.addr), "{answer}");
    // Whose room it is is known elsewhere too.
    let (_moved, answer) = asks(&other, "board").await;
    assert_eq!(
        (&answer["type"], &answer["url"]),
        (&json!("moved"), &json!(format!("ws://{}/ws", scene.server.addr)))
    );
    assert!(rogues(&scene.server, NODES, "unsealed") > 10.0);
    assert!(rogues(&scene.server, ROOMS, "unsealed") > 20.0);
    assert!((scene.server.metric("windlass_cluster_nodes") - 2.0).abs() < 0.5);
    let log = scene.server.log();
    assert_eq!(log.matches("rejected entries of a NATS bucket").count(), 2, "{log}");
    assert!(
        !log.contains("deadbeef") && !log.contains(EVIL) && !log.contains(&room_key("board")),
        "{log}"
    );
    scene.close();
}

#[test]
fn a_nats_with_a_password_lets_in_who_has_it_and_nobody_else() {
    let access = ["--user", "windlass", "--pass", "p4ssw0rd"];
    let Some(nats) = Nats::start_with(None, &access) else { return };
    let server = |who: &str| {
        let url = format!("nats://{who}127.0.0.1:{}", nats.port);
        Server::start(&["--nats", &url, "--cluster-token", TOKEN])
    };
    let (own, strangers) = (server("windlass:p4ssw0rd@"), [server(""), server("windlass:other@")]);
    eventually(&own, "let in", || own.metric("windlass_cluster_nats_connected") > 0.5);
    for stranger in &strangers {
        assert!(stranger.metric("windlass_cluster_nats_connected") < 0.5);
    }
    assert!(!own.log().contains("p4ssw0rd"), "{}", own.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_once_is_not_believed_when_it_is_said_again() {
    let Some(nats) = Nats::start(None) else { return };
    let (scene, other) = cluster(&nats);
    let (gone, answer) = asks(&other, "tea").await;
    assert_eq!(answer["type"], "welcome", "{answer}");
    let (nodes, rooms) = (bucket(&nats, NODES).await, bucket(&nats, ROOMS).await);
    let claim = claim(&rooms, "tea").await;
    let own = name(&claim);
    let lease = nodes.get(&own).await.unwrap().unwrap();
    other.signal("-KILL");
    drop(gone);
    let one = || scene.server.metric("windlass_cluster_nodes") < 1.5;
    eventually(&scene.server, "alone", one);
    let (mut ana, answer) = asks(&scene.server, "tea").await;
    assert_eq!(answer["type"], "welcome", "whose room it was is lost: {answer}");
    for _ in 0..10 {
        // The dead server's lease, its claim, and that for another room.
        nodes.put(&own, lease.clone()).await.unwrap();
        rooms.put(room_key("tea"), claim.clone()).await.unwrap();
        rooms.put(room_key("board"), claim.clone()).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    assert!(one(), "who is dead stays so");
    assert!(!is_sent_away(&mut ana).await);
    let (_board, answer) = asks(&scene.server, "board").await;
    assert_eq!(answer["type"], "welcome", "{answer}");
    assert!(rogues(&scene.server, NODES, "replayed") > 8.0);
    assert!(rogues(&scene.server, ROOMS, "replayed") > 8.0);
    assert!(rogues(&scene.server, ROOMS, "forged") > 8.0);
    scene.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_can_write_to_nats_gives_no_orders_and_repeats_none() {
    let Some(nats) = Nats::start(None) else { return };
    let (scene, other) = cluster(&nats);
    let (mut ana, answer) = asks(&other, "coffee").await;
    assert_eq!(answer["type"], "welcome", "{answer}");
    let rogue = async_nats::connect(nats.url()).await.unwrap();
    let mut orders = rogue.subscribe("windlass.orders.*").await.unwrap();
    // NATS does not say when it has taken a subscription: orders are given until one is overheard.
    let mut overheard = None;
    for _ in 0..20 {
        let all = scene.server.get("/admin/rooms");
        assert!(all.contains("coffee"), "{all}");
        overheard = timeout(Duration::from_secs(1), orders.next()).await.ok().flatten();
        if overheard.is_some() {
            break;
        }
    }
    let order = overheard.unwrap();
    let mut answers = rogue.subscribe("evil").await.unwrap();
    let unsealed =
        json!({"method": "DELETE", "path": "/admin/rooms/coffee", "body": ""}).to_string();
    for _ in 0..5 {
        for (subject, payload) in [
            (order.subject.clone(), order.payload.clone()),
            ("windlass.orders.deadbeef".into(), order.payload.clone()),
            (order.subject.clone(), unsealed.clone().into()),
        ] {
            rogue.publish_with_reply(subject, "evil", payload).await.unwrap();
        }
    }
    rogue.flush().await.unwrap();
    assert!(timeout(Duration::from_millis(500), answers.next()).await.is_err(), "none is answered");
    for reason in ["unsealed", "forged", "replayed"] {
        let counted = || (rogues(&other, "windlass-orders", reason) - 5.0).abs() < 0.1;
        eventually(&other, reason, counted);
    }
    let stays = timeout(Duration::from_millis(300), ana.hear(&["error"])).await.is_err();
    assert!(stays, "nobody is removed");
    scene.close();
}

/// The server whose claim that is, which is not secret.
fn name(claim: &[u8]) -> String {
    let text = String::from_utf8_lossy(claim);
    let (_, rest) = text.split_once("\"node\":\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_takes_anothers_place_by_their_own_word() {
    let Some(nats) = Nats::start(None) else { return };
    let (scene, _other) = cluster(&nats);
    let (mut bo, _) = asks(&scene.server, "board").await;
    let forged = "AQ".repeat(40);
    for said in
        [json!({"was": "1234567890"}), json!({"ticket": forged}), json!({"ticket": "1234567890"})]
    {
        let mut mallory = Client::open(&scene.server).await;
        let mut join = json!({"type": "join", "version": 1, "room": "board", "name": "Ana"});
        join.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        mallory.say(&join).await;
        let answer = mallory.hear(&["welcome", "error"]).await;
        assert_eq!(answer["type"], "welcome", "it is as if nothing were said: {answer}");
        let told = bo.hear(&["participant_joined"]).await;
        assert_eq!(told["was"], Value::Null, "{told}");
        assert_eq!(told["participant"], answer["participant"]);
    }
    let refused = scene.server.metric("windlass_cluster_tickets_refused_total");
    assert!((refused - 2.0).abs() < 0.5, "{refused}");
    scene.close();
}
