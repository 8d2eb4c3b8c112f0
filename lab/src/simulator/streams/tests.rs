use proptest::prelude::*;

use super::scenario::Link;
use super::scenario::OrderName;
use super::scenario::{Accelerator, Group, NetworkSpec};
use super::*;
use windlass_scheduler::Tier;
use windlass_types::AnchorPolicy;

fn group(name: &str, count: u32, width: u16) -> Group {
    Group {
        name: name.to_owned(),
        count,
        width,
        height: width * 9 / 16,
        fps: 30.0,
        kbps: 150.0,
        keys_every: 0,
        joins_at_s: 0.0,
        joins_over_s: 1.0,
        leaves_at_s: None,
        max_scale: 2,
        policy: PlayedPolicy::default(),
        watched_after_ms: 0.0,
        best_db: 5.0,
        half_life: 10.0,
        trace: None,
        uplink: Link::default(),
        downlink: Link::default(),
    }
}

fn accelerator() -> Accelerator {
    Accelerator {
        speed: 1.0,
        spread: 0.1,
        load_ms: 0.0,
        keeps: 1,
        fails_at_s: None,
        returns_at_s: None,
    }
}

/// Anchors of 320×180 take 5.8 ms.
fn scenario(streams: Vec<Group>, accelerators: usize) -> Scenario {
    Scenario {
        about: "a test".to_owned(),
        paper: None,
        seconds: 20.0,
        seed: 1,
        interval_ms: 66.0,
        deadline_ms: 140.0,
        anchor_fraction: 0.033,
        order: OrderName::Calibrated,
        lambda: 1.0,
        placement: PlacementUnit::Anchor,
        networks: vec![NetworkSpec { scale: 2, ns_by_pixel: 100.0 }],
        accelerators: vec![accelerator(); accelerators],
        streams,
    }
}

/// One of 90 frames with a key frame and a golden one, whose gains differ.
fn traces() -> Traces {
    let frame = |n: u32| TraceFrame {
        at: Duration::from_secs_f64(f64::from(n) / 30.0),
        bytes: if n == 0 { 5_000 } else { 300 + 40 * (n % 13) },
        tier: match n {
            0 => Tier::Key,
            40 => Tier::Golden,
            _ => Tier::Normal,
        },
        gain_db: (n > 0).then(|| 1.0 + f64::from(n % 5)),
    };
    let trace = Trace::new((0..90).map(frame).collect()).expect("it is one");
    Traces::from([("a clip".to_owned(), trace)])
}

fn play(scenario: &Scenario) -> Report {
    run(scenario, &traces()).expect("it can be played")
}

#[test]
fn with_room_every_stream_has_its_fraction_in_time() {
    let report = play(&scenario(vec![group("q", 50, 320)], 1));
    assert!((0.030..=0.036).contains(&report.all.fraction), "{report:?}");
    assert!(report.all.miss_rate < 0.01, "{report:?}");
    assert!(report.all.p99_ms <= 140.0 && report.all.p50_ms > 10.0, "{report:?}");
    // 50 anchors a second of 5.8 ms.
    assert!((0.2..0.4).contains(&report.utilisation[0]), "{report:?}");
}

#[test]
fn with_three_times_too_many_the_fraction_falls_and_the_deadline_holds() {
    let report = play(&scenario(vec![group("q", 520, 320)], 1));
    assert!((0.008..0.016).contains(&report.all.fraction), "{report:?}");
    assert!(report.all.p99_ms <= 140.0 && report.utilisation[0] > 0.9, "{report:?}");
    assert!(report.all.miss_rate < 0.05, "{report:?}");
}

#[test]
fn a_lost_accelerator_gives_its_jobs_back_and_the_other_goes_on() {
    let mut scenario = scenario(vec![group("q", 200, 320)], 2);
    scenario.accelerators[1].fails_at_s = Some(8.0);
    scenario.accelerators[1].returns_at_s = Some(14.0);
    let report = play(&scenario);
    assert!(report.given_back <= 1 && report.all.anchors > 1_500, "{report:?}");
    assert!(
        report.utilisation[1] > 0.1 && report.utilisation[1] < report.utilisation[0],
        "{report:?}"
    );
    let mut whole = scenario.clone();
    whole.accelerators[1].fails_at_s = None;
    assert!(play(&whole).all.anchors > report.all.anchors);
}

#[test]
fn a_faster_accelerator_does_more() {
    let mut scenario = scenario(vec![group("q", 400, 320)], 2);
    scenario.accelerators[0].speed = 3.0;
    let report = play(&scenario);
    assert!(report.all.anchors > 7_000, "{report:?}");
    assert!(report.utilisation.iter().all(|u| (0.3..=1.0).contains(u)), "{report:?}");
}

#[test]
fn streams_join_and_leave() {
    let mut early = group("early", 20, 320);
    early.leaves_at_s = Some(5.0);
    let mut late = group("late", 20, 160);
    late.joins_at_s = 10.0;
    let report = play(&scenario(vec![early, late], 1));
    let frames: Vec<u64> = report.groups.iter().map(|g| g.frames).collect();
    assert!(
        (2_000..=3_000).contains(&frames[0]) && (5_000..=6_000).contains(&frames[1]),
        "{frames:?}"
    );
    assert_eq!(report.all.frames, frames.iter().sum::<u64>());
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let change = |change: fn(&mut Scenario)| {
        let mut scenario = scenario(vec![group("q", 1, 320)], 1);
        change(&mut scenario);
        run(&scenario, &traces()).map(|_| ()).expect_err("it is refused").to_string()
    };
    assert!(change(|s| s.seconds = f64::NAN).starts_with("seconds must be"));
    assert!(change(|s| s.networks.clear()).starts_with("networks must be"));
    assert!(change(|s| s.accelerators[0].speed = 0.0).contains("speed"));
    assert!(change(|s| s.streams[0].count = 0).contains("count"));
    assert!(change(|s| s.streams[0].fps = -1.0).contains("fps"));
    assert!(change(|s| s.streams[0].leaves_at_s = Some(f64::INFINITY)).contains("leaves_at_s"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn equal_seeds_give_equal_reports_and_no_anchor_is_sent_late(
        seed in 0u64..1_000, count in 1u32..300, devices in 1usize..4, order in 0usize..3, spread in 0.0f64..0.5,
    ) {
        let mut scenario = scenario(vec![group("q", count, 320), group("h", count / 4 + 1, 640)], devices);
        scenario.order = [OrderName::Fifo, OrderName::Shortest, OrderName::Calibrated][order];
        (scenario.seed, scenario.seconds) = (seed, 6.0);
        scenario.accelerators.iter_mut().for_each(|a| a.spread = spread);
        let report = play(&scenario);
        prop_assert_eq!(&report, &play(&scenario));
        prop_assert!(report.all.p99_ms <= 140.0);
        let used: f64 = report.utilisation.iter().sum();
        prop_assert!(used <= devices as f64 * 1.05, "{}", used);
        // Beside its fraction each stream may borrow one anchor, for its key frame.
        let most = 0.033 * report.all.frames as f64 + 2.0 * report.all.streams as f64;
        prop_assert!((report.all.anchors as f64) <= most);
    }
}

#[test]
fn lectures_that_are_too_many_do_not_lock_calls_out() {
    // One lecture saves compute up; then there are far too many.
    let lectures = |name: &str, count, joins_at_s| Group {
        policy: PlayedPolicy::Product(AnchorPolicy::CostEffective),
        joins_at_s,
        ..group(name, count, 320)
    };
    let groups = vec![group("calls", 20, 320), lectures("one", 1, 0.0), lectures("many", 120, 5.0)];
    let report = play(&scenario(groups, 1));
    let calls = &report.groups[0];
    assert!(calls.fraction > 0.015 && calls.p99_ms <= 140.0, "{report:?}");
}

#[test]
fn an_accelerator_that_is_back_before_it_is_lost_is_an_error() {
    for returns_at_s in [Some(8.0), Some(14.0)] {
        let mut scenario = scenario(vec![group("q", 1, 320)], 1);
        let fails_at_s = Some(14.0);
        scenario.accelerators[0] = Accelerator { fails_at_s, returns_at_s, ..accelerator() };
        let error = run(&scenario, &traces()).expect_err("it would never end");
        assert!(error.to_string().contains("returns_at_s"), "{error}");
    }
}

#[test]
fn recorded_streams_send_what_the_trace_has() {
    let mut recorded = group("recorded", 50, 320);
    (recorded.trace, recorded.fps) = (Some("a clip".to_owned()), 1.0);
    let report = play(&scenario(vec![recorded], 1));
    // 30 a second, whatever the group says, less what each joins late.
    assert!((28_000..=30_000).contains(&report.all.frames), "{report:?}");
    assert!((0.030..=0.036).contains(&report.all.fraction), "{report:?}");
    assert!(report.all.worth.is_some_and(|worth| (0.5..1.5).contains(&worth)), "{report:?}");
}

#[test]
fn a_trace_that_is_not_there_is_an_error_with_its_name() {
    let mut missing = group("missing", 1, 320);
    missing.trace = Some("no clip".to_owned());
    let error = run(&scenario(vec![missing], 1), &traces()).expect_err("it is not there");
    assert!(error.to_string().contains("no clip"), "{error}");
}

#[test]
fn what_is_lost_is_no_candidate_and_costs_quality() {
    let lossy = |loss| {
        let mut group = group("lossy", 50, 320);
        group.uplink = Link { delay_ms: 40.0, jitter_ms: 10.0, loss };
        play(&scenario(vec![group], 1))
    };
    let (fine, poor) = (lossy(0.0), lossy(0.02));
    assert_eq!((fine.all.lost, fine.all.anchors_lost), (0, 0));
    // Of 50 frames a loss, and some five more until the key frame.
    let lost = poor.all.lost as f64 / (poor.all.lost + poor.all.frames) as f64;
    assert!((0.05..0.25).contains(&lost), "{poor:?}");
    assert!(poor.all.gain_db < fine.all.gain_db, "{poor:?} {fine:?}");
}

#[test]
fn anchors_that_are_lost_or_late_to_viewers_give_less() {
    let down = |delay_ms, jitter_ms, loss| {
        let mut group = group("down", 50, 320);
        group.downlink = Link { delay_ms, jitter_ms, loss };
        play(&scenario(vec![group], 1)).all
    };
    let (fine, far, late, lost) =
        (down(0.0, 0.0, 0.0), down(100.0, 0.0, 0.0), down(0.0, 400.0, 0.0), down(0.0, 0.0, 0.5));
    // A delay that frames have too changes nothing.
    assert!((fine.gain_db - far.gain_db).abs() < 0.02, "{fine:?} {far:?}");
    assert!(late.gain_db < 0.95 * fine.gain_db && lost.gain_db < 0.95 * fine.gain_db);
    assert!((0.4..0.6).contains(&(lost.anchors_lost as f64 / lost.anchors as f64)), "{lost:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn equal_seeds_give_equal_reports_with_traces_and_networks_too(
        seed in 0u64..1_000, count in 1u32..60, delay_ms in 0.0f64..200.0, jitter_ms in 0.0f64..200.0, loss in 0.0f64..0.2,
    ) {
        let mut recorded = group("recorded", count, 320);
        recorded.trace = Some("a clip".to_owned());
        recorded.uplink = Link { delay_ms, jitter_ms, loss };
        recorded.downlink = Link { delay_ms: jitter_ms, jitter_ms: delay_ms, loss };
        let mut scenario = scenario(vec![recorded, group("q", count, 160)], 1);
        (scenario.seed, scenario.seconds) = (seed, 6.0);
        let report = play(&scenario);
        prop_assert_eq!(&report, &play(&scenario));
        let all = &report.all;
        prop_assert!(all.anchors_lost <= all.anchors && all.gain_db.is_finite());
        prop_assert!(report.groups[1].lost == 0);
    }
}

#[test]
fn every_policy_can_be_played_and_nemo_sends_no_more_than_the_fraction() {
    let baselines = [PlayedPolicy::PerFrame, PlayedPolicy::KeyUniform, PlayedPolicy::Nemo];
    for policy in AnchorPolicy::ALL.map(PlayedPolicy::Product).into_iter().chain(baselines) {
        let report = play(&scenario(vec![Group { policy, ..group("q", 4, 320) }], 1));
        assert!(report.all.anchors > 0 && report.all.gain_db > 0.0, "{policy}: {report:?}");
        if policy == PlayedPolicy::Nemo {
            assert!(report.utilisation[0] > 0.6, "all frames are inferred: {report:?}");
            assert!((0.02..0.036).contains(&report.all.fraction), "{report:?}");
        }
    }
}
