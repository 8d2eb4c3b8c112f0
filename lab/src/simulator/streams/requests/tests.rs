use proptest::prelude::*;

use super::super::scenario::{Accelerator, PlacementUnit};
use super::scenario::RequestGroup;
use super::*;

fn scenario() -> RequestScenario {
    let accelerator = Accelerator {
        speed: 1.0,
        spread: 0.05,
        load_ms: 0.0,
        keeps: 1,
        fails_at_s: None,
        returns_at_s: None,
    };
    RequestScenario {
        about: "a test".to_owned(),
        paper: None,
        seed: 1,
        rounds: 1,
        orders: vec![OrderName::Fifo, OrderName::Shortest, OrderName::Calibrated],
        lambda: 0.1,
        lambdas: Vec::new(),
        lambdas_at: 1.0,
        loads: vec![0.5, 1.0],
        placement: PlacementUnit::Anchor,
        accelerators: vec![accelerator],
        ns_by_pixel: 1e6,
        requests: vec![RequestGroup {
            networks: 5,
            each: 20,
            together: 1,
            over_s: 0.0,
            load_ms: 200.0,
            load_spread: 0.2,
            pixels: (10, 20),
        }],
    }
}

fn of(report: &RequestReport, order: OrderName, load: Option<f64>) -> RequestRow {
    let row = report.rows.iter().find(|row| row.order == order && row.load == load);
    row.expect("it was played").clone()
}

#[test]
fn all_at_once_the_calibrated_order_loads_each_network_once() {
    let mut scenario = scenario();
    scenario.lambda = 0.0;
    let report = run_requests(&scenario).expect("it can be played");
    let calibrated = of(&report, OrderName::Calibrated, None);
    assert!((calibrated.loads - 0.05).abs() < 1e-9, "{calibrated:?}");
    assert!(of(&report, OrderName::Fifo, None).loads > 0.7);
    // 100 requests of 15 ms, and five networks of 200 ms to load.
    assert!((report.at_once_per_s - 40.0).abs() < 5.0, "{report:?}");
}

#[test]
fn the_calibrated_order_bears_more_at_equal_latency() {
    let report = run_requests(&scenario()).expect("it can be played");
    let calibrated = of(&report, OrderName::Calibrated, Some(1.0));
    assert!(calibrated.x_fifo.is_none_or(|x| x > 1.5), "{calibrated:?}");
    assert_eq!(of(&report, OrderName::Fifo, Some(1.0)).x_fifo, None);
}

#[test]
fn with_room_for_all_networks_the_order_hardly_matters() {
    let mut scenario = scenario();
    scenario.accelerators[0].keeps = 5;
    let report = run_requests(&scenario).expect("it can be played");
    for order in scenario.orders {
        assert!((of(&report, order, Some(1.0)).loads - 0.05).abs() < 1e-9);
    }
}

#[test]
fn without_a_price_for_waiting_some_wait_longer() {
    let mut scenario = scenario();
    (scenario.lambdas, scenario.lambdas_at) = (vec![0.0, 1.0], 2.0);
    let report = run_requests(&scenario).expect("it can be played");
    let [free, dear] = &report.lambdas[..] else { panic!("two were asked for") };
    assert!(free.mean_ms < dear.mean_ms && free.loads < dear.loads, "{free:?} {dear:?}");
}

#[test]
fn networks_can_be_dealt_out_to_accelerators() {
    let mut scenario = scenario();
    scenario.placement = PlacementUnit::Stream;
    scenario.accelerators.push(scenario.accelerators[0].clone());
    let report = run_requests(&scenario).expect("it can be played");
    assert!(report.at_once_per_s > 50.0, "{report:?}");
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let change = |change: fn(&mut RequestScenario)| {
        let mut scenario = scenario();
        change(&mut scenario);
        run_requests(&scenario).expect_err("it is refused").to_string()
    };
    assert!(change(|s| s.rounds = 0).starts_with("rounds"));
    assert!(change(|s| s.loads.clear()).starts_with("loads"));
    assert!(change(|s| s.lambdas.push(f64::NAN)).contains("lambdas"));
    assert!(change(|s| s.accelerators.clear()).starts_with("accelerators"));
    assert!(change(|s| s.accelerators[0].keeps = 0).contains("keeps"));
    assert!(change(|s| s.accelerators[0].fails_at_s = Some(1.0)).contains("fails_at_s"));
    assert!(change(|s| s.requests[0].pixels = (9, 3)).contains("pixels"));
    assert!(change(|s| s.requests[0].together = 0).contains("together"));
    assert!(change(|s| s.requests.clear()).contains("requests"));
}

proptest! {
    // A part of `PROPTEST_CASES`: 8 of its default, 62 in the soak.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 32))]
    #[test]
    fn equal_seeds_give_equal_reports_and_every_request_is_served(
        seed in 0u64..1_000, networks in 1u32..12, each in 1u32..12, devices in 1usize..4, keeps in 1usize..4,
        together in 1u32..4, over_s in 0.0f64..3.0, dealt: bool, lambda in 0.0f64..2.0,
    ) {
        let mut scenario = scenario();
        (scenario.seed, scenario.lambda) = (seed, lambda);
        scenario.placement = if dealt { PlacementUnit::Stream } else { PlacementUnit::Anchor };
        scenario.accelerators[0].keeps = keeps;
        scenario.accelerators = vec![scenario.accelerators[0].clone(); devices];
        scenario.requests[0].networks = networks;
        (scenario.requests[0].each, scenario.requests[0].over_s) = (each, over_s);
        scenario.requests[0].together = together.min(each);
        let report = run_requests(&scenario).expect("it can be played");
        prop_assert_eq!(&report, &run_requests(&scenario).expect("it can be played"));
        for row in &report.rows {
            // Every network that has requests is loaded at least once, and none more often than it has requests.
            prop_assert!(row.loads * f64::from(networks * each) >= f64::from(networks) - 1e-6 && row.loads <= 1.0);
            prop_assert!(row.utilisation <= 1.0 + 1e-9 && row.p50_ms <= row.p99_ms && row.p99_ms <= row.max_ms);
        }
    }
}
