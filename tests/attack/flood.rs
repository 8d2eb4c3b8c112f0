//! An ongoing call while others attack the server by every way in at once: the call must not notice, and the server
//! must neither fall over nor grow.
//!
//! `WINDLASS_ATTACK_DATAGRAMS` says how many malformed datagrams are sent (45,000 unless told otherwise).

use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::honest::alone;
use crate::server::{Client, Server, lab};
use crate::{datagrams, mallory, sockets};

/// Sent in a second: what a home uplink can carry of small datagrams. More fills the socket before anything of ours
/// sees it.
const PER_SECOND: u64 = 15_000;
/// What connections that stay open and remembered addresses may take, in bytes.
const GROWTH: f64 = 96.0 * MIB;
const MIB: f64 = 1_048_576.0;

/// Two publishers of pictures and somebody who watches both, in a process of their own.
struct Call(Child);

impl Call {
    fn start(server: &Server, seconds: u64) -> Call {
        let child = lab()
            .args(["loadtest", "--server", &format!("http://{}", server.addr), "--json"])
            .args(["--publishers", "2", "--per-room", "2", "--subscribers", "1", "--ramp", "0.5"])
            .args(["--clip-seconds", "2", "--key-every", "1", "--seconds", &seconds.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a call");
        Call(child)
    }

    /// What came of it.
    fn ended(self) -> Value {
        let output = self.0.wait_with_output().expect("the call's end");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{log}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        report["rows"][0].clone()
    }
}

/// The only room that there is.
fn room_of(server: &Server) -> String {
    let answer = server.get("/admin/rooms");
    let body = answer.split_once("\r\n\r\n").expect("a body").1;
    let rooms: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    rooms["rooms"][0]["room"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Malformed datagrams in all, and how many there are to be.
fn datagrams() -> u64 {
    let wanted = std::env::var("WINDLASS_ATTACK_DATAGRAMS").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(45_000)
}

#[test]
fn a_call_goes_on_whatever_strangers_and_participants_send() {
    let _alone = alone();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(attack());
}

async fn attack() {
    let mut server = Server::start_enhanced(&["--network", "xs", "--forwarding-threads", "2"]);
    let count = datagrams();
    let call = Call::start(&server, 8 + count / PER_SECOND + 4);
    server.wait_for_metric("windlass_sfu_connected", 3.0);
    let before = server.metric("process_resident_memory_bytes");
    let over = Arc::new(AtomicBool::new(false));

    // From inside: somebody who may join, over connections that are up, of which one is in the call itself.
    let room = room_of(&server);
    let mut inside = Vec::new();
    for room in ["elsewhere", &room] {
        let mallory = mallory::join(&server, room).await;
        let stop = over.clone();
        inside.push(std::thread::spawn(move || mallory.attack(&stop)));
    }
    // From outside: sockets that want to be served, and datagrams.
    let stop = over.clone();
    let (http, udp) = (server.addr, mallory::media_address(&server).await);
    let floods = tokio::spawn(sockets::flood(http, stop));
    let sent = tokio::task::spawn_blocking(move || datagrams::flood(udp, count, PER_SECOND));
    let sent = sent.await.expect("a flood of datagrams");
    over.store(true, Ordering::Relaxed);
    let did: Vec<_> = inside.into_iter().map(|m| m.join().expect("Mallory")).collect();
    let floods = floods.await.expect("floods");
    eprintln!("{sent:?}\n{did:?}\n{floods:?}");

    let row = call.ended();
    let figure = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
    assert!(figure("failed") < 0.5, "{row}");
    assert!(figure("frames") > 0.9 * 2.0 * 30.0 * figure("seconds"), "{row}");
    // Of what Mallory asked for, publishers hear one a second and track, and their own recording has one.
    let asked: u64 = did.iter().map(|d| d.requests).sum();
    assert!(asked as f64 > 20.0 * figure("key_requests"), "{asked} asked: {row}");
    assert!(figure("loss_rate") < 0.01 && figure("anchors") > 0.0, "{row}");
    assert!(server.is_running(), "{}", server.log());
    assert!(!server.log().contains("panicked"), "{}", server.log());
    assert!(server.metric("windlass_sfu_faults_total") < 0.5, "{}", server.log());
    // Everything that was sent came, or the test shows less than it says.
    let refused = ["datagrams_malformed", "datagrams_unknown", "strangers_limited"];
    let refused: f64 =
        refused.map(|n| server.metric(&format!("windlass_sfu_{n}_total"))).iter().sum();
    assert!(refused >= 0.9 * sent as f64, "{refused} of {sent}");
    let after = server.metric("process_resident_memory_bytes");
    eprintln!("memory {:.1} MiB before, {:.1} after", before / MIB, after / MIB);
    assert!(after < before + GROWTH, "{before} → {after} bytes");
    // And whoever comes next is served.
    let (_next, answer) = Client::join(&server, "another", "Ana").await;
    assert_eq!(answer["type"], "welcome", "{answer}");
}
