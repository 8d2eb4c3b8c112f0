//! Workers that SFUs learn of by leases in a real `nats-server`.

mod cluster;
mod server;

use std::thread::sleep;
use std::time::{Duration, Instant};

use cluster::{ANCHORS, MOVES, Nats, TOKEN, Worker, alone, call, until, went_on};
use serde_json::{Value, json};
use server::free::free_address;
use server::{Client, Server, eventually};

const CONNECTED: &str = "windlass_cluster_nats_connected";
const BALANCED: &str = "windlass_worker_balanced_total";

fn worker(nats: &Nats) -> Worker {
    Worker::start(&["--nats", &nats.url()])
}

fn sfu(nats: &Nats) -> Server {
    Server::start_enhanced(&["--nats", &nats.url(), "--cluster-token", TOKEN, "--log", "info"])
}

fn up(server: &Server, worker: &Worker) -> f64 {
    let name = format!("windlass_worker_up{{worker=\"{}\"}}", worker.url);
    server.metric_if_any(&name).unwrap_or_default()
}

#[test]
fn workers_come_by_their_leases_and_go_without_a_break() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    let server = sfu(&nats);
    let load = call(&server);
    until(&server, CONNECTED, 1.0);
    sleep(Duration::from_secs(1));
    assert!(server.metric(ANCHORS) < 0.5, "there is no worker");
    let mut first = worker(&nats);
    until(&server, ANCHORS, 4.0);
    assert!(first.streams(&server) > 1.5);
    let second = worker(&nats);
    eventually(&server, "two workers", || up(&server, &second) > 0.5);
    first.signal("-TERM");
    eventually(&server, "all elsewhere", || second.streams(&server) > 1.5);
    assert!(first.ended().success());
    let anchors = server.metric(ANCHORS);
    until(&server, ANCHORS, anchors + 4.0);
    assert!(server.metric(BALANCED) > 1.5);
    assert!(server.metric(MOVES) < 0.5, "none failed: {}", server.log());
    went_on(load);
}

#[test]
fn the_streams_of_a_killed_worker_have_anchors_again() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    let (workers, server) = ([worker(&nats), worker(&nats)], sfu(&nats));
    eventually(&server, "two workers", || workers.iter().all(|w| up(&server, w) > 0.5));
    let load = call(&server);
    load.settled();
    until(&server, ANCHORS, 6.0);
    workers[0].signal("-KILL");
    let gone = eventually(&server, "all elsewhere", || workers[1].streams(&server) > 1.5);
    let anchors = server.metric(ANCHORS);
    let again = until(&server, ANCHORS, anchors + 2.0);
    println!("the stream went after {gone:?}; two anchors later than that {again:?}");
    eventually(&server, "one lease", || up(&server, &workers[0]) < 0.5);
    went_on(load);
}

#[test]
fn without_nats_calls_go_on_and_it_heals_when_nats_is_back() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    let (workers, server) = ([worker(&nats), worker(&nats)], sfu(&nats));
    eventually(&server, "two workers", || workers.iter().all(|w| up(&server, w) > 0.5));
    let load = call(&server);
    until(&server, ANCHORS, 4.0);
    let port = nats.port;
    drop(nats);
    eventually(&server, "cut off", || server.metric(CONNECTED) < 0.5);
    // Longer than a lease holds.
    sleep(Duration::from_secs(3));
    let anchors = server.metric(ANCHORS);
    until(&server, ANCHORS, anchors + 4.0);
    assert!(workers.iter().all(|w| up(&server, w) > 0.5), "what was known holds");
    assert!(server.metric(MOVES) < 0.5, "{}", server.log());
    workers[0].signal("-KILL");
    eventually(&server, "all elsewhere", || workers[1].streams(&server) > 1.5);
    let Some(_nats) = Nats::start(Some(port)) else { return };
    until(&server, CONNECTED, 1.0);
    eventually(&server, "one lease", || up(&server, &workers[0]) < 0.5);
    assert!(up(&server, &workers[1]) > 0.5);
    let anchors = server.metric(ANCHORS);
    until(&server, ANCHORS, anchors + 2.0);
    went_on(load);
}

/// A server among others, at a port that its URL can name.
fn node(nats: &Nats, env: &[(&str, &str)]) -> Server {
    let free = free_address();
    let (http, url) = (free.to_string(), format!("ws://localhost:{}/ws", free.port()));
    let args = ["--http", &http, "--node-url", &url, "--nats", &nats.url()];
    Server::start_with(&[&args[..], &["--cluster-token", TOKEN]].concat(), env)
}

/// What is answered to whoever wants to join.
async fn asks(server: &Server, room: &str) -> Value {
    let mut client = Client::open(server).await;
    client.say(&json!({"type": "join", "version": 1, "room": room, "name": "Ana"})).await;
    client.hear(&["welcome", "moved", "error"]).await
}

#[test]
fn a_server_says_why_it_shares_no_rooms_with_one_without_tls() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    let url = nats.url();
    let args = ["--nats", &url, "--cluster-token", TOKEN, "--node-url"];
    let secure = Server::start(&[&args[..], &["wss://a.example/ws"]].concat());
    let _plain = Server::start(&[&args[..], &["ws://b.example/ws"]].concat());
    secure.wait_for_log("node-url begins with ws://, and that of this server with wss://");
    assert!((secure.metric("windlass_cluster_nodes") - 1.0).abs() < 0.1, "{}", secure.log());
}

#[test]
fn the_rooms_of_a_server_whose_media_thread_died_begin_elsewhere_within_three_seconds() {
    let _turn = alone();
    // Builds for development alone can be broken on purpose.
    let Some(nats) = Nats::start(None).filter(|_| cfg!(debug_assertions)) else { return };
    tokio::runtime::Runtime::new().unwrap().block_on(loses_its_thread(&nats));
}

async fn loses_its_thread(nats: &Nats) {
    let mut first = node(nats, &[("WINDLASS_PLANT", "thread@attic")]);
    let second = node(nats, &[]);
    for server in [&first, &second] {
        until(server, "windlass_cluster_nodes", 2.0);
    }
    let (_guest, welcome) = Client::join(&first, "tea", "Ana").await;
    assert_eq!(welcome["type"], "welcome", "{welcome}");
    until(&second, "windlass_cluster_rooms", 1.0);
    assert_eq!(asks(&second, "tea").await["type"], "moved", "it is at the first");
    let mut client = Client::open(&first).await;
    client.say(&json!({"type": "join", "version": 1, "room": "attic", "name": "Ana"})).await;
    let since = Instant::now();
    assert!(first.ended().0.is_some_and(|status| status != 0), "{}", first.log());
    let ended = since.elapsed();
    while asks(&second, "tea").await["type"] != "welcome" {
        assert!(since.elapsed() < Duration::from_secs(3), "{}", second.log());
        sleep(Duration::from_millis(50));
    }
    println!(
        "the process ended after {ended:?}, its room was elsewhere after {:?}",
        since.elapsed()
    );
    assert!(ended < Duration::from_secs(1), "{ended:?}");
}
