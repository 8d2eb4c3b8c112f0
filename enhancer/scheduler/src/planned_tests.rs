//! The scheduler with streams that are promised a quality.

use std::time::Duration;

use windlass_types::{AnchorPolicy, DecayReport, Refusal, Size, StreamId};

use super::tests::config;
use super::*;
use crate::promise::PromisedStreams;

/// Plays streams of the policy at 30 frames a second; anchors take what was expected. Returns the anchors of each
/// stream in the last half, and what was told.
fn play(
    s: &mut Scheduler,
    from: Duration,
    seconds: u32,
    decays: &[f64],
) -> (Vec<u32>, Vec<(StreamId, Option<Refusal>)>) {
    let interval = config().interval;
    let ids = 0..decays.len() as u32;
    for stream in ids.clone() {
        s.set_policy(StreamId(stream), AnchorPolicy::QualitySla, from);
    }
    let (mut anchors, mut told) = (vec![0; decays.len()], Vec::new());
    let ticks = seconds * 1000 / 66;
    for tick in 0..ticks {
        let start = from + interval * tick;
        for (stream, &decay) in ids.clone().zip(decays) {
            for frame in 0..2u32 {
                let arrival = start
                    + Duration::from_millis(33) * frame
                    + Duration::from_micros(stream.into());
                s.push(Candidate {
                    id: u64::from(stream) << 32 | u64::from(2 * tick + frame),
                    stream: StreamId(stream),
                    tier: Tier::Normal,
                    bytes: 500,
                    size: Size::new(100, 100),
                    arrival,
                    per_mille: 1000,
                    scale: 2,
                    max_scale: 2,
                });
            }
            s.report_decay(
                StreamId(stream),
                0,
                start,
                DecayReport { per_frame: decay, frames: 1.0 },
            );
        }
        let mut out = Vec::new();
        s.tick(start + interval, &mut out);
        for chosen in &out {
            s.finished(chosen, Some(chosen.cost));
            if tick >= ticks / 2 {
                anchors[chosen.stream.0 as usize] += 1;
            }
        }
        told.extend(s.take_refusals());
    }
    (anchors, told)
}

/// Anchors of 10 ms on one accelerator.
fn scheduler() -> Scheduler {
    let network = NetworkCost { scale: 2, per_pixel: Duration::from_micros(1) };
    Scheduler::new(SchedulerConfig { networks: vec![network], devices: 1, ..config() })
}

#[test]
fn what_gets_worse_faster_has_more_anchors() {
    let (anchors, _) = play(&mut scheduler(), Duration::ZERO, 20, &[0.8, 2.0]);
    assert!(anchors[0] > 3 && anchors[1] > 2 * anchors[0], "{anchors:?}");
}

#[test]
fn who_would_break_the_promise_to_others_is_refused_and_told_so() {
    let mut decays = vec![1.0; 12];
    decays[5] = 500.0;
    let mut s = scheduler();
    let (anchors, told) = play(&mut s, Duration::ZERO, 20, &decays);
    assert_eq!(anchors[5], 0, "{anchors:?}");
    assert!(anchors.iter().enumerate().all(|(n, &a)| n == 5 || a > 5), "{anchors:?}");
    assert!(told.contains(&(StreamId(5), Some(Refusal::Promise))), "{told:?}");
    assert!(
        s.counters().refused > 0 && s.promised() == PromisedStreams { kept: 11, refused: 1 },
        "{:?}",
        s.promised()
    );
    // With another policy it is refused nothing.
    s.set_policy(StreamId(5), AnchorPolicy::LatencySensitive, Duration::from_secs(20));
    assert_eq!(s.take_refusals().collect::<Vec<_>>(), [(StreamId(5), None)]);
}

#[test]
fn the_rest_of_the_compute_is_for_those_without_a_promise() {
    let mut s = scheduler();
    let decays = vec![1.0; 4];
    // Another stream of another policy, all frames of which come first.
    let late = Duration::from_secs(1);
    let (first, _) = play(&mut s, Duration::ZERO, 1, &decays);
    drop(first);
    let mut others = 0;
    for tick in 0..150u32 {
        let start = late + config().interval * tick;
        for stream in 0..5u32 {
            let (tier, arrival) = (Tier::Normal, start + Duration::from_millis(5));
            let id = u64::from(stream) << 32 | u64::from(tick);
            let (size, per_mille) = (Size::new(100, 100), 1000);
            s.push(Candidate {
                id,
                stream: StreamId(stream),
                tier,
                bytes: 900,
                size,
                arrival,
                per_mille,
                scale: 2,
                max_scale: 2,
            });
        }
        let mut out = Vec::new();
        s.tick(start + config().interval, &mut out);
        for chosen in &out {
            s.finished(chosen, Some(chosen.cost));
        }
        others += out.iter().filter(|chosen| chosen.stream == StreamId(4)).count();
    }
    assert!(others > 0, "the stream without a promise has none");
}

#[test]
fn with_no_accelerator_all_are_refused_and_served_again_when_one_is_back() {
    let mut s = scheduler();
    let decays = [1.0; 3];
    play(&mut s, Duration::ZERO, 2, &decays);
    s.set_devices(0);
    let (_, told) = play(&mut s, Duration::from_secs(2), 1, &decays);
    assert_eq!(told.iter().filter(|(_, reason)| reason.is_some()).count(), 3, "{told:?}");
    s.set_devices(1);
    let (anchors, told) = play(&mut s, Duration::from_secs(3), 20, &decays);
    assert!(anchors.iter().all(|&a| a > 0), "{anchors:?}");
    assert_eq!(told.iter().filter(|(_, reason)| reason.is_none()).count(), 3, "{told:?}");
}

#[test]
fn every_frame_has_one_fate() {
    let mut s = scheduler();
    play(&mut s, Duration::ZERO, 10, &[1.0, 50.0, 2.0, 0.2, 400.0]);
    let c = s.counters();
    let fates = c.chosen
        + c.over_fraction
        + c.unchanged
        + c.over_capacity
        + c.lost_causes
        + c.overflowed
        + c.not_planned
        + c.refused;
    assert_eq!(c.considered, fates, "{c:?}");
}

#[test]
fn what_the_cap_lets_happen_seldom_is_saved_up_for() {
    // An anchor takes 10 ms, an interval earns 2.
    let network = NetworkCost { scale: 2, per_pixel: Duration::from_micros(1) };
    let mut s = Scheduler::new(SchedulerConfig {
        networks: vec![network],
        devices: 1,
        compute_cap: 0.03,
        ..config()
    });
    let (anchors, _) = play(&mut s, Duration::ZERO, 20, &[1.0]);
    assert!((4..=32).contains(&anchors[0]), "{anchors:?}");
}
