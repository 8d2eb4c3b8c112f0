//! The figures of one link.

use std::time::Duration;

use windlass_netem::{Course, Profile};
use windlass_sfu::SfuConfig;
use windlass_types::Rung;

use super::call::{Call, Tenth};
use super::{LinksArgs, Row};
use crate::latencies::Latencies;
use crate::viewer::{self, Following, LONG_WAIT};

/// Number of tenths of a second at the beginning that are not counted in rates and waits.
const SETTLING: usize = 100;
/// Number of tenths in a second.
const SPAN: usize = 10;

/// Runs the calls of all seeds, and joins their figures.
pub(super) fn measure(link: Profile, args: &LinksArgs) -> Row {
    let mut rows = Vec::new();
    for &seed in &args.seeds {
        rows.push(run(link, seed, args));
    }
    let n = rows.len().max(1) as f64;
    let mean = |of: fn(&Row) -> f64| rows.iter().map(of).sum::<f64>() / n;
    let worst = |of: fn(&Row) -> Option<f64>| rows.iter().filter_map(of).reduce(f64::max);
    Row {
        link: link.to_string(),
        capacity_kbps: mean(|r| r.capacity_kbps),
        utilisation: mean(|r| r.utilisation),
        carried: mean(|r| r.carried),
        first_s: mean(|r| r.first_s),
        converged_s: worst(|r| r.converged_s),
        wait_p50_ms: mean(|r| r.wait_p50_ms),
        wait_p95_ms: mean(|r| r.wait_p95_ms),
        overflow: mean(|r| r.overflow),
        freezes: mean(|r| r.freezes),
        frozen: mean(|r| r.frozen),
        paused: mean(|r| r.paused),
        fps: mean(|r| r.fps),
        changes: mean(|r| r.changes),
        asks: mean(|r| r.asks),
        anchor_age_p95_ms: worst(|r| r.anchor_age_p95_ms),
    }
}

fn run(link: Profile, seed: u64, args: &LinksArgs) -> Row {
    let down = link.down(seed);
    let publishers = args.publishers.get();
    let mut call =
        Call::new(SfuConfig::default(), publishers as usize, down.clone(), link.up(), seed);
    let length = Duration::from_secs(args.seconds.get().into());
    call.enhancement(!args.no_anchors);
    call.run(length);
    if args.trace {
        trace(&call, &down);
    }
    figures(link, &call, &down, length, f64::from(publishers))
}

fn figures(link: Profile, call: &Call, down: &Course, length: Duration, tracks: f64) -> Row {
    let tenths = &call.tenths[..(length.as_millis() / 100) as usize];
    let measured = &tenths[SETTLING.min(tenths.len() / 2)..];
    let span = Duration::from_millis(100 * measured.len() as u64);
    let from = length.saturating_sub(span);
    let capacity = down.capacity_bytes(from, length);
    let sum = |of: fn(&Tenth) -> u64| measured.iter().map(of).sum::<u64>() as f64;
    let waits: Latencies = measured.iter().flat_map(|t| &t.waits).collect();
    let minutes = length.as_secs_f64() / 60.0;
    let (freezes, frozen, frames, asks) = call.watched();
    let mut following = Following::new(down.clone());
    let long = LONG_WAIT.as_secs_f64() * 1000.0;
    for tenth in tenths {
        following.tenth(viewer::Tenth {
            bytes: tenth.carried,
            datagrams: tenth.waits.len() as u64,
            long: tenth.waits.iter().filter(|&&wait| wait > long).count() as u64,
        });
    }
    Row {
        link: link.to_string(),
        capacity_kbps: capacity * 8.0 / 1000.0 / span.as_secs_f64(),
        utilisation: sum(|t| t.media) / capacity,
        carried: sum(|t| t.carried) / capacity,
        first_s: following.first_s(),
        converged_s: following.longest_s(),
        wait_p50_ms: waits.percentile_or_zero(50.0),
        wait_p95_ms: waits.percentile_or_zero(95.0),
        overflow: call.overflow(),
        freezes: freezes as f64 / minutes,
        paused: sum(|t| t.paused.into()) / measured.len() as f64 / tracks,
        frozen: frozen.as_secs_f64() / length.as_secs_f64() / tracks,
        fps: frames as f64 / length.as_secs_f64() / tracks,
        changes: call.rung_changes as f64 / minutes / tracks,
        asks: asks as f64 / minutes,
        anchor_age_p95_ms: call.anchor_ages.iter().collect::<Latencies>().percentile(95.0),
    }
}

fn trace(call: &Call, down: &Course) {
    for (second, tenths) in call.tenths.chunks(SPAN).enumerate() {
        let sum = |of: fn(&Tenth) -> u64| tenths.iter().map(of).sum::<u64>() * 8 / 1000;
        let waits: Latencies = tenths.iter().flat_map(|t| &t.waits).collect();
        let rungs = tenths.iter().rev().find(|t| !t.rungs.is_empty());
        let rungs = rungs
            .map(|t| t.rungs.iter().map(|r| r.map_or("-".to_owned(), |r: Rung| format!("{r:?}"))));
        let rungs: Vec<String> = rungs.into_iter().flatten().collect();
        eprintln!(
            "{second:3} s: link {:5}, available {:5}, carried {:5}, media {:5} kbit/s, wait p95 {:4.0} ms, {} paused, {}",
            down.at(Duration::from_secs(second as u64)).rate.as_bps() / 1000,
            tenths[0].estimate_bps / 1000,
            sum(|t| t.carried),
            sum(|t| t.media),
            waits.percentile_or_zero(95.0),
            tenths[0].paused,
            rungs.join(" "),
        );
    }
}

#[cfg(test)]
mod tests {
    use windlass_netem::Conditions;
    use windlass_types::Bitrate;

    use super::*;

    /// Publishers and a viewer on a steady link, for so many seconds.
    fn call(publishers: usize, rate: Bitrate, seconds: u64) -> Call {
        let conditions = Conditions {
            rate,
            queue: Duration::from_millis(400),
            delay: Duration::from_millis(30),
            ..Conditions::default()
        };
        let (down, up) = (Course::steady(conditions), Profile::Dsl.up());
        let mut call = Call::new(SfuConfig::default(), publishers, down, up, 3);
        // Larger ones would take longer than their budget on the narrowest link.
        call.anchor_bytes = 2500;
        call.run(Duration::from_secs(seconds));
        call
    }

    fn waits(tenths: &[Tenth]) -> Latencies {
        tenths.iter().flat_map(|t| &t.waits).collect()
    }

    #[test]
    fn five_minutes_of_a_narrow_link_queue_no_anchors_and_delay_no_video() {
        let call = call(1, Bitrate::bps(300_000), 300);
        let (freezes, frozen, frames, _) = call.watched();
        assert!(frames >= 8900, "{frames} frames");
        assert!(frozen <= Duration::from_secs(3), "{freezes} freezes, {frozen:?}");
        // Other SFUs' data tracks were minutes behind by then.
        let anchors = call.anchor_ages.len();
        let most = call.anchor_ages.iter().copied().fold(0.0, f64::max);
        let ages: Latencies = call.anchor_ages.iter().copied().collect();
        eprintln!(
            "{anchors} anchors, {:?} {:?} {:?} {most} ms at most, {freezes} freezes, {frozen:?}",
            ages.percentile(50.0),
            ages.percentile(95.0),
            ages.percentile(99.0)
        );
        assert!(anchors >= 100, "{anchors}");
        assert!(most <= 600.0, "an anchor came {most} ms after its frame");
        for (minute, tenths) in call.tenths.chunks(600).enumerate().take(5) {
            let p95 = waits(tenths).percentile_or_zero(95.0);
            eprintln!("minute {minute}: wait p95 {p95} ms");
            assert!(p95 <= 250.0, "minute {minute}: {p95} ms");
        }
    }

    #[test]
    fn four_tracks_on_a_narrow_link() {
        let call = call(4, Bitrate::bps(300_000), 60);
        let anchors = call.anchor_ages.len();
        let ages: Latencies = call.anchor_ages.iter().copied().collect();
        let most = call.anchor_ages.iter().copied().fold(0.0, f64::max);
        eprintln!(
            "four: {anchors} anchors, {:?} {:?} {:?} {most}",
            ages.percentile(50.0),
            ages.percentile(95.0),
            ages.percentile(99.0)
        );
    }

    #[test]
    fn a_fall_is_followed_and_a_rise_is_used() {
        let down = Profile::StepDown.down(1);
        let mut call = Call::new(SfuConfig::default(), 4, down.clone(), Profile::StepDown.up(), 1);
        let length = Duration::from_mins(1);
        call.run(length);
        let row = figures(Profile::StepDown, &call, &down, length, 4.0);
        // The figures are in lab/notes/links.md; these are what nothing may fall back behind.
        assert!(row.converged_s.is_some_and(|s| s <= 6.0), "{row:?}");
        assert!(row.carried >= 0.75 && row.wait_p95_ms <= 200.0, "{row:?}");
        assert!(row.frozen <= 0.05, "{row:?}");
    }
}
