use std::time::Duration;

use proptest::prelude::*;
use windlass_types::{Refusal, Size, StreamId};

use super::*;

const MS: Duration = Duration::from_millis(1);

const SQUARE: Size = Size::new(100, 100);

pub(crate) fn candidate(
    id: u64,
    stream: u32,
    tier: Tier,
    bytes: u32,
    arrival: Duration,
) -> Candidate {
    let (stream, per_mille, scale) = (StreamId(stream), 1000, 2);
    let (size, max_scale) = (SQUARE, 4);
    Candidate { id, stream, tier, bytes, size, arrival, per_mille, scale, max_scale }
}

/// 100×100 pixels at this cost take 10 ms.
pub(crate) fn config() -> SchedulerConfig {
    SchedulerConfig {
        networks: vec![NetworkCost { scale: 2, per_pixel: Duration::from_micros(1) }],
        anchor_fraction: 0.2,
        min_residual: 0.0,
        ..SchedulerConfig::default()
    }
}

/// A tick whose chosen frames take exactly the expected time before the next one.
fn tick(scheduler: &mut Scheduler, now: Duration) -> Vec<u64> {
    let mut out = Vec::new();
    scheduler.tick(now, &mut out);
    for chosen in &out {
        scheduler.finished(chosen, Some(chosen.cost));
    }
    out.iter().map(|c| c.id).collect()
}

/// Networks of two and of four; 100×100 pixels take 1 ms by the first and 2 ms by the second.
fn of_two_scales() -> SchedulerConfig {
    let network = |scale, nanos| NetworkCost { scale, per_pixel: Duration::from_nanos(nanos) };
    SchedulerConfig { networks: vec![network(2, 100), network(4, 200)], ..config() }
}

/// Two seconds of a stream whose frames have the scale that was chosen for it; the networks of those chosen.
fn two_seconds(s: &mut Scheduler, from: u32, max_scale: usize) -> Vec<usize> {
    let (mut networks, mut out) = (Vec::new(), Vec::new());
    for n in from..from + 30 {
        let now = 66 * MS * n;
        let scale = s.scale(StreamId(1)).unwrap_or(2);
        s.push(Candidate {
            scale,
            max_scale,
            ..candidate(u64::from(n), 1, Tier::Normal, 900, now)
        });
        out.clear();
        s.tick(now, &mut out);
        for chosen in &out {
            s.finished(chosen, Some(chosen.cost));
            networks.push(chosen.network);
        }
    }
    networks
}

/// 100×100 pixels take 1 ms by the network of two, and 200 ms by the other: later than any deadline.
fn of_a_dear_one_of_four() -> SchedulerConfig {
    let network = |scale, nanos| NetworkCost { scale, per_pixel: Duration::from_nanos(nanos) };
    SchedulerConfig { networks: vec![network(2, 100), network(4, 20_000)], ..config() }
}

#[test]
fn stills_of_the_publisher_enlarge_a_stream_beyond_what_networks_can() {
    let mut s = Scheduler::new(of_a_dear_one_of_four());
    assert!(!two_seconds(&mut s, 1, 4).is_empty());
    assert_eq!(s.scale(StreamId(1)), Some(2));
    s.set_captured(StreamId(1), Captured::Stills);
    two_seconds(&mut s, 31, 4);
    assert_eq!(s.scale(StreamId(1)), Some(4));
    assert!(s.runs_no_network(StreamId(1)));
    assert_eq!(two_seconds(&mut s, 61, 4), [0usize; 0], "no network is run for it");
    assert_eq!(s.take_refusals().count(), 0, "and that is no refusal");
    s.set_captured(StreamId(1), Captured::No);
    two_seconds(&mut s, 91, 4);
    assert_eq!(s.scale(StreamId(1)), Some(2));
    assert!(!s.runs_no_network(StreamId(1)));
}

#[test]
fn anchors_of_the_publishers_pictures_are_made_whatever_networks_cost() {
    let mut s = Scheduler::new(of_a_dear_one_of_four());
    two_seconds(&mut s, 1, 4);
    s.set_captured(StreamId(1), Captured::Pictures);
    two_seconds(&mut s, 31, 4);
    assert_eq!(s.scale(StreamId(1)), Some(4));
    let networks = two_seconds(&mut s, 61, 4);
    assert!(!networks.is_empty() && networks.iter().all(|&n| n == 1), "{networks:?}");
}

#[test]
fn a_stream_is_enlarged_as_far_as_it_may_be_and_back_at_once() {
    let mut s = Scheduler::new(of_two_scales());
    let networks = two_seconds(&mut s, 1, 4);
    assert!(networks.is_sorted() && networks.contains(&0) && networks.contains(&1), "{networks:?}");
    assert_eq!(s.scale(StreamId(1)), Some(4));
    two_seconds(&mut s, 31, 2);
    assert_eq!(s.scale(StreamId(1)), Some(2), "a larger layer has come");
    two_seconds(&mut s, 61, 4);
    assert_eq!(s.scale(StreamId(1)), Some(2), "not to and fro");
    for n in 0..5 {
        two_seconds(&mut s, 91 + 30 * n, 4);
    }
    assert_eq!(s.scale(StreamId(1)), Some(4));
    assert_eq!(s.scale(StreamId(2)), None);
}

#[test]
fn what_cannot_be_sustained_is_tried_ever_more_rarely() {
    let mut s = Scheduler::new(of_two_scales());
    let (mut out, mut grown, mut before) = (Vec::new(), Vec::new(), 2);
    for n in 1..6_000u32 {
        let now = 66 * MS * n;
        let scale = s.scale(StreamId(1)).unwrap_or(2);
        if scale > before {
            grown.push(now);
        }
        before = scale;
        s.push(Candidate { scale, ..candidate(n.into(), 1, Tier::Normal, 900, now) });
        out.clear();
        s.tick(now, &mut out);
        for chosen in &out {
            // By four it takes too long each time.
            let took = if chosen.network == 1 { 80 * MS } else { chosen.cost };
            s.finished(chosen, Some(took));
        }
    }
    let pauses: Vec<Duration> = grown.windows(2).map(|w| w[1].saturating_sub(w[0])).collect();
    assert!((3..9).contains(&grown.len()), "{pauses:?}");
    assert!(pauses.is_sorted() && pauses[0] >= 2 * Duration::from_secs(10), "{pauses:?}");
    assert!(pauses[pauses.len() - 1] > 3 * pauses[0], "{pauses:?}");
}

#[test]
fn a_frame_of_the_former_scale_has_a_network_of_that() {
    let mut s = Scheduler::new(of_two_scales());
    two_seconds(&mut s, 1, 4);
    let mut out = Vec::new();
    let of_two = Candidate { scale: 2, ..candidate(1, 1, Tier::Key, 900, 2000 * MS) };
    let of_none = Candidate { scale: 3, ..candidate(2, 1, Tier::Key, 900, 2000 * MS) };
    s.push(of_two);
    s.push(of_none);
    s.tick(2046 * MS, &mut out);
    assert_eq!(out.iter().map(|c| (c.id, c.network)).collect::<Vec<_>>(), [(1, 0)]);
    assert_eq!(s.counters().lost_causes, 1);
}

#[test]
fn key_frames_of_all_streams_come_before_golden_and_normal_ones() {
    let mut s = Scheduler::new(SchedulerConfig { anchor_fraction: 1.0, ..config() });
    s.push(candidate(1, 1, Tier::Normal, 60_000, MS));
    s.push(candidate(2, 2, Tier::Golden, 10, MS));
    s.push(candidate(3, 3, Tier::Key, 10, MS));
    assert_eq!(tick(&mut s, 66 * MS), [3, 2, 1]);
}

#[test]
fn greater_gain_wins_across_streams() {
    let mut s = Scheduler::new(config());
    s.push(candidate(1, 1, Tier::Normal, 100, MS));
    s.push(candidate(2, 2, Tier::Normal, 900, MS));
    s.push(candidate(3, 3, Tier::Normal, 500, MS));
    assert_eq!(tick(&mut s, 66 * MS), [2, 3, 1]);
}

#[test]
fn among_equals_the_stream_longest_without_an_anchor_goes_first() {
    let mut s = Scheduler::new(SchedulerConfig { anchor_fraction: 1.0, ..config() });
    s.push(candidate(1, 1, Tier::Key, 100, MS));
    assert_eq!(tick(&mut s, 66 * MS), [1]);
    s.push(candidate(2, 1, Tier::Key, 100, 70 * MS));
    s.push(candidate(3, 2, Tier::Key, 100, 70 * MS));
    assert_eq!(tick(&mut s, 132 * MS), [3, 2]);
}

#[test]
fn the_interval_is_filled_up_to_its_compute_and_no_further() {
    // 66 ms at a cap of one half: 33 ms, three anchors of 10 ms.
    let mut s = Scheduler::new(SchedulerConfig { compute_cap: 0.5, ..config() });
    for stream in 0..8 {
        s.push(candidate(u64::from(stream), stream, Tier::Key, 10, 60 * MS));
    }
    assert_eq!(tick(&mut s, 66 * MS).len(), 3);
    assert_eq!(tick(&mut s, 132 * MS).len(), 3, "of those that waited");
    assert!(tick(&mut s, 264 * MS).is_empty());
    assert_eq!((s.counters().over_capacity, s.counters().lost_causes), (2, 0));
}

#[test]
fn with_an_accelerator_less_less_is_chosen_from_the_next_tick_on() {
    let mut s = Scheduler::new(SchedulerConfig { devices: 2, anchor_fraction: 1.0, ..config() });
    let mut chosen = |devices: u32, n: u32| {
        s.set_devices(devices);
        for stream in 0..20 {
            let id = u64::from(20 * n + stream);
            s.push(candidate(id, stream, Tier::Normal, 900, (66 * MS * n).saturating_sub(MS)));
        }
        tick(&mut s, 66 * MS * n).len()
    };
    let (two, one, none, again) = (chosen(2, 2), chosen(1, 3), chosen(0, 4), chosen(2, 6));
    assert!((13..=14).contains(&two), "{two}");
    assert!((6..=7).contains(&one), "{one}");
    assert!(none <= 1, "what was saved up: {none}");
    assert!((12..=14).contains(&again), "{again}");
}

#[test]
fn what_an_interval_leaves_over_is_carried_to_the_next() {
    // 6.6 ms an interval for anchors of 10 ms: two in three intervals.
    let mut s =
        Scheduler::new(SchedulerConfig { compute_cap: 0.1, anchor_fraction: 1.0, ..config() });
    let chosen: Vec<usize> = (1..=9)
        .map(|n| {
            s.push(candidate(1, 1, Tier::Normal, 10, 66 * MS * n));
            tick(&mut s, 66 * MS * n).len()
        })
        .collect();
    assert_eq!(chosen.iter().sum::<usize>(), 5, "{chosen:?}");
}

#[test]
fn a_picture_dearer_than_an_interval_is_served_in_the_end() {
    // 13.2 ms an interval for a picture of 40 ms, beside cheap ones with less gain.
    let mut s =
        Scheduler::new(SchedulerConfig { compute_cap: 0.2, anchor_fraction: 1.0, ..config() });
    let mut dear = 0;
    for n in 1..=30 {
        let large = Candidate {
            size: Size::new(400, 100),
            ..candidate(1, 1, Tier::Normal, 900, 66 * MS * n)
        };
        s.push(large);
        s.push(candidate(2, 2, Tier::Normal, 10, 66 * MS * n));
        dear += tick(&mut s, 66 * MS * n).iter().filter(|&&id| id == 1).count();
    }
    assert!(dear >= 5, "served {dear} times");
}

#[test]
fn a_stream_gets_no_more_anchors_than_its_fraction() {
    let mut s = Scheduler::new(SchedulerConfig { anchor_fraction: 0.2, ..config() });
    let mut chosen = 0;
    for n in 1..=300 {
        let now = 33 * MS * n;
        s.push(candidate(u64::from(n), 1, Tier::Normal, 500, now));
        if n % 2 == 0 {
            chosen += tick(&mut s, now).len();
        }
    }
    assert!((59..=61).contains(&chosen), "{chosen} of 300");
    assert!(s.counters().over_fraction > 200);
}

#[test]
fn a_stream_that_asks_for_fewer_anchors_gets_fewer() {
    let mut s = Scheduler::new(SchedulerConfig { anchor_fraction: 0.2, ..config() });
    let mut chosen = [0, 0];
    for n in 1..=300 {
        let now = 33 * MS * n;
        for (stream, per_mille) in [(1, 50), (2, 900)] {
            let frame = candidate(u64::from(2 * n + stream), stream, Tier::Normal, 500, now);
            s.push(Candidate { per_mille, ..frame });
        }
        if n % 2 == 0 {
            for id in tick(&mut s, now) {
                chosen[1 - id as usize % 2] += 1;
            }
        }
    }
    assert!((14..=16).contains(&chosen[0]) && (59..=61).contains(&chosen[1]), "{chosen:?}");
}

#[test]
fn a_picture_that_stands_still_gets_an_anchor_only_every_few_seconds() {
    let mut s = Scheduler::new(SchedulerConfig { min_residual: 1.0 / 64.0, ..config() });
    let still = |s: &mut Scheduler, n: u32, bytes| {
        s.push(candidate(
            u64::from(n),
            1,
            if n == 0 { Tier::Key } else { Tier::Normal },
            bytes,
            100 * MS * n,
        ));
        tick(s, 100 * MS * n).len()
    };
    assert_eq!(still(&mut s, 0, 900), 1);
    // A byte a frame: nothing for five seconds.
    assert_eq!((1..50).map(|n| still(&mut s, n, 1)).sum::<usize>(), 0);
    assert!(s.counters().unchanged > 30);
    assert_eq!((50..60).map(|n| still(&mut s, n, 1)).sum::<usize>(), 1);
    // 100 × 100 pixels ask for 157 bytes.
    assert_eq!(still(&mut s, 60, 100), 0);
    assert_eq!(still(&mut s, 61, 100), 1);
}

#[test]
fn a_key_frame_may_borrow_its_anchor_once() {
    let mut s = Scheduler::new(SchedulerConfig { anchor_fraction: 0.01, ..config() });
    for n in 1..=4u64 {
        s.push(candidate(n, 1, Tier::Key, 500, MS));
    }
    assert_eq!(tick(&mut s, 66 * MS), [1, 2]);
}

#[test]
fn what_cannot_meet_the_deadline_is_a_lost_cause() {
    let mut s = Scheduler::new(config());
    s.push(candidate(1, 1, Tier::Key, 10, MS));
    s.push(candidate(2, 2, Tier::Key, 10, 190 * MS));
    assert_eq!(tick(&mut s, 200 * MS), [2]);
    assert_eq!(s.counters().lost_causes, 1);
}

#[test]
fn work_that_has_not_finished_delays_what_follows_until_it_is_lost() {
    let mut s = Scheduler::new(SchedulerConfig { deadline: 100 * MS, ..config() });
    s.push(candidate(1, 1, Tier::Key, 10, 66 * MS));
    let mut out = Vec::new();
    s.tick(66 * MS, &mut out);
    s.compute.set_outstanding(0.105);
    s.push(candidate(2, 2, Tier::Key, 10, 132 * MS));
    assert!(tick(&mut s, 132 * MS).is_empty());
    s.compute.set_outstanding(0.010);
    s.finished(&out[0], Some(10 * MS));
    s.push(candidate(3, 2, Tier::Key, 10, 198 * MS));
    assert_eq!(tick(&mut s, 198 * MS), [3]);
}

#[test]
fn a_size_that_was_measured_too_dear_once_is_tried_again() {
    let mut s = Scheduler::new(config());
    for _ in 0..20 {
        s.networks.costs_mut(0).unwrap().observe(SQUARE, Duration::from_secs(1));
    }
    assert!(s.costs()[0].predict(SQUARE) > s.config.deadline);
    let tried = (1..=150u32).position(|n| {
        s.push(candidate(1, 1, Tier::Normal, 10, 66 * MS * n));
        !tick(&mut s, 66 * MS * n).is_empty()
    });
    assert!(tried.is_some());
}

#[test]
fn a_stream_is_told_that_no_network_is_fast_enough_for_it_and_when_one_is_again() {
    // 100×100 pixels take ten seconds.
    let networks = vec![NetworkCost { scale: 2, per_pixel: Duration::from_millis(1) }];
    let mut s = Scheduler::new(SchedulerConfig { networks, ..config() });
    let mut told = Vec::new();
    for n in 1..=100u32 {
        s.push(candidate(n.into(), 1, Tier::Normal, 500, 66 * MS * n));
        assert!(tick(&mut s, 66 * MS * n).is_empty());
        told.extend(s.take_refusals().map(|(stream, why)| (n, stream, why)));
    }
    assert_eq!(told.len(), 1, "{told:?}");
    assert!((60..65).contains(&told[0].0) && told[0].2 == Some(Refusal::Slow), "{told:?}");
    s.served(StreamId(1));
    assert_eq!(s.take_refusals().collect::<Vec<_>>(), [(StreamId(1), None)]);
}

#[test]
fn an_overrun_is_paid_back_by_later_intervals() {
    let mut s = Scheduler::new(SchedulerConfig { anchor_fraction: 1.0, ..config() });
    s.push(candidate(1, 1, Tier::Key, 10, 66 * MS));
    let mut out = Vec::new();
    s.tick(66 * MS, &mut out);
    s.finished(&out[0], Some(300 * MS));
    s.push(candidate(2, 1, Tier::Key, 10, 132 * MS));
    assert!(tick(&mut s, 132 * MS).is_empty());
}

#[test]
fn an_anchor_made_without_its_network_says_nothing_of_what_that_costs() {
    let mut s = Scheduler::new(SchedulerConfig { anchor_fraction: 1.0, ..config() });
    s.push(candidate(1, 1, Tier::Key, 10, 66 * MS));
    let mut out = Vec::new();
    s.tick(66 * MS, &mut out);
    let credit = s.compute.credit_s();
    s.finished_without_network(&out[0], MS);
    assert_eq!(s.costs()[0].predict(SQUARE), 10 * MS);
    assert!(s.compute.outstanding_s().abs() < 1e-9);
    assert!((s.compute.credit_s() - credit - 0.009).abs() < 1e-9, "what it did not take goes back");
}

#[test]
fn a_stream_keeps_a_bounded_number_of_candidates_and_loses_the_oldest() {
    let mut s = Scheduler::new(SchedulerConfig { frames_per_stream: 4, ..config() });
    for n in 0..10 {
        s.push(candidate(n, 1, Tier::Normal, 10, MS));
    }
    let frames = &s.streams.get(StreamId(1)).unwrap().frames;
    assert_eq!(frames.waiting().len(), 4);
    assert_eq!(frames.waiting()[0].id, 6);
    assert_eq!(s.counters().overflowed, 6);
    assert_eq!(frames.residual(), 60);
}

#[test]
fn silent_and_forgotten_streams_leave_nothing_behind() {
    let mut s = Scheduler::new(config());
    s.push(candidate(1, 1, Tier::Key, 10, MS));
    s.push(candidate(2, 2, Tier::Key, 10, MS));
    s.forget(StreamId(1));
    assert_eq!(s.streams.len(), 1);
    tick(&mut s, Duration::from_secs(11));
    assert_eq!(s.streams.len(), 0);
}

#[test]
fn senseless_limits_choose_nothing_and_do_not_panic() {
    for (compute_cap, anchor_fraction) in [(f64::NAN, 0.2), (-1.0, 0.2), (0.0, 0.2), (1.0, 0.0)] {
        let mut s = Scheduler::new(SchedulerConfig { compute_cap, anchor_fraction, ..config() });
        s.push(candidate(1, 1, Tier::Key, 10, MS));
        assert!(tick(&mut s, 66 * MS).is_empty());
    }
}

/// Frames of several streams over some seconds: (stream, tier, bytes, size, millisecond).
fn arrivals() -> impl Strategy<Value = Vec<Candidate>> {
    let tier = prop_oneof![1 => Just(Tier::Key), 2 => Just(Tier::Golden), 9 => Just(Tier::Normal)];
    let frame = (0u32..6, tier, 1u32..20_000, 1u16..5, 0u64..3_000);
    prop::collection::vec(frame, 1..200).prop_map(|mut frames| {
        frames.sort_by_key(|f| f.4);
        let numbered = frames.into_iter().enumerate();
        numbered
            .map(|(id, (stream, tier, bytes, size, at))| Candidate {
                size: Size::new(60 * size, 100),
                ..candidate(id as u64, stream, tier, bytes, MS * at as u32)
            })
            .collect()
    })
}

/// Runs frames through ticks with a pool that takes exactly the expected time.
fn run(config: &SchedulerConfig, frames: &[Candidate]) -> Vec<(u32, Chosen)> {
    let mut s = Scheduler::new(config.clone());
    let mut all = Vec::new();
    let mut next = 0;
    for n in 1..=50 {
        let now = config.interval * n;
        while let Some(f) = frames.get(next).filter(|f| f.arrival <= now) {
            s.push(*f);
            next += 1;
        }
        let mut out = Vec::new();
        s.tick(now, &mut out);
        for chosen in out {
            s.finished(&chosen, Some(chosen.cost));
            all.push((n, chosen));
        }
    }
    all
}

proptest! {
    #[test]
    fn capacity_is_never_exceeded_over_time(
        frames in arrivals(), devices in 1u32..4, cap in 0.05f64..1.0,
    ) {
        let config = SchedulerConfig {
            devices, compute_cap: cap, anchor_fraction: 1.0, ..config()
        };
        let all = run(&config, &frames);
        let costliest = all.iter().map(|(_, c)| c.cost.as_secs_f64()).fold(0.0, f64::max);
        // Over any span of ticks: the span's compute, and what may be saved up before it.
        for first in 0..all.len() {
            let mut sum = 0.0;
            for (n, chosen) in &all[first..] {
                sum += chosen.cost.as_secs_f64();
                let span = f64::from(n - all[first].0 + 1) * config.capacity_s(config.interval);
                let saved = config.capacity_s(config.interval) + costliest.max(0.024);
                prop_assert!(sum <= span + saved + 1e-9, "{} > {} + {}", sum, span, saved);
            }
        }
    }

    #[test]
    fn streams_keep_to_their_fraction(frames in arrivals(), fraction in 0.0f64..1.0) {
        let config = SchedulerConfig { anchor_fraction: fraction, devices: 4, ..config() };
        let all = run(&config, &frames);
        for stream in 0..6 {
            let given = frames.iter().filter(|f| f.stream.0 == stream).count() as f64;
            let anchors = all.iter().filter(|(_, c)| c.stream.0 == stream).count() as f64;
            prop_assert!(anchors <= given * fraction + 2.0 + 1e-6);
        }
    }

    #[test]
    fn the_order_in_which_streams_are_pushed_does_not_matter(
        frames in arrivals(), rotation in 0u32..6, cap in 0.05f64..1.0,
    ) {
        let config = SchedulerConfig { compute_cap: cap, ..config() };
        let mut other = frames.clone();
        // Reorders streams within each interval, never frames within a stream.
        let interval = config.interval.as_nanos();
        other.sort_by_key(|f| {
            (f.arrival.as_nanos().div_ceil(interval), (f.stream.0 + rotation) % 6)
        });
        let late = |f: &Candidate| f.arrival.as_nanos().div_ceil(interval);
        let mut sorted = frames.clone();
        sorted.sort_by_key(late);
        prop_assert_eq!(run_by_interval(&config, &sorted), run_by_interval(&config, &other));
    }

    #[test]
    fn every_candidate_is_counted_once(frames in arrivals(), cap in 0.0f64..1.0) {
        let mut s = Scheduler::new(SchedulerConfig { compute_cap: cap, ..config() });
        for f in &frames {
            s.push(*f);
        }
        let chosen = tick(&mut s, 3_000 * MS).len() as u64;
        // What waited for another tick is decided at that.
        let chosen = chosen + tick(&mut s, 3_066 * MS).len() as u64 + tick(&mut s, 3_300 * MS).len() as u64;
        let c = s.counters();
        prop_assert_eq!(c.chosen, chosen);
        prop_assert_eq!(c.considered, frames.len() as u64);
        let fates = c.chosen + c.over_fraction + c.unchanged + c.over_capacity + c.lost_causes + c.overflowed;
        prop_assert_eq!(fates, c.considered);
    }
}

/// Like [`run`], for frames that are ordered by interval only.
fn run_by_interval(config: &SchedulerConfig, frames: &[Candidate]) -> Vec<u64> {
    let mut s = Scheduler::new(config.clone());
    let mut all = Vec::new();
    for n in 0..=50u32 {
        let now = config.interval * n;
        let due = |f: &&Candidate| {
            f.arrival.as_nanos().div_ceil(config.interval.as_nanos()) == u128::from(n)
        };
        for f in frames.iter().filter(due) {
            s.push(*f);
        }
        all.extend(tick(&mut s, now));
    }
    all
}
