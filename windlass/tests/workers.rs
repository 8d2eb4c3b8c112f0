//! Enhancers in processes of their own: an SFU, two workers and real WebRTC clients, all of this program.

mod cluster;
mod server;

use std::thread::sleep;
use std::time::{Duration, Instant};

use cluster::{ANCHORS, MOVES, TOKEN, Worker, alone, call, moving_fps, until, went_on};
use server::{Server, eventually, figure, get_from};

fn two_workers() -> ([Worker; 2], Server) {
    let workers = [Worker::start(&[]), Worker::start(&[])];
    let urls = workers.iter().map(|w| w.url.clone()).collect::<Vec<_>>().join(",");
    let server =
        Server::start_enhanced(&["--workers", &urls, "--cluster-token", TOKEN, "--log", "info"]);
    (workers, server)
}

#[test]
fn publishers_are_enhanced_by_workers_and_spread_over_them() {
    let _turn = alone();
    let (workers, server) = two_workers();
    let load = call(&server);
    until(&server, ANCHORS, 4.0);
    assert_eq!((workers[0].streams(&server), workers[1].streams(&server)), (1.0, 1.0));
    let row = load.ended();
    assert!(row["anchors"].as_u64() > Some(4), "{row}");
    assert_eq!(row["anchors_broken"], 0, "{row}");
    assert!(server.metric(MOVES) < 0.5, "{}", server.log());
    assert!(server.metric("windlass_worker_malformed_total") < 0.5);
}

#[test]
fn a_worker_says_what_it_has_to_do_and_whether_it_takes_streams() {
    let _turn = alone();
    let mut worker = Worker::start(&["--metrics", "127.0.0.1:0"]);
    let at = worker.figures.unwrap();
    let says = |name| figure(&get_from(at, "/metrics", ""), name).unwrap();
    let (demand, wanted) = ("windlass_enhancer_compute_demand", "windlass_enhancer_devices_wanted");
    assert!(says(demand) < 1e-9, "nobody calls yet");
    assert!(get_from(at, "/readyz", "").starts_with("HTTP/1.1 200"));
    let server = Server::start_enhanced(&["--workers", &worker.url, "--cluster-token", TOKEN]);
    let load = call(&server);
    // Once a second, of those whose rate is known.
    eventually(&server, "wants compute", || says(demand) > 1e-4 && says(wanted) >= 1.0);
    assert!(says(demand) < says(wanted), "a part of one accelerator");
    worker.signal("-TERM");
    eventually(&server, "drains", || get_from(at, "/readyz", "").starts_with("HTTP/1.1 503"));
    assert!(get_from(at, "/healthz", "").starts_with("HTTP/1.1 200"), "it lives while it drains");
    worker.signal("-INT");
    worker.ended();
    load.ended();
}

/// What happens to the first worker in the middle of a call.
fn goes_on_without(signal: &str) {
    let _turn = alone();
    let (workers, server) = two_workers();
    let load = call(&server);
    load.settled();
    until(&server, ANCHORS, 6.0);
    workers[0].signal(signal);
    until(&server, MOVES, 1.0);
    let moved = Instant::now();
    while (workers[0].streams(&server), workers[1].streams(&server)) != (0.0, 2.0) {
        assert!(moved.elapsed() < Duration::from_secs(5), "{}", server.log());
        sleep(Duration::from_millis(20));
    }
    let anchors = server.metric(ANCHORS);
    until(&server, ANCHORS, anchors + 4.0);
    went_on(load);
}

#[test]
fn a_worker_that_is_killed_is_replaced() {
    goes_on_without("-KILL");
}

#[test]
fn a_worker_that_hangs_is_replaced_though_its_connection_lives() {
    goes_on_without("-STOP");
}

#[test]
fn who_does_not_show_the_token_gets_no_anchors_and_keeps_the_video() {
    let _turn = alone();
    let worker = Worker::start(&[]);
    let args = ["--workers", &worker.url, "--cluster-token", "another-clusters-token"];
    let server = Server::start_enhanced(&args);
    let row = call(&server).ended();
    assert!(server.metric(ANCHORS) < 0.5);
    assert!(server.metric(MOVES) >= 1.0 && server.log().contains("token"), "{}", server.log());
    assert!(moving_fps(&row) > 25.0, "{row}");
}
