//! `windlass-lab loadtest --client webrtc-rs`: clients on another stack than the server's, on a real server.

use std::process::{Command, Output};

use serde_json::Value;

fn loadtest(args: &[&str]) -> Output {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_windlass-lab"));
    lab.args(["loadtest", "--own", "--client", "webrtc-rs"]).args(args).output().unwrap()
}

/// A publisher of three layers and a viewer, behind these links; the report's only row.
fn call(links: &[&str]) -> Value {
    let call =
        ["--publishers", "1", "--layers", "q,h,f", "--clip-seconds", "2", "--key-every", "1"];
    let short = ["--ramp", "0.5", "--settle", "5", "--seconds", "6", "--json"];
    // A machine with other work makes no anchor within the usual budget, and its speed is not asked for here.
    let server = ["--", "--anchor-fraction", "0.1", "--budget", "2s"];
    let ran = loadtest(&[&call[..], &short, links, &server].concat());
    let log = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{log}");
    let report: Value = serde_json::from_slice(&ran.stdout).expect("one JSON object");
    let row = report["rows"][0].clone();
    assert_eq!((&row["failed"], &row["events_dropped"]), (&0.into(), &0.into()), "{log} {row}");
    row
}

fn count(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"))
}

#[test]
fn what_is_lost_both_ways_of_three_layers_is_sent_again() {
    let row = &call(&["--links", "wifi-lossy"]);
    // The viewer's anchors are of the layer above the half one: both came to the server, by their rids.
    assert!(count(row, "anchors_captured") > 0.0, "{row}");
    // How long that layer is kept is not asked for: a machine that pauses looks like a full link.
    assert!(count(&row["rungs"], "h+") > 0.0, "{row}");
    for (asked, sent) in [("asked_again", "rtx_received"), ("wanted_again", "rtx_sent")] {
        assert!(count(row, asked) > 0.0 && count(row, sent) > 0.0, "{asked}, {sent}: {row}");
    }
    // The link loses 3 %, three at a time. A burst whose repairs are on their way in the end counts as lost.
    assert!(count(row, "loss_rate") < 0.015, "{row}");
    assert!(count(row, "frames") > 20.0, "{row}");
}

#[test]
fn transport_wide_reports_tell_the_server_what_a_link_carries() {
    let subscribers = ["--no-anchors", "--links-of", "subscribers"];
    let wide = &call(&[&subscribers[..], &["--links", "dsl"]].concat());
    let narrow = &call(&[&subscribers[..], &["--links", "700k"]].concat());
    for row in [wide, narrow] {
        assert!(count(row, "reports_sent") > 0.0 && count(row, "reports_received") > 0.0, "{row}");
    }
    let share = |row: &Value| row["rungs"]["f"].as_f64().unwrap_or(0.0);
    assert!(share(wide) > 0.0, "the full layer fits into 3 Mbit/s: {wide}");
    assert!(share(narrow) < 0.1, "and not into 700 kbit/s: {narrow}");
    assert!(count(narrow, "link_full") < 0.02, "{narrow}");
}

#[test]
fn what_this_client_cannot_do_is_refused_before_anything_starts() {
    for (options, why) in
        [(&["--peer", "janus", "--layers", "h"][..], "--peer janus"), (&["--stay", "5"], "--stay")]
    {
        let ran = loadtest(options);
        let error = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && error.contains(why), "{error}");
        assert!(!error.contains("recording:"), "{error}");
    }
}
