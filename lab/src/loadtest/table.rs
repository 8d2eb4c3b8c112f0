//! The report of a run for people.

use std::fmt::Write;

use super::balance::{Balance, Sum};
use super::report::{Repairs, Report, Row};

fn ms(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |v| format!("{v:.1}"))
}

fn plain(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |v| format!("{v:.2}"))
}

fn percent(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |v| format!("{:.2} %", 100.0 * v))
}

/// The retransmissions and reports, both ways.
fn repairs(r: &Repairs) -> String {
    let all = [r.asked_again, r.rtx_received, r.wanted_again, r.rtx_sent];
    let [Some(asked), Some(came), Some(wanted), Some(sent)] = all else { return "–".to_owned() };
    let (to, from) = (r.reports_sent.unwrap_or(0), r.reports_received.unwrap_or(0));
    let dropped = r.events_dropped.unwrap_or(0);
    format!(
        "down {asked} asked for, {came} came; up {wanted} asked for, {sent} sent; reports {to} up, {from} down; {dropped} events dropped"
    )
}

/// The figures at the clients, a line each.
pub(super) fn clients(r: &Row) -> [(&'static str, String); 17] {
    let rooms = format!(
        "{} of {}, in {} rooms",
        r.setup.publishers, r.setup.publishers_wanted, r.setup.rooms
    );
    let (tracks, by) = (r.setup.subscriptions, r.setup.subscribers);
    let sent = format!(
        "{} pictures in {} frames of {}, {} packets, {:.0} kbit/s",
        r.sent.pictures_sent, r.sent.frames_sent, r.setup.layers, r.sent.sent, r.sent.sent_kbps
    );
    let fps = plain(r.received.received_fps);
    let received = format!(
        "{} frames, {fps} a second each; {:.0} kbit/s",
        r.received.frames, r.received.video_kbps
    );
    let (of_publishers, by_subscribers) = (r.sent.key_requests, r.received.key_requests_made);
    let fraction = percent(r.anchors.anchor_fraction);
    let anchors = format!(
        "{} ({:.1} a second, {fraction} of frames; {} of own pixels; {:.0} kbit/s)",
        r.anchors.anchors,
        r.anchors.anchors_per_s,
        r.anchors.anchors_captured,
        r.anchors.anchor_kbps
    );
    let of = |p50, p95, p99| format!("p50 {}, p95 {}, p99 {}", ms(p50), ms(p95), ms(p99));
    let (freezes, frozen) = (plain(r.received.freezes), percent(r.received.frozen));
    let shown = format!(
        "{} a second each; {freezes} freezes a minute, {frozen} of the time",
        plain(r.received.shown_fps)
    );
    let rungs = r.received.rungs.iter().map(|(rung, share)| {
        let name = serde_json::to_value(rung).unwrap_or_default();
        format!("{} {:.1} %", name.as_str().unwrap_or("?"), 100.0 * share)
    });
    let rungs: Vec<String> = rungs.collect();
    let links = r.links.link_kbps.map_or("–".to_owned(), |kbps| {
        format!(
            "{kbps:.0} kbit/s; used {}, carried {}; waits, ms: {}; {} found them full; followed in {} s",
            percent(r.links.link_used),
            percent(r.links.link_carried),
            of(r.links.wait_p50_ms, r.links.wait_p95_ms, r.links.wait_p99_ms),
            percent(r.links.link_full),
            ms(r.links.converged_s)
        )
    });
    let past = format!(
        "{} ({} came after {} ms, {} given up by the server)",
        percent(r.anchors.budget_miss_rate),
        r.anchors.anchors_late,
        r.setup.budget_ms,
        r.anchors.anchors_given_up
    );
    [
        ("publishers", rooms),
        ("subscriptions", format!("{tracks} by {by} subscribers; {} enhanced", r.setup.enhanced)),
        ("clients that failed", r.setup.failed.to_string()),
        ("measured", format!("{:.1} s", r.setup.seconds)),
        ("sent", sent),
        ("not sent for lack of time", format!("{} pictures", r.sent.pictures_skipped)),
        ("received", received),
        ("shown", shown),
        ("rungs", if rungs.is_empty() { "–".into() } else { rungs.join(", ") }),
        ("emulated links", links),
        ("lost packets", format!("{} ({})", r.received.lost, percent(r.received.loss_rate))),
        ("retransmissions", repairs(&r.repairs)),
        (
            "key frames asked for",
            format!("{of_publishers} of publishers, {by_subscribers} by subscribers"),
        ),
        ("anchors", format!("{anchors}; {} broken", r.anchors.anchors_broken)),
        (
            "after their frame, ms",
            of(r.anchors.anchor_p50_ms, r.anchors.anchor_p95_ms, r.anchors.anchor_p99_ms)
                + &format!(", most {}", ms(r.anchors.anchor_max_ms)),
        ),
        ("age when sent, ms", of(r.anchors.age_p50_ms, r.anchors.age_p95_ms, r.anchors.age_p99_ms)),
        ("past the budget", past),
    ]
}

/// The figures of the server, a line each.
pub(super) fn server(r: &Row) -> [(&'static str, String); 7] {
    let (cores, packet) = (plain(r.cpu.cpu_cores), plain(r.cpu.cpu_us_per_packet));
    let forwarded =
        format!("{} packets, {} µs each", r.received.forwarded, plain(r.cpu.cpu_us_per_forwarded));
    let of = |p50, p95, p99| format!("p50 {}, p95 {}, p99 {}", plain(p50), plain(p95), plain(p99));
    let (first, last) = (ms(r.memory.resident_first_mib), ms(r.memory.resident_last_mib));
    [
        ("compute load", percent(r.cpu.compute_load)),
        ("server", format!("{cores} cores, {packet} µs a packet")),
        ("forwarded", forwarded),
        (
            "publisher to subscriber, ms",
            of(r.latency.transit_p50_ms, r.latency.transit_p95_ms, r.latency.transit_p99_ms),
        ),
        (
            "in the server, ms",
            of(
                r.latency.forwarding_p50_ms,
                r.latency.forwarding_p95_ms,
                r.latency.forwarding_p99_ms,
            ),
        ),
        ("clients", format!("{} cores", plain(r.cpu.clients_cpu_cores))),
        ("server's memory, MiB", {
            let (empty, each) =
                (ms(r.memory.resident_empty_mib), ms(r.memory.resident_kib_per_client));
            format!(
                "{empty} empty, {first} in the first tenth, {last} in the last; {each} KiB a client"
            )
        }),
    ]
}

/// The state of the server after the last client had gone.
fn after(balance: &Balance) -> String {
    let mut out = String::new();
    let more = |n: Option<i64>| n.map_or("–".to_owned(), |n| format!("{n:+}"));
    let _ = writeln!(
        out,
        "\nafter {} visits, of which {} ended without a word",
        balance.visits, balance.vanished
    );
    let (descriptors, threads) = (more(balance.descriptors), more(balance.threads));
    let _ = writeln!(out, "  descriptors {descriptors}, threads {threads} against the beginning");
    let grows = plain(balance.resident_mib_per_hour);
    let left = ms(balance.resident_mib);
    let (kept, took) = (ms(balance.kept_mib), ms(balance.took_mib));
    let verdict = if balance.gave_back() { "" } else { "  NOT GIVEN BACK" };
    let _ = writeln!(
        out,
        "  memory grew by {grows} MiB an hour in the second half; {left} MiB when all had gone: {kept} of {took} kept{verdict}"
    );
    for (name, left) in &balance.left_over {
        let _ = writeln!(out, "  LEFT OVER: {name} {left}");
    }
    for Sum { of, total, parts } in &balance.sums {
        let off = total - parts;
        let verdict = if off == 0.0 { "adds up".to_owned() } else { format!("OFF BY {off}") };
        let _ = writeln!(out, "  {of:<44} {total:>12}  {verdict}");
    }
    out
}

/// The whole report.
pub(super) fn table(report: &Report) -> String {
    let r = &report.row;
    let mut out = String::new();
    // Writing to a string does not fail.
    for (name, value) in clients(r).into_iter().chain(server(r)) {
        let _ = writeln!(out, "{name:<26} {value}");
    }
    let _ = writeln!(
        out,
        "\n{:<10} {:>9} {:>9} {:>9} {:>9} {:>9}   (percentiles by the bounds of histograms)",
        "stage, ms", "runs", "mean", "p50", "p95", "p99"
    );
    for s in &r.stages {
        let _ = writeln!(
            out,
            "{:<10} {:>9} {:>9} {:>9.1} {:>9.1} {:>9.1}",
            s.name,
            s.count,
            ms(s.mean_ms),
            s.p50_ms,
            s.p95_ms,
            s.p99_ms
        );
    }
    if !r.queues.is_empty() {
        let _ = writeln!(out, "\nmost in the server's queues, of one look a second");
    }
    for (name, most) in &r.queues {
        let _ = writeln!(out, "  {name:<56} {most}");
    }
    let _ = writeln!(out, "\nthe server's counters that grew");
    for (name, by) in &r.server {
        let _ = writeln!(out, "  {name:<56} {}", (by * 1000.0).round() / 1000.0);
    }
    if let Some(balance) = &r.balance {
        let _ = write!(out, "{}", after(balance));
    }
    if let Some(failure) = &report.failure {
        let _ = writeln!(out, "\nthe first client that failed: {failure}");
    }
    out
}
