//! `windlass doctor` finds what is planted, and names the option that mends it.

#[path = "server/free.rs"]
mod free;

use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use free::free_address;
use serde_json::Value;

/// Options of a server that is alone on free ports, and does not enhance.
const ALONE: [&str; 6] = ["--http", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--device", "off"];
const KEY: &str = "k1=0123456789abcdef0123456789abcdef";

fn report(command: &mut Command) -> (bool, Value) {
    let ended = command.output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    let error = String::from_utf8_lossy(&ended.stderr);
    let report = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{error}"));
    (ended.status.success(), report)
}

fn doctor(args: &[&str]) -> (bool, Value) {
    let usual = ALONE.chunks(2).filter(|option| !args.contains(&option[0])).flatten();
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    report(command.args(["doctor", "--json"]).args(usual).args(args))
}

/// The finding of a check that is worse than ok.
#[track_caller]
fn planted(said: &(bool, Value), check: &str, level: &str) -> String {
    let (passed, report) = said;
    let findings = report["findings"].as_array().unwrap();
    let bad = findings.iter().find(|f| f["check"] == check && f["level"] != "ok");
    let bad = bad.unwrap_or_else(|| panic!("{check} is not found in {report}"));
    assert_eq!(bad["level"], level, "{bad}");
    assert_eq!(*passed, level != "fault", "{report}");
    bad["mend"].as_str().unwrap().to_owned()
}

#[test]
fn a_server_that_would_serve_has_no_fault() {
    let (passed, report) = doctor(&[]);
    assert!(passed && report["level"] != "fault", "{report}");
    let checks: Vec<_> =
        report["findings"].as_array().unwrap().iter().map(|f| &f["check"]).collect();
    for check in ["configuration", "tokens", "ports", "addresses", "clock", "limits"] {
        assert!(checks.contains(&&Value::from(check)), "{check} is missing in {checks:?}");
    }
}

#[test]
fn ports_of_other_programs() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = tcp.local_addr().unwrap().to_string();
    std::thread::spawn(move || tcp.incoming().for_each(drop));
    let mend = planted(&doctor(&["--http", &at]), "ports", "fault");
    assert!(mend.contains("--http 127.0.0.1:"), "{mend}");
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = udp.local_addr().unwrap().to_string();
    let mend = planted(&doctor(&["--udp", &at, "--tcp", "off"]), "ports", "fault");
    assert!(mend.contains("--udp 127.0.0.1:"), "{mend}");
}

#[test]
fn rooms_that_are_open_to_others() {
    let mend = planted(&doctor(&["--http", "0.0.0.0:0"]), "tokens", "fault");
    assert!(mend.contains("--token-key"), "{mend}");
}

#[test]
fn media_that_reaches_nobody_else() {
    let mend = planted(&doctor(&["--http", "0.0.0.0:0", "--token-key", KEY]), "addresses", "fault");
    assert!(mend.contains("--advertise PUBLIC_IP"), "{mend}");
}

#[test]
fn a_public_name_that_leads_nowhere_and_an_acme_server_that_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let doctor = |more: &[&str]| {
        let public = ["--public", "no-such-name.invalid", "--metrics", "127.0.0.1:0"];
        let args = [&["doctor", "--json"], &ALONE[..], &public, more].concat();
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        report(command.args(args).env("STATE_DIRECTORY", folder.path()))
    };
    let mend = planted(&doctor(&[]), "name", "fault");
    assert!(mend.contains("DNS record for no-such-name.invalid"), "{mend}");
    let mend = planted(&doctor(&["--tls", "acme:https://127.0.0.1:9/dir"]), "acme", "fault");
    assert!(mend.contains("--tls acme:URL"), "{mend}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "it makes nothing");
}

/// A certificate of so many days from a day ago on, and its key.
fn certificate(folder: &Path, name: &str, days: i64) -> (PathBuf, PathBuf) {
    let day = Duration::from_secs(24 * 3600);
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let begun = SystemTime::now() - 400 * day;
    params.not_before = begun.into();
    params.not_after = (begun + day * u32::try_from(400 + days).unwrap()).into();
    let key = rcgen::KeyPair::generate().unwrap();
    let (cert_file, key_file) =
        (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&cert_file, params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    (cert_file, key_file)
}

#[test]
fn certificates_that_end_or_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let over = certificate(folder.path(), "over", -3);
    let soon = certificate(folder.path(), "soon", 5);
    let good = certificate(folder.path(), "good", 200);
    let with = |cert: &Path, key: &Path| {
        doctor(&["--tls", &format!("{},{}", cert.display(), key.display())])
    };
    let mend = planted(&with(&over.0, &over.1), "tls", "fault");
    assert!(mend.contains("renew"), "{mend}");
    planted(&with(&soon.0, &soon.1), "tls", "warning");
    let mend = planted(&with(&good.0, &soon.1), "tls", "fault");
    assert!(mend.contains("--tls CERT,KEY"), "{mend}");
    assert!(with(&good.0, &good.1).0);
}

#[test]
fn other_machines_that_do_not_answer() {
    let port = free_address().port();
    let url = |scheme: &str| format!("{scheme}://127.0.0.1:{port}");
    let mend = planted(&doctor(&["--workers", &url("http")]), "workers", "fault");
    assert!(mend.contains("--workers"), "{mend}");
    let hook =
        ["--webhook", &url("http"), "--webhook-secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"];
    let mend = planted(&doctor(&hook), "webhooks", "fault");
    assert!(mend.contains("--webhook"), "{mend}");
    let nats = ["--nats", &url("nats"), "--cluster-token", "0123456789abcdef0123"];
    let mend = planted(&doctor(&nats), "nats", "fault");
    assert!(mend.contains("--nats-credentials"), "{mend}");
    let turn = format!("turn:127.0.0.1:{port}?transport=tcp");
    let mend = planted(&doctor(&["--turn-url", &turn, "--turn-secret", "s"]), "turn", "fault");
    assert!(mend.contains("--turn-secret"), "{mend}");
}

#[test]
fn too_few_open_files() {
    let program = env!("CARGO_BIN_EXE_windlass");
    let line = format!("ulimit -n 128; exec {program} doctor --json {}", ALONE.join(" "));
    let said = report(Command::new("sh").args(["-c", &line]));
    let mend = planted(&said, "limits", "fault");
    assert!(mend.contains("--max-total-participants"), "{mend}");
}

#[test]
fn a_place_of_recordings_that_takes_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let mend = planted(&doctor(&["--record-to", file.to_str().unwrap()]), "recordings", "fault");
    assert!(mend.contains("--record-to"), "{mend}");
    let (passed, said) = doctor(&["--record-to", folder.path().to_str().unwrap()]);
    assert!(passed, "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(["doctor", "--json"]).args(ALONE).args(["--record-to", "s3://calls"]);
    command.env("STATE_DIRECTORY", folder.path());
    command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    command.env("AWS_ACCESS_KEY_ID", "k").env("AWS_SECRET_ACCESS_KEY", "s");
    let mend = planted(&report(&mut command), "recordings", "fault");
    assert!(mend.contains("AWS_"), "{mend}");
}

#[test]
fn a_gpu_that_is_not_there() {
    if windlass_sr::cuda::devices::Devices::here().is_ok() {
        return windlass_skips::skip("this machine has a GPU");
    }
    let mend = planted(&doctor(&["--device", "cuda"]), "gpu", "fault");
    assert!(mend.contains("--device cpu"), "{mend}");
}

#[test]
fn a_cpu_without_vectors() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let args = ["doctor", "--json", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0"];
    let said = report(command.args(args).env("WINDLASS_MAX_ISA", "sse4.2"));
    let mend = planted(&said, "cpu", "warning");
    assert!(mend.contains("WINDLASS_MAX_ISA"), "{mend}");
}

#[test]
fn a_misspelt_option_of_the_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "max-particpants: 3\n").unwrap();
    let (passed, report) = doctor(&["--config", &file.path().display().to_string()]);
    let found = &report["findings"][0];
    assert!(!passed && found["level"] == "fault", "{report}");
    assert!(found["found"].as_str().unwrap().contains("max-participants"), "{report}");
}
