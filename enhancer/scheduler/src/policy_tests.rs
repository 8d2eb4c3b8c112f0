use std::time::Duration;

use proptest::prelude::*;
use windlass_types::{AnchorPolicy, Size, StreamId};

use super::tests::config;
use super::*;

const MS: Duration = Duration::from_millis(1);

fn named(name: &str) -> AnchorPolicy {
    name.parse().expect("there is such a policy")
}

fn frame(id: u64, stream: u32, bytes: u32, arrival: Duration) -> Candidate {
    Candidate {
        id,
        stream: StreamId(stream),
        tier: Tier::Normal,
        bytes,
        size: Size::new(100, 100),
        arrival,
        per_mille: 1000,
        scale: 2,
        max_scale: 2,
    }
}

/// Work took what was expected.
fn finish(s: &mut Scheduler, done: &[Chosen]) {
    for chosen in done {
        s.finished(chosen, Some(chosen.cost));
    }
}

/// The ids chosen at each tick, two frames of `bytes(id)` before each; work takes what was expected.
fn ticks(s: &mut Scheduler, from: u64, count: u64, bytes: impl Fn(u64) -> u32) -> Vec<Vec<u64>> {
    let interval = config().interval;
    let mut all = Vec::new();
    for n in from..from + count {
        for id in [2 * n, 2 * n + 1] {
            let arrival = interval * n as u32 + (id % 2) as u32 * 33 * MS;
            s.push(frame(id, 0, bytes(id), arrival));
        }
        let mut out = Vec::new();
        s.tick(interval * (n + 1) as u32, &mut out);
        finish(s, &out);
        all.push(out.iter().map(|chosen| chosen.id).collect());
    }
    all
}

#[test]
fn cost_effective_compares_ten_ticks_of_frames() {
    let mut s = Scheduler::new(config());
    s.set_policy(StreamId(0), named("cost-effective"), Duration::ZERO);
    // Two frames of forty carry nearly all that changes.
    let all = ticks(&mut s, 0, 40, |id| if id % 20 == 11 { 9_000 } else { 50 });
    let decided: Vec<usize> = (0..40).filter(|&n| !all[n].is_empty()).collect();
    assert_eq!(decided, [9, 19, 29, 39], "{all:?}");
    assert!(all[19].contains(&31) && all[29].contains(&51), "{all:?}");
    let anchors: usize = all.iter().map(Vec::len).sum();
    assert!((5..=8).contains(&anchors), "7.5 % of 80 frames, one saved and one borrowed: {all:?}");
}

#[test]
fn streams_of_a_long_interval_are_decided_at_different_ticks() {
    let mut s = Scheduler::new(config());
    let mut at = [0u32; 10];
    for stream in 0..10 {
        s.set_policy(StreamId(stream), named("cost-effective"), Duration::ZERO);
    }
    for n in 0..20u32 {
        for stream in 0..10 {
            s.push(frame(u64::from(n * 10 + stream), stream, 500, config().interval * n));
        }
        let mut out = Vec::new();
        s.tick(config().interval * (n + 1), &mut out);
        finish(&mut s, &out);
        at[n as usize % 10] += out.len() as u32;
    }
    assert!(at.iter().all(|&anchors| anchors >= 1), "{at:?}");
}

#[test]
fn a_policy_is_switched_while_running_and_held_frames_are_decided() {
    let mut s = Scheduler::new(config());
    s.set_policy(StreamId(0), named("cost-effective"), Duration::ZERO);
    assert!(ticks(&mut s, 0, 5, |_| 500).concat().is_empty());
    assert!((0..10).all(|id| s.holds(StreamId(0), id)));
    s.set_policy(StreamId(0), named("latency-sensitive"), 330 * MS);
    let all = ticks(&mut s, 5, 1, |_| 500);
    assert!(
        (1..=3).contains(&all[0].len()),
        "as the fraction of twelve frames and one saved allow: {all:?}"
    );
    assert!(!(0..12).any(|id| s.holds(StreamId(0), id)));
    // What was held for too long is no anchor any more.
    assert!(all[0].iter().all(|&id| id >= 8), "{all:?}");
}

#[test]
fn the_signal_for_autoscaling_is_what_all_fractions_would_take() {
    let mut s = Scheduler::new(config());
    let interval = config().interval;
    let mut out = Vec::new();
    // 40 streams of 15 frames a second: a fifth of 606 frames, 10 ms each.
    for n in 0..40u32 {
        for stream in 0..40 {
            s.push(frame(u64::from(n * 40 + stream), stream, 500, interval * n));
        }
        out.clear();
        s.tick(interval * (n + 1), &mut out);
        finish(&mut s, &out);
    }
    assert_eq!(s.devices_wanted(), 2, "one device, and a fifth of another");
}

proptest! {
    #[test]
    fn whatever_the_policies_compute_and_deadlines_hold(
        policies in prop::collection::vec(0..AnchorPolicy::ALL.len(), 6),
        frames in prop::collection::vec((0u32..6, 1u32..20_000, 0u64..3_000), 1..200),
        devices in 1u32..4,
        switched in prop::option::of((0u32..6, 0..AnchorPolicy::ALL.len())),
    ) {
        let config = SchedulerConfig { devices, ..config() };
        let mut s = Scheduler::new(config.clone());
        for (stream, &policy) in policies.iter().enumerate() {
            s.set_policy(StreamId(stream as u32), AnchorPolicy::ALL[policy], Duration::ZERO);
        }
        let mut frames = frames;
        frames.sort_by_key(|f| f.2);
        let (mut next, mut spent) = (0, 0.0);
        for n in 1..=60u32 {
            let now = config.interval * n;
            if let Some((stream, policy)) = switched.filter(|_| n == 20) {
                s.set_policy(StreamId(stream), AnchorPolicy::ALL[policy], now);
            }
            while let Some(&(stream, bytes, at)) = frames.get(next).filter(|f| MS * f.2 as u32 <= now) {
                s.push(frame(next as u64, stream, bytes, MS * at as u32));
                next += 1;
            }
            let mut out = Vec::new();
            s.tick(now, &mut out);
            for chosen in out {
                let arrival = MS * frames[chosen.id as usize].2 as u32;
                prop_assert!(now + chosen.cost <= arrival + chosen.deadline + MS / 1000);
                spent += chosen.cost.as_secs_f64();
                s.finished(&chosen, Some(chosen.cost));
            }
            let all = f64::from(n + 1) * config.capacity_s(config.interval);
            prop_assert!(spent <= all + 0.01 + 1e-9, "{} of {}", spent, all);
        }
        let c = s.counters();
        let fates = c.chosen + c.over_fraction + c.unchanged + c.over_capacity + c.lost_causes + c.overflowed;
        prop_assert!(fates <= c.considered);
    }
}
