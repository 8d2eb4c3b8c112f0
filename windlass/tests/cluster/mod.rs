//! Workers, NATS servers and calls of this program's own, for tests of clusters.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::load::Load;
use crate::server::{Server, eventually};

/// Each test has many processes: one after the other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) const TOKEN: &str = "the-cluster-of-these-tests";

/// A real `windlass enhance`.
pub(crate) struct Worker {
    child: Child,
    pub url: String,
    /// Where its figures are, with `--metrics`.
    pub figures: Option<SocketAddr>,
}

impl Worker {
    pub(crate) fn start(args: &[&str]) -> Worker {
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["enhance", "--listen", "127.0.0.1:0", "--anchor-fraction", "0.2"])
            .args(["--network", "xs", "--cluster-token", TOKEN])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.next().unwrap();
        let address = said.trim_end_matches('.').rsplit(' ').next().unwrap();
        let figures = args.contains(&"--metrics").then(|| {
            let said = lines.next().unwrap();
            let (_, at) = said.split_once("http://").unwrap();
            at.trim_end_matches("/metrics.").parse().unwrap()
        });
        Worker { url: format!("http://{address}"), figures, child }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Worker {
    /// How it ended, when it has.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < Duration::from_secs(20), "the worker does not end");
            sleep(Duration::from_millis(20));
        }
    }

    /// Streams that a server says it has.
    pub(crate) fn streams(&self, server: &Server) -> f64 {
        let name = format!("windlass_worker_streams{{worker=\"{}\"}}", self.url);
        server.metric_if_any(&name).unwrap_or_default()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two publishers with a subscriber each, on a server.
pub(crate) struct Call {
    load: Load,
    begun: Instant,
}

/// The ramp and the time to settle of a [`Call`], in seconds.
const BEFORE: [&str; 2] = ["0.5", "1"];
/// A call is measured from at most so long after all have connected, as a load test looks once a second.
const SETTLED: Duration = Duration::from_secs(2);
/// What is measured of it at the least.
const MIN_LENGTH: Duration = Duration::from_secs(3);
/// The longest that a call is needed for, in seconds.
const MAX_SECONDS: &str = "120";

/// Begins a call on the server, which goes on until it is told to end.
pub(crate) fn call(server: &Server) -> Call {
    let [ramp, settle] = BEFORE;
    let length = ["--ramp", ramp, "--settle", settle, "--seconds", MAX_SECONDS];
    let args = [&["--publishers", "2", "--clip-seconds", "2"][..], &length].concat();
    let load = Load::begin(server, &args, 4.0, Duration::from_secs(20));
    Call { load, begun: Instant::now() }
}

impl Call {
    /// Waits until the call is measured.
    pub(crate) fn settled(&self) {
        sleep(SETTLED.saturating_sub(self.begun.elapsed()));
    }

    /// Ends the call, and returns what it says in its report.
    pub(crate) fn ended(self) -> Value {
        sleep((SETTLED + MIN_LENGTH).saturating_sub(self.begun.elapsed()));
        let row = self.load.ended();
        assert_eq!((&row["publishers"], &row["failed"]), (&2.into(), &0.into()), "{row}");
        assert!(row["seconds"].as_f64() > Some(MIN_LENGTH.as_secs_f64() - 0.5), "{row}");
        row
    }
}

/// What a call reports that went on whatever happened: nothing was lost, and video never stopped.
pub(crate) fn went_on(load: Call) {
    let row = load.ended();
    assert_eq!(row["lost"], 0, "{row}");
    assert!(moving_fps(&row) > 25.0, "video never stopped: {row}");
}

/// Shown frames a second, without the time for which the machine itself stood still.
pub(crate) fn moving_fps(row: &Value) -> f64 {
    let figure = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
    let (seconds, stall) = (figure("seconds"), figure("stall_max_ms") / 1000.0);
    figure("shown_fps") * seconds / (seconds - stall).max(0.1)
}

/// Waits until a figure is at least `least`; returns how long it took.
pub(crate) fn until(server: &Server, name: &str, least: f64) -> Duration {
    eventually(server, name, || server.metric(name) >= least)
}

pub(crate) const ANCHORS: &str = "windlass_worker_anchors_total";
pub(crate) const MOVES: &str = "windlass_worker_moves_total";

/// A real `nats-server` with JetStream.
pub(crate) struct Nats {
    child: Child,
    pub port: u16,
    folder: PathBuf,
}

impl Nats {
    /// At a free port, or a certain one; none where it is not installed.
    pub(crate) fn start(port: Option<u16>) -> Option<Nats> {
        Self::start_with(port, &[])
    }

    /// Starts a NATS server with more options.
    pub(crate) fn start_with(port: Option<u16>, more: &[&str]) -> Option<Nats> {
        // Tests of one process run beside each other: two servers with one folder end each other.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let started = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-nats-{}-{started}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let started = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-js", "-sd"])
            .arg(&folder)
            .args(["-p", &port.map_or("-1".to_owned(), |port| port.to_string())])
            .args(more)
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            windlass_skips::skip("no nats-server (`cargo xtask setup` installs it)");
            return None;
        };
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let listens = lines.find(|line| line.contains("Listening for client connections"));
        let port = listens.unwrap().rsplit_once(':').unwrap().1.trim().parse().unwrap();
        // Nobody reads on: it must not wait for that.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Nats { child, port, folder })
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
