//! Workers that SFUs learn of by leases in a real `nats-server`.

mod cluster;
mod server;

use std::thread::sleep;
use std::time::Duration;

use cluster::{ANCHORS, MOVES, Nats, TOKEN, Worker, alone, call, eventually, until, went_on};
use server::Server;

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
    let load = call(&server, "12");
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
    let load = call(&server, "9");
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
    let load = call(&server, "16");
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
