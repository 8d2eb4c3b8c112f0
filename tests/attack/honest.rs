//! An honest call beside an attack, and what must be true of it afterwards.

// Each attack uses a part of it.
#![allow(dead_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::Server;
use crate::server::load::Load;

/// No picture of the honest call may come later than this after the one before it, but for the time for which the
/// machine kept the viewers waiting themselves.
const GAP_MS: f64 = 200.0;
/// What the server may hold of its memory when an attack is over, as a ratio to before.
const GROWTH: f64 = 1.10;
/// Pages of code and stacks that are touched for the first time are no leak.
const TOUCHED: f64 = 4.0 * 1_048_576.0;
/// How long memory may take to come back.
const TIMEOUT: Duration = Duration::from_secs(12);
/// Pictures come steadily when so many have come.
const WARM: Duration = Duration::from_millis(1300);
/// An enhanced call takes more memory for its first seconds: decoders fill their histories, the first anchors come. It
/// has all of it when the most of a time like this, and of so many decoded frames and anchors, is no longer above the
/// most of the time before it, but for [`SETTLED`]. A machine that is busy with other work does little in the time
/// alone.
const WARM_ENHANCED: Duration = Duration::from_secs(2);
/// The counters of those frames and anchors, and how much each must grow.
const WARM_COUNTS: [(&str, f64); 2] =
    [("windlass_enhancer_decoded_total", 200.0), ("windlass_enhancer_anchors_total", 5.0)];
/// How long an enhanced call may take to have all of its memory.
const WARM_PATIENCE: Duration = Duration::from_secs(40);
/// What resident memory varies by between two such times without growing.
const SETTLED: f64 = 2.0 * 1_048_576.0;
/// The longest that any scene takes.
const SECONDS: &str = "60";
/// The allocator keeps what is free for ten seconds, in case it is wanted again; a test need not wait for that.
pub(crate) const ALLOCATOR: (&str, &str) = ("MALLOC_CONF", "dirty_decay_ms:200,muzzy_decay_ms:0");

/// What the call needs to be let in where the server wants tokens.
pub(crate) const TOKEN_KEY: &str = "attack=0123456789abcdef0123456789abcdef";

/// A real server with two media threads, and an honest call on each of them.
pub(crate) struct Scene {
    pub server: Server,
    call: Load,
    /// Resident memory before the attack, in bytes.
    before: f64,
    // Each scene has many processes: one after the other.
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    /// With these options of `windlass serve`, without an enhancer; `--token-key` [`TOKEN_KEY`] closes its rooms.
    pub(crate) fn open(args: &[&str]) -> Scene {
        Scene::with(&[args, &["--device=off"]].concat(), &["--no-anchors"], &[])
    }

    /// Opens a scene with an enhancer, and anchors in the honest calls.
    pub(crate) fn open_enhanced(args: &[&str]) -> Scene {
        Scene::with(&[args, &["--network", "xs"]].concat(), &[], &[])
    }

    /// With more options of `windlass-lab loadtest`, and variables for the server's environment.
    pub(crate) fn with(args: &[&str], call: &[&str], env: &[(&str, &str)]) -> Scene {
        let alone = alone();
        let args = [args, &["--forwarding-threads", "2"]].concat();
        let env = [env, &[ALLOCATOR]].concat();
        let server = Server::start_enhanced_with(&args, &env);
        // Two rooms, which lie on two threads.
        let two = ["--publishers", "2", "--ramp", "0.1", "--settle", "0.5", "--seconds", SECONDS];
        let mut of_call = [&two[..], &["--clip-seconds", "1", "--key-every", "1"], call].concat();
        if args.contains(&TOKEN_KEY) {
            of_call.extend(["--token-key", TOKEN_KEY]);
        }
        let call = Load::begin(&server, &of_call, 4.0, TIMEOUT);
        let before = if args.contains(&"--device=off") {
            std::thread::sleep(WARM);
            memory(&server)
        } else {
            settled_memory(&server)
        };
        Scene { server, call, before, _alone: alone }
    }

    /// The attack is over: the server tells the truth of itself, its memory has come back, and nobody else has noticed.
    /// What the call says in its report.
    pub(crate) fn close(mut self) -> Value {
        assert!(self.server.is_running(), "the server has ended: {}", self.server.log());
        assert_eq!(self.server.status("/healthz"), 200, "it serves, and says so");
        assert_eq!(self.server.status("/readyz"), 200, "{}", self.server.get("/readyz"));
        self.memory_came_back();
        let row = self.call.ended();
        unhurt(&row);
        row
    }

    /// Waits until the server holds no more than before the attack, but for a tenth.
    fn memory_came_back(&self) {
        let since = Instant::now();
        let most = (self.before * GROWTH).max(self.before + TOUCHED);
        loop {
            let now = memory(&self.server);
            let before = self.before;
            if now <= most {
                eprintln!("memory: {before} bytes before, {now} after");
                return;
            }
            assert!(since.elapsed() < TIMEOUT, "memory: {before} bytes before, {now} after");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// For attacks that end the server: the call alone, which is not asked what became of it.
    pub(crate) fn into_server(self) -> Server {
        self.server
    }
}

/// Both publishers, both subscribers, every packet, and no picture late.
fn unhurt(row: &Value) {
    let figure = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
    assert!(figure("failed") < 0.5, "{row}");
    assert!(figure("publishers") > 1.5 && figure("subscribers") > 1.5, "{row}");
    assert!(figure("loss_rate") < 0.01, "{row}");
    let (gap, stall) = (figure("gap_max_ms"), figure("stall_max_ms"));
    eprintln!(
        "the honest call: longest gap {gap:.0} ms, {} frames; stall {stall:.0} ms",
        row["frames"]
    );
    assert!(gap > 0.0 && gap < GAP_MS + stall, "a gap of {gap} ms: {row}");
}

/// Resident bytes.
pub(crate) fn memory(server: &Server) -> f64 {
    server.metric("process_resident_memory_bytes")
}

/// The most that the server takes, in bytes, when it takes no more from time to time.
fn settled_memory(server: &Server) -> f64 {
    let counts = || WARM_COUNTS.map(|(name, _)| server.metric(name));
    let most_of_a_while = || {
        let (since, from) = (Instant::now(), counts());
        let mut most = 0.0_f64;
        loop {
            most = most.max(memory(server));
            let grown = counts()
                .iter()
                .zip(from)
                .zip(WARM_COUNTS)
                .all(|((now, from), (_, by))| now - from >= by);
            let all = since.elapsed() >= WARM_ENHANCED && grown;
            if all || since.elapsed() >= WARM_PATIENCE {
                return most;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let since = Instant::now();
    let mut before = most_of_a_while();
    loop {
        let now = most_of_a_while();
        if now <= before + SETTLED {
            return now.max(before);
        }
        assert!(
            since.elapsed() < WARM_PATIENCE,
            "the honest call's memory grows: {before} bytes, then {now}"
        );
        before = now;
    }
}

/// One scene at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The harness itself: with nobody attacking, the call is unhurt, and a stalled server is seen.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_attacks_and_nothing_happens() {
        let row = Scene::open(&[]).close();
        assert!(row["frames"].as_f64() > Some(20.0), "{row}");
    }

    #[test]
    #[should_panic(expected = "a gap of")]
    fn a_server_that_stands_still_is_noticed() {
        let scene = Scene::open(&[]);
        scene.server.signal("-STOP");
        std::thread::sleep(Duration::from_millis(400));
        scene.server.signal("-CONT");
        std::thread::sleep(Duration::from_millis(400));
        scene.close();
    }
}
