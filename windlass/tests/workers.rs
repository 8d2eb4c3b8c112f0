//! Enhancers in processes of their own: an SFU, two workers and real WebRTC clients, all of this program.

mod server;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;
use server::Server;

/// Each has five processes: one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const TOKEN: &str = "the-cluster-of-these-tests";

/// A real `windlass enhance`.
struct Worker {
    child: Child,
    url: String,
}

impl Worker {
    fn start(args: &[&str]) -> Worker {
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["enhance", "--listen", "127.0.0.1:0", "--anchor-fraction", "0.2"])
            .args(["--network", "xs", "--cluster-token", TOKEN])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let address = said.trim().trim_end_matches('.').rsplit(' ').next().unwrap();
        Worker { url: format!("http://{address}"), child }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two publishers with a subscriber each for so long, on the server; its report comes when it ends.
fn call(server: &Server, seconds: &str) -> JoinHandle<Output> {
    let url = format!("http://{}", server.addr);
    let mut load = Command::new(env!("CARGO_BIN_EXE_windlass"));
    load.args(["loadtest", "--server", &url, "--publishers", "2", "--ramp", "0.5"]);
    load.args(["--seconds", seconds, "--clip-seconds", "2", "--json"]);
    std::thread::spawn(move || load.output().unwrap())
}

fn row(load: JoinHandle<Output>) -> Value {
    let ran = load.join().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let report: Value = serde_json::from_slice(&ran.stdout).expect("one JSON object");
    report["rows"][0].clone()
}

/// Waits until a figure is at least so much; how long that took.
fn until(server: &Server, name: &str, least: f64) -> Duration {
    let since = Instant::now();
    while server.metric(name) < least {
        assert!(since.elapsed() < Duration::from_secs(20), "{name}: {}", server.log());
        sleep(Duration::from_millis(20));
    }
    since.elapsed()
}

const ANCHORS: &str = "windlass_worker_anchors_total";
const MOVES: &str = "windlass_worker_moves_total";

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
    let (_workers, server) = two_workers();
    let load = call(&server, "4");
    until(&server, ANCHORS, 4.0);
    let streams = |n| server.metric(&format!("windlass_worker_streams{{worker=\"{n}\"}}"));
    assert_eq!((streams(0), streams(1)), (1.0, 1.0));
    let row = row(load);
    assert!(row["anchors"].as_u64() > Some(4), "{row}");
    assert_eq!(row["anchors_broken"], 0, "{row}");
    assert!(server.metric(MOVES) < 0.5, "{}", server.log());
    assert!(server.metric("windlass_worker_malformed_total") < 0.5);
}

/// What happens to the first worker in the middle of a call.
fn goes_on_without(signal: &str) {
    let _turn = alone();
    let (workers, server) = two_workers();
    let load = call(&server, "7");
    until(&server, ANCHORS, 6.0);
    workers[0].signal(signal);
    until(&server, MOVES, 1.0);
    let moved = Instant::now();
    let streams = |n| server.metric(&format!("windlass_worker_streams{{worker=\"{n}\"}}"));
    while (streams(0), streams(1)) != (0.0, 2.0) {
        assert!(moved.elapsed() < Duration::from_secs(5), "{}", server.log());
        sleep(Duration::from_millis(20));
    }
    let anchors = server.metric(ANCHORS);
    until(&server, ANCHORS, anchors + 4.0);
    let row = row(load);
    assert_eq!(row["lost"], 0, "{row}");
    let shown = row["shown_fps"].as_f64().unwrap_or_default();
    assert!(shown > 25.0, "video never stopped: {row}");
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
    let row = row(call(&server, "3"));
    assert!(server.metric(ANCHORS) < 0.5);
    assert!(server.metric(MOVES) >= 1.0 && server.log().contains("token"), "{}", server.log());
    assert!(row["shown_fps"].as_f64() > Some(25.0), "{row}");
}
