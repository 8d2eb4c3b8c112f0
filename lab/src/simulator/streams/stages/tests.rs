use proptest::prelude::*;

use super::scenario::StageSpec;
use super::*;

fn stage(cpu_ms: Option<f64>, away_ms: Option<f64>) -> StageSpec {
    StageSpec { cpu_ms, away_ms, spread: 0.2 }
}

fn scenario() -> StageScenario {
    StageScenario {
        about: "a test".to_owned(),
        paper: None,
        seed: 1,
        rounds: 10,
        count: 60,
        every_ms: 300.0,
        goals_ms: (500.0, 3_000.0),
        missed_over: 1.1,
        cores: 2.0,
        switching: 0.05,
        caps: vec![1],
        lost_cause_threshold_ms: 0.0,
        stages: vec![
            stage(Some(120.0), None),
            stage(None, Some(80.0)),
            stage(Some(40.0), None),
            stage(None, Some(60.0)),
            stage(Some(60.0), None),
        ],
    }
}

fn of(report: &StageReport, way: TaskScheduling) -> StageRow {
    report.rows.iter().find(|row| row.way == way).expect("it was played").clone()
}

#[test]
fn alone_a_request_takes_what_its_stages_take() {
    let mut scenario = scenario();
    (scenario.count, scenario.rounds) = (1, 1);
    scenario.stages.iter_mut().for_each(|stage| stage.spread = 0.0);
    let report = run_stages(&scenario).expect("it can be played");
    for row in &report.rows {
        assert!((row.mean_ms - 360.0).abs() < 1e-3 && row.waited_ms < 1e-6, "{row:?}");
    }
}

#[test]
fn the_nearest_deadline_misses_least() {
    let report = run_stages(&scenario()).expect("it can be played");
    let missed = |way| of(&report, way).missed;
    assert!(missed(TaskScheduling::Edf) < 0.5 * missed(TaskScheduling::Fifo), "{report:?}");
}

#[test]
fn tasks_beyond_the_cores_slow_each_other_down() {
    let mut scenario = scenario();
    (scenario.count, scenario.rounds, scenario.every_ms) = (4, 1, 0.001);
    scenario.stages = vec![StageSpec { spread: 0.0, ..stage(Some(100.0), None) }];
    let report = run_stages(&scenario).expect("it can be played");
    // Four on two cores, and two too many: 100 × 2 × 1.1.
    assert!((of(&report, TaskScheduling::Threads).p95_ms - 220.0).abs() < 1.0, "{report:?}");
    assert!((of(&report, TaskScheduling::Fifo).p95_ms - 400.0).abs() < 1.0, "{report:?}");
}

#[test]
fn who_is_given_up_counts_as_missed() {
    let mut scenario = scenario();
    (scenario.every_ms, scenario.rounds) = (100.0, 1);
    let edf = of(&run_stages(&scenario).expect("it can be played"), TaskScheduling::Edf);
    assert!(edf.given_up > 5.0 && edf.missed >= edf.given_up, "{edf:?}");
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let change = |change: fn(&mut StageScenario)| {
        let mut scenario = scenario();
        change(&mut scenario);
        run_stages(&scenario).expect_err("it is refused").to_string()
    };
    assert!(change(|s| s.count = 0).starts_with("count"));
    assert!(change(|s| s.every_ms = f64::NAN).starts_with("every_ms"));
    assert!(change(|s| s.goals_ms = (3.0, 2.0)).starts_with("goals_ms"));
    assert!(change(|s| s.cores = 0.0).starts_with("cores"));
    assert!(change(|s| s.caps.clear()).starts_with("caps"));
    assert!(change(|s| s.stages.clear()).starts_with("stages"));
    assert!(change(|s| s.stages[0].away_ms = Some(1.0)).contains("one of them"));
    assert!(change(|s| s.stages[0].cpu_ms = Some(-1.0)).contains("cpu_ms"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn equal_seeds_give_equal_reports_and_every_request_ends(
        seed in 0u64..1_000, count in 1u32..80, every_ms in 1.0f64..400.0, cores in 0.5f64..4.0, cap in 1usize..6,
        switching in 0.0f64..0.5,
    ) {
        let mut scenario = scenario();
        (scenario.seed, scenario.count, scenario.every_ms, scenario.cores) = (seed, count, every_ms, cores);
        scenario.switching = switching;
        (scenario.caps, scenario.rounds) = (vec![cap, 1], 1);
        let report = run_stages(&scenario).expect("it can be played");
        prop_assert_eq!(&report, &run_stages(&scenario).expect("it can be played"));
        for row in &report.rows {
            prop_assert!(row.missed <= f64::from(count) && row.given_up <= row.missed);
            prop_assert!(row.mean_ms >= 0.0 && row.p50_ms <= row.p95_ms);
            prop_assert!(row.way == TaskScheduling::Edf || row.given_up == 0.0);
        }
        // No slot is shared where there is one, and no fewer cores than that.
        let round = Round::new(&scenario, 0);
        let config = SlotConfig { cap, order: TaskOrder::Edf, ..SlotConfig::default() };
        let outcome = round.play(&scenario, config);
        prop_assert_eq!(outcome.latencies.len() as u64 + outcome.given_up, u64::from(count));
    }
}
