//! Properties of the selection for any input, configuration and clock.
//!
//! **Monotonic in the compute cap.** In one tick, after the same history, a higher cap chooses every frame that a lower
//! cap chooses, because each choice is a prefix of the same order. Policies with plans are excepted: another cap gives
//! another plan. If all pictures cost the same and no stream is at its fraction, more accelerators or a longer deadline
//! choose at least as many frames. If no frame is late, this also holds over a whole run, at every tick.
//!
//! A greedy choice that drops the frames it skips has no stronger property. Tests below show why:
//!
//! - A longer deadline admits an expensive picture, and all frames behind it wait.
//! - A longer deadline admits an older frame. It uses its stream's allowance, and delays another stream's frame too
//!   much.
//! - A higher cap spends on one expensive picture what a lower cap keeps for several cheap ones.

use std::time::Duration;

use proptest::prelude::*;
use windlass_types::{AnchorPolicy, Owner, Size, StreamId};

use super::rank::ties;
use super::shares::Shares;
use super::tests::config;
use super::*;

const MS: Duration = Duration::from_millis(1);
const STREAMS: u32 = 6;
/// No clock measures more in a scheduler's life.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// 60×100 pixels by `size`: 6 ms each.
fn frame(id: u64, stream: u32, tier: Tier, bytes: u32, size: u16, arrival: Duration) -> Candidate {
    let stream = StreamId(stream);
    let (size, per_mille, scale, max_scale) = (Size::new(60 * size, 100), 1000, 2, 2);
    Candidate { id, stream, tier, bytes, size, arrival, per_mille, scale, max_scale }
}

/// One size of picture; whether anything else differs is up to the test.
fn alike(id: u64, stream: u32, arrival: Duration) -> Candidate {
    frame(id, stream, Tier::Normal, 900, 1, arrival)
}

/// Frames by arrival, numbered so, of up to three seconds.
fn frames(sizes: u16) -> impl Strategy<Value = Vec<Candidate>> {
    let tier = prop_oneof![1 => Just(Tier::Key), 2 => Just(Tier::Golden), 9 => Just(Tier::Normal)];
    let frame_of = (0..STREAMS, tier, 1u32..20_000, 1..=sizes, 0u32..3_000);
    prop::collection::vec(frame_of, 1..250).prop_map(|mut all| {
        all.sort_by_key(|f| f.4);
        let numbered = (0u64..).zip(all);
        numbered
            .map(|(id, (stream, tier, bytes, size, at))| {
                frame(id, stream, tier, bytes, size, MS * at)
            })
            .collect()
    })
}

fn policies() -> impl Strategy<Value = Vec<AnchorPolicy>> {
    let policy = (0..AnchorPolicy::ALL.len()).prop_map(|n| AnchorPolicy::ALL[n]);
    prop::collection::vec(policy, STREAMS as usize)
}

/// Policies without a plan: another cap would give another plan.
fn greedy() -> impl Strategy<Value = Vec<AnchorPolicy>> {
    policies().prop_filter("planned", |all| {
        !all.iter().any(|&p| policy::of(p).selection() == Selection::ByPlan)
    })
}

fn scheduler(config: &SchedulerConfig, policies: &[AnchorPolicy]) -> Scheduler {
    let mut s = Scheduler::new(config.clone());
    for (stream, &policy) in (0..).zip(policies) {
        s.set_policy(StreamId(stream), policy, Duration::ZERO);
    }
    s
}

/// Hands in what comes up to the `n`th tick after the one before, and decides.
fn tick(s: &mut Scheduler, frames: &[Candidate], n: u32) -> Vec<Chosen> {
    let interval = s.config.interval;
    let (from, now) = (interval * (n - 1), interval * n);
    for frame in frames {
        let due = frame.arrival <= now && (frame.arrival > from || n == 1);
        if due {
            s.push(*frame);
        }
    }
    let mut out = Vec::new();
    s.tick(now, &mut out);
    out
}

/// Work takes what was expected, and is done before the next tick.
fn finish(s: &mut Scheduler, done: &[Chosen]) {
    for chosen in done {
        s.finished(chosen, Some(chosen.cost));
    }
}

/// Number of frames chosen up to each of the given number of ticks.
fn totals(mut s: Scheduler, frames: &[Candidate], ticks: u32) -> Vec<usize> {
    let mut total = 0;
    let counts = (1..=ticks).map(|n| {
        let out = tick(&mut s, frames, n);
        finish(&mut s, &out);
        total += out.len();
        total
    });
    counts.collect()
}

fn ids(chosen: &[Chosen]) -> Vec<u64> {
    chosen.iter().map(|c| c.id).collect()
}

/// Work that was chosen before and is not done yet, in seconds.
fn busy(s: &mut Scheduler, seconds: f64) {
    s.compute.set_outstanding(seconds);
}

proptest! {
    #[test]
    fn after_absurd_samples_a_time_to_completion_is_learned_anew(
        absurd in prop::collection::vec((1u64..u64::MAX, prop_oneof![Just(Duration::ZERO), Just(Duration::MAX), Just(YEAR)]), 0..50),
        first_guess in prop_oneof![Just(0), Just(100), Just(u64::MAX)],
    ) {
        let per_pixel = Duration::from_nanos(first_guess);
        let mut model = job_time::JobTimes::new(&[NetworkCost { scale: 2, per_pixel }]);
        for (pixels, took) in absurd {
            model.observe(0, pixels, true, took);
        }
        for _ in 0..2_000 {
            model.observe(0, 57_600, true, 6 * MS);
        }
        let learned = model.predict(0, 57_600, true);
        prop_assert!((5 * MS..7 * MS).contains(&learned), "{:?}", learned);
    }

    #[test]
    fn a_greater_cap_never_leaves_out_what_a_lesser_one_chose(
        frames in frames(4), policies in greedy(), history in 0u32..20,
        caps in (0.0f64..1.0, 0.0f64..1.0), busy_s in 0.0f64..0.1,
    ) {
        let (less, more) = (caps.0.min(caps.1), caps.0.max(caps.1));
        let choose = |cap: f64| {
            let mut s = scheduler(&config(), &policies);
            for n in 1..=history {
                let out = tick(&mut s, &frames, n);
                finish(&mut s, &out);
            }
            s.config.compute_cap = cap;
            busy(&mut s, busy_s);
            ids(&tick(&mut s, &frames, history + 1))
        };
        prop_assert!(choose(more).starts_with(&choose(less)));
    }

    #[test]
    fn of_one_cost_no_fewer_are_chosen_by_more_accelerators_or_a_longer_deadline(
        ages in prop::collection::vec((0u32..200, 1u32..20_000), 1..60), policies in policies(),
        less in (1u32..5, 10u32..200), more in (0u32..5, 0u32..200), busy_s in 0.0f64..0.1,
    ) {
        let choose = |devices: u32, deadline: u32| {
            let config = SchedulerConfig { devices, deadline: MS * deadline, ..config() };
            let mut s = scheduler(&config, &policies);
            for (stream, &(age, bytes)) in (0u32..).zip(&ages) {
                // One of each stream, so that none is at its fraction.
                s.push(frame(stream.into(), stream, Tier::Normal, bytes, 1, MS * (200 - age)));
            }
            busy(&mut s, busy_s);
            let mut out = Vec::new();
            s.tick(MS * 200, &mut out);
            out.len()
        };
        prop_assert!(choose(less.0, less.1) <= choose(less.0 + more.0, less.1 + more.1));
    }

    #[test]
    fn of_one_cost_more_budget_never_gives_fewer_over_a_run(
        frames in frames(1), less in (0u32..4, 0.0f64..1.0), more in (0u32..4, 0.0f64..1.0),
    ) {
        let total = |devices: u32, compute_cap: f64| {
            let deadline = Duration::from_secs(60);
            let fraction = SchedulerConfig { anchor_fraction: 1.0, ..config() };
            totals(Scheduler::new(SchedulerConfig { devices, compute_cap, deadline, ..fraction }), &frames, 50)
        };
        let lesser = total(less.0, less.1);
        let greater = total(less.0 + more.0, (less.1 + more.1).min(1.0));
        prop_assert!(lesser.iter().zip(&greater).all(|(l, g)| l <= g), "{:?} {:?}", lesser, greater);
    }

    #[test]
    fn no_stream_or_room_takes_the_anchors_of_another_below_its_fair_share(
        greedy in prop::collection::vec((0u64..4, 0u64..4, 1u16..=4), 1..9), cap in 0.2f64..0.6, alone in any::<bool>(),
    ) {
        // Others send nothing but key frames, of any size, from any room; one has three anchors a second to ask for.
        let config = SchedulerConfig { compute_cap: cap, anchor_fraction: 0.1, ..config() };
        let mut s = Scheduler::new(config.clone());
        let honest = STREAMS * 10;
        let mut owners: Vec<Owner> = greedy.iter().map(|&(room, publisher, _)| Owner { room, publisher: 10 + publisher }).collect();
        // Of a room of its own, or of the first one's.
        owners.push(Owner { room: if alone { 9 } else { owners[0].room }, publisher: 9 });
        let share = Shares::default().of(owners.iter().copied())[greedy.len()];
        let (mut id, mut anchors) = (0, 0);
        for n in 1..=450u32 {
            let now = config.interval * n;
            for frame_of in 0..2u32 {
                let arrival = now.saturating_sub(config.interval / 2 * (2 - frame_of));
                for (stream, &(.., size)) in (0u32..).zip(&greedy) {
                    s.push(frame(id, stream, Tier::Key, 20_000, size, arrival));
                    id += 1;
                }
                s.push(frame(id, honest, Tier::Normal, 300, 1, arrival));
                id += 1;
            }
            for (stream, &owner) in (0u32..).zip(&owners) {
                let stream = if stream as usize == greedy.len() { honest } else { stream };
                s.set_owner(StreamId(stream), owner);
            }
            let mut out = Vec::new();
            s.tick(now, &mut out);
            finish(&mut s, &out);
            anchors += if n > 150 { out.iter().filter(|chosen| chosen.stream.0 == honest).count() } else { 0 };
        }
        // In twenty seconds; of 6 ms each.
        let wants = 3.0 * 20.0;
        let fair = (share * cap * 20.0 / 0.006).min(wants);
        prop_assert!(anchors as f64 >= 0.8 * fair - 2.0, "{} anchors of {} (share {})", anchors, fair, share);
    }

    #[test]
    fn what_is_chosen_is_done_in_time_by_any_pool_that_keeps_the_order(
        frames in frames(4), policies in policies(), devices in 1u32..4,
    ) {
        let config = SchedulerConfig { devices, ..config() };
        let mut s = scheduler(&config, &policies);
        // When each device is free, and what it is at work on.
        let mut free = vec![Duration::ZERO; devices as usize];
        let mut running: Vec<(Duration, Chosen)> = Vec::new();
        for n in 1..=50 {
            let now = config.interval * n;
            running.retain(|(done, chosen)| {
                let ends = *done <= now;
                if ends {
                    s.finished(chosen, Some(chosen.cost));
                }
                !ends
            });
            for chosen in tick(&mut s, &frames, n) {
                let first = free.iter_mut().min().expect("a device");
                *first = (*first).max(now) + chosen.cost;
                let due = frames[chosen.id as usize].arrival + chosen.deadline;
                prop_assert!(*first <= due + MS / 1000, "{:?} after {:?}", first, due);
                running.push((*first, chosen));
            }
        }
    }

    #[test]
    fn in_whatever_order_streams_come_the_same_is_chosen(
        mut frames in frames(4), policies in policies(), seed in any::<u64>(), cap in 0.05f64..1.0,
    ) {
        let config = SchedulerConfig { compute_cap: cap, ..config() };
        let run = |frames: &[Candidate]| {
            let mut s = scheduler(&config, &policies);
            let all = (1..=50).map(|n| {
                let out = tick(&mut s, frames, n);
                finish(&mut s, &out);
                ids(&out)
            });
            all.collect::<Vec<_>>()
        };
        let before = run(&frames);
        // Streams in any order, the frames of each in decoding order.
        frames.sort_by_key(|f| (u64::from(f.stream.0) + 1).wrapping_mul(seed | 1));
        prop_assert_eq!(before, run(&frames));
    }

    #[test]
    fn names_of_streams_decide_nothing_but_ties(
        frames in frames(4), names in Just((0..STREAMS).collect::<Vec<_>>()).prop_shuffle(), cap in 0.05f64..1.0,
    ) {
        let config = SchedulerConfig { compute_cap: cap, ..config() };
        let renamed: Vec<Candidate> = frames
            .iter()
            .map(|f| Candidate { stream: StreamId(names[f.stream.0 as usize]), ..*f })
            .collect();
        let (mut s, mut t) = (Scheduler::new(config.clone()), Scheduler::new(config));
        for n in 1..=50 {
            let (out, other) = (tick(&mut s, &frames, n), tick(&mut t, &renamed, n));
            if s.ranked.windows(2).any(|w| ties(&w[0], &w[1])) {
                break;
            }
            prop_assert_eq!(ids(&out), ids(&other));
            finish(&mut s, &out);
            finish(&mut t, &other);
        }
    }

    #[test]
    fn what_work_really_took_is_earned_but_for_what_was_at_hand(
        frames in frames(4), devices in 1u32..4, cap in 0.05f64..1.0, slow in prop::collection::vec(0.1f64..4.0, 8),
    ) {
        let config = SchedulerConfig { devices, compute_cap: cap, anchor_fraction: 1.0, ..config() };
        let mut s = Scheduler::new(config.clone());
        let (mut took_s, mut costliest, mut max_at_once) = (0.0, 0.0f64, 0.0f64);
        for n in 1..=50 {
            let mut at_once = 0.0;
            for chosen in tick(&mut s, &frames, n) {
                let took = chosen.cost.mul_f64(slow[chosen.id as usize % slow.len()]);
                s.finished(&chosen, Some(took));
                costliest = costliest.max(chosen.cost.as_secs_f64());
                at_once += took.as_secs_f64();
            }
            took_s += at_once;
            max_at_once = max_at_once.max(at_once);
            let earned = f64::from(n + 1) * config.capacity_s(config.interval);
            prop_assert!(took_s <= earned + costliest + max_at_once + 1e-9, "{} of {}", took_s, earned);
        }
    }

    #[test]
    fn whatever_is_configured_and_measured_nothing_breaks_and_limits_hold(
        frames in frames(4), policies in policies(),
        limits in (absurd(), absurd(), absurd()), times in (absurd_time(), absurd_time(), absurd_time()),
        per_pixel in prop::collection::vec(absurd_time(), 0..3), devices in prop_oneof![0u32..3, Just(1_000)],
        took in prop::collection::vec(prop::option::of(absurd_time()), 8),
    ) {
        let (compute_cap, anchor_fraction, min_residual) = limits;
        let (interval, deadline, forget_after) = times;
        let networks = (2..).zip(per_pixel).map(|(scale, per_pixel)| NetworkCost { scale, per_pixel });
        let config = SchedulerConfig {
            interval, devices, compute_cap, anchor_fraction, min_residual, deadline, forget_after,
            networks: networks.collect(), horizon: u32::MAX, frames_per_stream: 0, max_pixels: u64::MAX, ..config()
        };
        let mut s = scheduler(&config, &policies);
        for n in 1..60u32 {
            for frame in frames.iter().filter(|f| f.id % 60 == u64::from(n)) {
                s.push(Candidate { arrival: 66 * MS * n, bytes: frame.bytes.saturating_mul(1 << 12), ..*frame });
            }
            let mut out = Vec::new();
            s.tick(66 * MS * n, &mut out);
            for chosen in &out {
                s.finished(chosen, took[chosen.id as usize % took.len()]);
                let nothing = |v: f64| !v.is_finite() || v <= 0.0;
                prop_assert!(!nothing(compute_cap) && devices > 0, "there was no compute");
                // Others have their own.
                let by_operator =
                    policies[chosen.stream.0 as usize] == AnchorPolicy::LatencySensitive;
                prop_assert!(!by_operator || !nothing(anchor_fraction), "no frame was to be an anchor");
            }
            prop_assert!(s.compute.credit_s().is_finite() && s.compute.outstanding_s() >= 0.0);
            prop_assert!(s.costs().iter().all(|c| c.predict(Size::new(320, 180)) <= Duration::from_secs(3_600)));
        }
    }

    #[test]
    fn after_absurd_measurements_it_chooses_again_within_ten_seconds(
        took in prop::collection::vec(prop_oneof![Just(Duration::ZERO), Just(Duration::MAX), Just(YEAR)], 1..20),
        cap in 0.2f64..=1.0,
    ) {
        let mut s = Scheduler::new(SchedulerConfig { compute_cap: cap, anchor_fraction: 1.0, ..config() });
        let mut took = took.into_iter();
        let (mut absurd_until, mut chosen_at) = (0, 0);
        for n in 1..1_500u32 {
            let (now, mut out) = (66 * MS * n, Vec::new());
            s.push(alike(n.into(), 1, now));
            s.tick(now, &mut out);
            for chosen in &out {
                // Then as it was at the start.
                let absurd = took.next();
                s.finished(chosen, Some(absurd.unwrap_or(6 * MS)));
                absurd_until = if absurd.is_some() { n } else { absurd_until };
                chosen_at = n;
            }
            prop_assert!(n - chosen_at < 150, "none since {}, the last absurd one at {}", chosen_at, absurd_until);
        }
        prop_assert!(took.next().is_none());
    }
}

fn absurd() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-1.0),
        Just(0.0),
        Just(1e300),
        Just(f64::MIN_POSITIVE),
        0.0..1.0f64,
    ]
}

fn absurd_time() -> impl Strategy<Value = Duration> {
    let nanos = [0, 1, 1_000, 300_000, 66_000_000, u64::MAX].map(Duration::from_nanos);
    prop::sample::select([nanos.as_slice(), &[Duration::MAX]].concat())
}

#[test]
fn a_greater_cap_may_spend_on_a_dear_picture_what_a_lesser_one_saves_for_more() {
    // One of 24 ms; then seven of 6 ms, and another of 24 that is behind them.
    let mut frames = vec![frame(0, 0, Tier::Normal, 900, 4, MS)];
    frames.extend((1..8).map(|n| frame(n.into(), n, Tier::Key, 900, 1, 70 * MS)));
    frames.push(frame(8, 8, Tier::Normal, 900, 4, 70 * MS));
    let total = |compute_cap| {
        totals(Scheduler::new(SchedulerConfig { compute_cap, ..config() }), &frames, 2)
    };
    assert_eq!(total(0.31), [0, 6]);
    assert_eq!(total(0.37), [1, 5]);
}

/// Number of frames chosen at one tick, from frames of these streams, ages and sizes.
fn chosen_within(deadline: Duration, all: &[(u32, u32, u16)]) -> usize {
    let fraction = SchedulerConfig { anchor_fraction: 0.01, ..config() };
    let mut s = Scheduler::new(SchedulerConfig { deadline, ..fraction });
    // The first is worth the most.
    for ((id, bytes), &(stream, age, size)) in (0..).zip([20_000, 10_000, 300]).zip(all) {
        s.push(frame(id, stream, Tier::Normal, bytes, size, MS * (200 - age)));
    }
    let mut out = Vec::new();
    s.tick(MS * 200, &mut out);
    out.len()
}

#[test]
fn a_longer_deadline_may_admit_a_dear_picture_that_all_others_wait_for() {
    // 120 ms, with 66 at hand; the others take 6.
    let frames = [(0, 0, 20), (1, 0, 1), (2, 0, 1)];
    assert_eq!(chosen_within(119 * MS, &frames), 2);
    assert_eq!(chosen_within(121 * MS, &frames), 0);
}

#[test]
fn a_longer_deadline_may_admit_a_frame_that_spends_an_allowance_and_delays_another() {
    // Of 6 ms each: two of one stream, which has one anchor left, and between them one of another.
    let frames = [(0, 95, 1), (1, 92, 1), (0, 70, 1)];
    assert_eq!(chosen_within(100 * MS, &frames), 2);
    assert_eq!(chosen_within(103 * MS, &frames), 1);
}
