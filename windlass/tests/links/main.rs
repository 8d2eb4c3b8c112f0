//! Viewers behind narrow links, on real sockets and in real time: minutes, so that they run only when asked for
//! (`--ignored`).

mod namespace;
#[path = "../server/mod.rs"]
mod server;
mod trace;

use std::thread::sleep;
use std::time::{Duration, Instant};

use namespace::Namespace;
use serde_json::Value;
use server::{Server, lab};
use trace::{Running, Tenth};

const S: fn(u64) -> Duration = Duration::from_secs;
/// What a packet may take beyond the usual before it has waited in a queue.
const QUEUED_MS: f64 = 100.0;

fn figure(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"))
}

/// The longest that nothing was shown, in seconds.
fn longest_still(tenths: &[Tenth]) -> f64 {
    let shown = tenths.iter().filter(|t| t.shown > 0).map(|t| t.at);
    let times: Vec<Instant> = shown.collect();
    times.windows(2).map(|w| (w[1] - w[0]).as_secs_f64()).fold(0.0, f64::max)
}

/// Seconds from `since` to the first second from which on at most one tenth has packets that were queued.
fn calm_after(tenths: &[Tenth], since: Instant, usual_ms: f64) -> Option<f64> {
    let long = |t: &&Tenth| t.transit_p95_ms.is_some_and(|ms| ms > usual_ms + QUEUED_MS);
    let after: Vec<&Tenth> = tenths.iter().filter(|t| t.at > since).collect();
    let calm = after.windows(10).find(|w| w.iter().copied().filter(long).count() <= 1)?;
    Some((calm[0].at - since).as_secs_f64())
}

/// Seconds from `since` to the first tenth for which `is` holds.
fn first_after(tenths: &[Tenth], since: Instant, is: impl Fn(&Tenth) -> bool) -> Option<f64> {
    let found = tenths.iter().find(|t| t.at > since && is(t))?;
    Some((found.at - since).as_secs_f64())
}

/// Says what came in each second, from `zero` on and before.
fn seconds(tenths: &[Tenth], zero: Instant) {
    for second in tenths.chunks(10) {
        let at = second[0].at;
        let after = at.saturating_duration_since(zero).as_secs_f64();
        let since = after - zero.saturating_duration_since(at).as_secs_f64();
        let shown: u64 = second.iter().map(|t| t.shown).sum();
        let kbps = second.iter().map(|t| t.kbps).sum::<f64>() / second.len() as f64;
        let most = second.iter().filter_map(|t| t.transit_p95_ms).fold(0.0, f64::max);
        eprintln!(
            "{since:5.1} s: {:2} {shown:2} frames, {kbps:4.0} kbit/s, {most:3.0} ms",
            second[0].rung
        );
    }
}

/// The server here, its publisher and its viewer in another network namespace, and the kernel's token bucket on the
/// way: 2.5 Mbit/s, 800 kbit/s, and back.
#[test]
#[ignore = "takes a minute and a half, and root"]
fn a_kernels_shaper_is_followed_down_and_up() {
    let link = match Namespace::new(2500) {
        Ok(link) => link,
        Err(missing) => {
            windlass_skips::skip(missing);
            return;
        }
    };
    let udp = format!("{}:0", link.ours);
    let server = Server::start(&["--http", "0.0.0.0:0", "--open-rooms", "--udp", &udp]);
    let url = format!("http://{}:{}", link.ours, server.addr.port());
    let call = Running::start(
        link.command(lab().get_program()),
        &[
            &["--server", &url, "--publishers", "1", "--layers", "q,h,f", "--no-anchors"][..],
            // It would take a fifth of the narrow link.
            &["--no-metrics", "--ramp", "0.5", "--clip-seconds", "4", "--seconds", "72"],
        ]
        .concat(),
    );
    let on_f =
        |tenths: &[Tenth]| tenths.iter().rev().take(30).filter(|t| t.rung == "f").count() == 30;
    assert!(call.wait(S(60), on_f), "never three seconds on f: {:?}", call.tenths().last());
    let steady = Instant::now();
    sleep(S(4));
    let fell = Instant::now();
    link.set(800);
    sleep(S(25));
    let rose = Instant::now();
    link.set(2500);
    sleep(S(20));
    let (row, tenths) = call.ended();

    seconds(&tenths, fell);
    let usual = tenths.iter().rev().find_map(|t| t.transit_p95_ms).expect("stamps");
    let span = |from: Instant, to: Instant| -> Vec<Tenth> {
        tenths.iter().filter(|t| t.at > from && t.at <= to).cloned().collect()
    };
    let (whole, narrow) = (span(steady, rose + S(20)), span(fell + S(5), rose));
    let left = first_after(&tenths, fell, |t| t.rung != "f").expect("left f");
    let calm = calm_after(&tenths, fell, usual).expect("drained");
    let back = first_after(&tenths, rose, |t| t.rung == "f").expect("f again");
    let fps = narrow.iter().map(|t| t.shown).sum::<u64>() as f64 / 20.0;
    let kbps = narrow.iter().map(|t| t.kbps).sum::<f64>() / narrow.len() as f64;
    let still = longest_still(&whole);
    eprintln!(
        "f left {left:.1} s after the fall, no queue after {calm:.1} s; {kbps:.0} of 800 kbit/s and {fps:.1} frames a second from 5 s on; \
         f again {back:.1} s after the rise; nothing shown for {still:.1} s at most; {} freezes a minute, frozen {}, lost {}",
        row["freezes"], row["frozen"], row["loss_rate"]
    );
    assert!(narrow.iter().all(|t| t.rung != "f"), "f on the narrow link");
    assert!(left <= 3.0 && calm <= 3.0, "{left} s, {calm} s");
    assert!(back <= 8.0, "{back} s");
    assert!(fps >= 27.0 && still <= 2.0, "{fps} frames a second, nothing for {still} s");
}

/// Other SFUs' data tracks are minutes behind on such a link (their queues take in what it cannot carry).
#[test]
#[ignore = "takes five minutes"]
fn five_minutes_of_300_kbit_queue_no_anchors_and_delay_no_video() {
    let call = Running::start(
        lab(),
        &[
            &["--own", "--publishers", "1", "--layers", "q", "--links", "300k"][..],
            &["--links-of", "subscribers", "--ramp", "0", "--seconds", "300"],
            &["--", "--network", "xs", "--anchor-fraction", "0.1"],
        ]
        .concat(),
    );
    let (row, tenths) = call.ended();
    let begun = tenths[0].at;
    let mut medians = Vec::new();
    for minute in 0..5 {
        let within = |t: &&Tenth| (t.at - begun).as_secs() / 60 == minute;
        let minute_of: Vec<&Tenth> = tenths.iter().filter(within).collect();
        let mut ages: Vec<f64> = minute_of.iter().filter_map(|t| t.anchor_max_ms).collect();
        ages.sort_by(f64::total_cmp);
        let anchors: u64 = minute_of.iter().map(|t| t.anchors).sum();
        let shown: u64 = minute_of.iter().map(|t| t.shown).sum();
        let (median, most) = (ages[ages.len() / 2], ages[ages.len() - 1]);
        eprintln!(
            "minute {minute}: {anchors} anchors, {median:.0} ms after their frames in the median, {most:.0} at most; {shown} frames"
        );
        medians.push(median);
    }
    let of = |key: &str| figure(&row, key);
    eprintln!(
        "{} anchors of {:.1} kbit/s, after their frames p50 {} p99 {} most {} ms; video {:.1} kbit/s, {:.2} frames a second, {:.2} freezes a minute; \
         before the bottleneck p50 {} p95 {} p99 {} ms; {:.1} % of the link carried",
        of("anchors"),
        of("anchor_kbps"),
        of("anchor_p50_ms"),
        of("anchor_p99_ms"),
        of("anchor_max_ms"),
        of("video_kbps"),
        of("shown_fps"),
        of("freezes"),
        of("wait_p50_ms"),
        of("wait_p95_ms"),
        of("wait_p99_ms"),
        100.0 * of("link_carried"),
    );
    assert!(of("anchors") >= 100.0, "{row}");
    assert!(
        of("anchor_max_ms") <= 600.0,
        "an anchor came {} ms after its frame",
        of("anchor_max_ms")
    );
    assert!(of("wait_p95_ms") <= 250.0, "{row}");
    assert!(of("shown_fps") >= 28.5 && of("frozen") <= 0.02, "{row}");
    let (first, last) = (medians[0], medians[4]);
    assert!(last <= 2.0 * first + 50.0, "anchors' ages grew from {first} to {last} ms");
}
