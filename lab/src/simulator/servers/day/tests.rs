//! What holds of any day.

use super::scenario::Burst;
use super::*;

fn quiet() -> DayScenario {
    DayScenario {
        about: String::new(),
        paper: None,
        seed: 3,
        hours: vec![1.0],
        peak: 200.0,
        bursts: Vec::new(),
        stay_s: 900.0,
        servers: 2,
        streams: vec![Kind {
            name: "q".to_owned(),
            share: 1.0,
            width: 320,
            height: 180,
            fps: 30.0,
            ns_by_pixel: 87.0,
            anchor_fraction: 0.033,
        }],
        worker: WorkerKind { devices: 1.0, max_streams: 60, boot_s: 90, drain_s: 30, price: 0.0 },
        scaling: Scaling::default(),
    }
}

/// The rule, as the scheduler has it.
fn devices_for(demand: f64, share: f64) -> u32 {
    (demand / share - 1e-9).ceil() as u32
}

fn played(scenario: &DayScenario, demand: f64, way: WorkerCount) -> DayReport {
    play(scenario, &vec![demand; scenario.streams.len()], &devices_for, way)
}

#[test]
fn with_enough_workers_nobody_goes_without() {
    let report = played(&quiet(), 0.005, WorkerCount::Fixed(6));
    assert!((report.machine_hours - 144.0).abs() < 1e-6, "{report:?}");
    // Who comes is given a worker in the same second, but where two servers meant the same last place.
    assert!(report.without_share < 1e-4 && report.missed_share < 1e-4, "{report:?}");
    assert!((report.utilisation - 200.0 * 0.005 / 6.0).abs() < 0.02, "{report:?}");
}

#[test]
fn with_too_few_workers_what_is_missing_is_counted() {
    // Compute for half of what is due.
    let report = played(&quiet(), 0.04, WorkerCount::Fixed(4));
    assert!((0.4..0.6).contains(&report.missed_share), "{report:?}");
    // Places for half of those who come.
    let report = played(&quiet(), 0.001, WorkerCount::Fixed(2));
    assert!((0.3..0.5).contains(&report.without_share), "{report:?}");
    assert!(report.minutes_without > 1_000, "{report:?}");
}

#[test]
fn the_autoscaler_follows_the_day_and_costs_less_than_the_peak() {
    let hours = (0..24).map(|hour| if (8..20).contains(&hour) { 1.0 } else { 0.1 }).collect();
    let scenario = DayScenario { hours, peak: 1_000.0, ..quiet() };
    let scaled = played(&scenario, 0.005, WorkerCount::Scaled);
    let fixed = played(&scenario, 0.005, WorkerCount::Fixed(scaled.max_wanted));
    assert!(scaled.machine_hours < 0.75 * fixed.machine_hours, "{scaled:?} {fixed:?}");
    assert!(fixed.without_share < 1e-4, "{fixed:?}");
    assert!(scaled.without_share < 0.002, "{scaled:?}");
    assert!(scaled.max_machines <= scaled.max_wanted + 2, "{scaled:?}");
    assert_eq!(scaled.streams, fixed.streams, "the same publishers come");
}

#[test]
fn a_burst_goes_without_until_workers_have_started() {
    let burst = Burst { at_h: 12.0, minutes: 20.0, times: 6.0 };
    let of = |boot_s| {
        let worker = WorkerKind { boot_s, ..quiet().worker };
        played(
            &DayScenario { bursts: vec![burst.clone()], worker, ..quiet() },
            0.005,
            WorkerCount::Scaled,
        )
    };
    let (soon, late) = (of(10), of(300));
    assert!(late.without_share > 3.0 * soon.without_share, "{soon:?} {late:?}");
    // Ordered at the first look after they were wanted, which is before the last place is taken.
    assert!((200..=300 + 15).contains(&late.max_without_s), "{late:?}");
    assert!(soon.max_without_s < 90, "{soon:?}");
}

#[test]
fn workers_that_go_give_their_streams_to_others_first() {
    let mut hours = vec![1.0; 12];
    hours.extend([0.3; 12]);
    let report = played(&DayScenario { hours, peak: 600.0, ..quiet() }, 0.005, WorkerCount::Scaled);
    assert!(report.moves > 20, "{report:?}");
    assert!(report.without_share < 1e-3, "{report:?}");
    assert!(report.machine_hours < 0.85 * 24.0 * f64::from(report.max_machines), "{report:?}");
}

#[test]
fn equal_scenarios_have_equal_reports() {
    let scenario =
        DayScenario { bursts: vec![Burst { at_h: 3.0, minutes: 5.0, times: 3.0 }], ..quiet() };
    assert_eq!(
        played(&scenario, 0.01, WorkerCount::Scaled),
        played(&scenario, 0.01, WorkerCount::Scaled)
    );
}

#[test]
fn a_scenario_without_hours_or_streams_is_an_empty_day() {
    let empty = DayScenario { hours: Vec::new(), ..quiet() };
    assert_eq!(played(&empty, 0.01, WorkerCount::Scaled).streams, 0);
}
