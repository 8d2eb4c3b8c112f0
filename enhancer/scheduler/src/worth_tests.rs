//! Streams whose enhanced anchors are worth nothing.

use std::time::Duration;

use windlass_types::{AnchorPolicy, Size, StreamId};

use super::tests::config;
use super::worth::{PROBE_EVERY, RESUME_DB};
use super::*;

const MS: Duration = Duration::from_millis(1);
const TICK: Duration = Duration::from_millis(66);

/// Streams of 15 frames a second, decided each interval.
struct Call {
    scheduler: Scheduler,
    ticks: u32,
}

impl Call {
    fn new(streams: u32, policy: AnchorPolicy) -> Call {
        let mut call = Call { scheduler: Scheduler::new(config()), ticks: 0 };
        for stream in 0..streams {
            call.scheduler.set_policy(StreamId(stream), policy, Duration::ZERO);
        }
        call
    }

    fn now(&self) -> Duration {
        TICK * self.ticks
    }

    /// Goes on for some time; each chosen frame's anchor is worth what `worth` says of its stream, in dB.
    fn run(&mut self, time: Duration, worth: impl Fn(StreamId) -> f64) -> Vec<Chosen> {
        let until = self.now() + time;
        let mut all = Vec::new();
        while self.now() < until {
            self.ticks += 1;
            let now = self.now();
            let streams: Vec<StreamId> = self.scheduler.streams.iter().map(|(id, _)| id).collect();
            for stream in streams {
                self.scheduler.push(Candidate {
                    id: self.ticks.into(),
                    stream,
                    tier: Tier::Normal,
                    bytes: 900,
                    size: Size::new(100, 100),
                    arrival: now,
                    per_mille: 1000,
                    scale: 2,
                    max_scale: 2,
                });
            }
            let first = all.len();
            self.scheduler.tick(now, &mut all);
            for chosen in &all[first..] {
                self.scheduler.finished(chosen, Some(chosen.cost));
                self.scheduler.measured(chosen.stream, worth(chosen.stream), now);
            }
        }
        all
    }
}

#[test]
fn a_stream_whose_anchors_are_worth_nothing_makes_probes_alone_and_others_go_on() {
    let mut call = Call::new(2, AnchorPolicy::LatencySensitive);
    let worth = |stream: StreamId| if stream.0 == 0 { 0.02 } else { 0.4 };
    call.run(5_000 * MS, worth);
    assert!(call.scheduler.is_held_back(StreamId(0)) && !call.scheduler.is_held_back(StreamId(1)));
    assert_eq!(call.scheduler.held_back(), 1);
    let before = call.scheduler.counters();
    let later = call.run(3 * PROBE_EVERY, worth);
    let of = |stream: u32| later.iter().filter(move |c| c.stream.0 == stream);
    assert!((2..=3).contains(&of(0).count()) && of(0).all(|chosen| chosen.probe));
    assert!(of(1).count() > 80 && of(1).all(|chosen| !chosen.probe));
    let counters = call.scheduler.counters();
    let worthless = counters.worthless - before.worthless;
    assert!((80..100).contains(&worthless), "as many as it would have had: {worthless}");
    let decided = counters.chosen + counters.over_fraction + counters.over_capacity;
    assert_eq!(counters.considered, decided + counters.lost_causes + counters.worthless);
}

#[test]
fn a_held_back_stream_goes_on_once_a_probe_is_worth_something() {
    let mut call = Call::new(1, AnchorPolicy::LatencySensitive);
    call.run(5_000 * MS, |_| 0.0);
    assert!(call.scheduler.is_held_back(StreamId(0)));
    let chosen = call.run(PROBE_EVERY + 5_000 * MS, |_| RESUME_DB);
    assert!(!call.scheduler.is_held_back(StreamId(0)));
    assert!(chosen[0].probe && chosen.len() > 5 && chosen[1..].iter().all(|c| !c.probe));
}

#[test]
fn pictures_of_the_publishers_own_are_not_held_back() {
    let mut call = Call::new(1, AnchorPolicy::LatencySensitive);
    call.run(5_000 * MS, |_| 0.0);
    call.scheduler.set_captured(StreamId(0), Captured::Pictures);
    let chosen = call.run(2_000 * MS, |_| 0.0);
    assert!(chosen.len() > 4 && chosen.iter().all(|chosen| !chosen.probe));
    call.scheduler.set_captured(StreamId(0), Captured::No);
    assert!(call.run(2_000 * MS, |_| 0.0).is_empty());
}

#[test]
fn streams_that_are_held_back_ask_for_no_accelerators() {
    let mut call = Call::new(1, AnchorPolicy::LatencySensitive);
    call.run(4_000 * MS, |_| 1.0);
    assert!(call.scheduler.demand() > 0.0);
    call.run(20_000 * MS, |_| 0.0);
    assert!(call.scheduler.demand() <= 0.0);
}
