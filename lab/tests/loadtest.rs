//! `windlass-lab loadtest` from outside: real clients on a real server.

use std::process::Command;

use serde_json::Value;

fn windlass_lab(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_windlass-lab")).args(args).output().unwrap()
}

/// Two publishers on a server of our own; the report's only row.
fn call(per_room: &str, server: &[&str]) -> Value {
    let publishers = ["loadtest", "--own", "--publishers", "2", "--per-room", per_room];
    let short = ["--ramp", "0.5", "--seconds", "4", "--clip-seconds", "2", "--key-every", "1"];
    // A machine with other work makes no anchor within the usual budget, and its speed is not asked for here.
    let enough = ["--json", "--", "--anchor-fraction", "0.1", "--budget", "2s"];
    let ran = windlass_lab(&[&publishers[..], &short, &enough, server].concat());
    let log = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{log}");
    let report: Value = serde_json::from_slice(&ran.stdout).expect("one JSON object");
    assert_eq!(report["command"], "loadtest");
    eprintln!("{log}");
    report["rows"][0].clone()
}

#[test]
fn publishers_are_seen_and_enhanced_by_a_server_of_our_own() {
    let row = &call("2", &[]);
    let count = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key} in {row}"));
    assert_eq!((count("rooms"), count("publishers"), count("subscribers")), (1, 2, 1));
    assert_eq!((count("subscriptions"), count("enhanced"), count("failed")), (2, 2, 0));
    assert!(count("frames") > 20 && count("anchors") > 0, "{row}");
    assert_eq!(count("anchors_broken"), 0, "{row}");
    // Both ends speak of the same.
    let server = &row["server"];
    assert!(server["sfu_anchors_out_total"].as_f64() > Some(0.0), "{row}");
    assert_eq!(server["sfu_video_malformed_total"], Value::Null, "{row}");
    assert!(row["resident_last_mib"].as_f64() > Some(1.0), "{row}");
}

#[test]
fn another_codec_is_received_whole_without_anchors() {
    for codec in ["vp8", "h264", "av1"] {
        let sent = ["loadtest", "--own", "--publishers", "1", "--codec", codec];
        let short = ["--ramp", "0.5", "--seconds", "3", "--clip-seconds", "2", "--key-every", "1"];
        let ran = windlass_lab(&[&sent[..], &short, &["--json"]].concat());
        assert!(ran.status.success(), "{codec}: {}", String::from_utf8_lossy(&ran.stderr));
        let report: Value = serde_json::from_slice(&ran.stdout).expect("one JSON object");
        let row = &report["rows"][0];
        let count = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key} in {row}"));
        assert_eq!(row["codec"].as_str().map(str::to_lowercase).as_deref(), Some(codec));
        assert_eq!((count("failed"), count("enhanced"), count("anchors")), (0, 0, 0), "{row}");
        assert!(count("frames") > 30, "{row}");
        // Of what arrives nearly all can be decoded, however slow the machine is.
        let fps = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
        assert!(fps("shown_fps") > 0.9 * fps("received_fps"), "{row}");
    }
}

#[test]
fn what_is_for_vp9_alone_is_refused_with_another_codec() {
    for more in [&["--media", "."][..], &["--client", "webrtc-rs"]] {
        let ran = windlass_lab(&[&["loadtest", "--codec", "vp8"], more].concat());
        let error = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && error.contains("leave --codec out"), "{error}");
    }
}

#[test]
fn rooms_on_two_threads_are_both_seen_and_enhanced() {
    let row = &call("1", &["--forwarding-threads", "2"]);
    let count = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key} in {row}"));
    assert_eq!((count("rooms"), count("enhanced"), count("failed")), (2, 2, 0), "{row}");
    // Each of the two rooms has one viewer.
    assert!(count("frames") > 40 && count("frames") * 4 > count("pictures_sent") * 3, "{row}");
    assert!(count("anchors") > 0, "{row}");
    let total = |key: &str| row["server"][key].as_f64().unwrap_or(0.0);
    // One that came to the other room's thread would have no place there.
    let lost = total("sfu_anchors_dropped_unmapped_total");
    assert!(lost * 4.0 <= total("sfu_anchors_in_total"), "{row}");
    assert!(total("sfu_datagrams_handed_over_full_total") < 0.5, "{row}");
}

#[test]
fn a_server_that_is_not_there_is_told_with_what_to_do() {
    let ran =
        windlass_lab(&["loadtest", "--server", "http://127.0.0.1:9", "--clip-seconds", "0.1"]);
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success());
    assert!(error.contains("is `windlass serve` running there?"), "{error}");
}
