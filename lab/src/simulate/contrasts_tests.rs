//! The shipped scenarios, each with what it is there to show: a policy that breaks turns a contrast around.
//!
//! Played for a part of their time. Figures for people are in `lab/notes/scheduler.md` and `lab/notes/cpu-stages.md`.

use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::Value;

use super::file::{self, File};
use super::{SimulateArgs, clients, cluster, day, requests, stages, streams};
use crate::simulator::servers::ClusterScenario;
use crate::simulator::servers::day::DayScenario;
use crate::simulator::streams::clients::ClientsScenario;
use crate::simulator::streams::{RequestScenario, Scenario};

/// Latency budget of the scenarios' streams.
const BUDGET_MS: f64 = 200.0;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: SimulateArgs,
}

/// Plays a scenario for so many seconds at most, with these options; an object for each way.
fn play(name: &str, seconds: f64, options: &[&str]) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/{name}.yaml"));
    let command = [&["simulate", path.to_str().unwrap()], options].concat();
    let args = &Command::try_parse_from(command).unwrap().args;
    let played = match file::read(&path).unwrap() {
        File::Streams(scenario, traces) => {
            let seconds = scenario.seconds.min(seconds);
            streams::play(&Scenario { seconds, ..scenario }, &traces, args, None)
        }
        File::Requests(scenario) => {
            let few = RequestScenario { rounds: 2, loads: vec![1.0], ..scenario };
            requests::play(&few, args, None)
        }
        File::Stages(scenario) => stages::play(&scenario, args, None),
        File::Clients(scenario) => {
            let promises = scenario.promises[..1].to_vec();
            let few = ClientsScenario { seconds, max_batch: 2, promises, ..scenario };
            clients::play(&few, None)
        }
        File::Cluster(scenario) => {
            let ClusterScenario { nodes, rooms, participants, .. } = scenario;
            let (nodes, rooms) = (nodes / 10, rooms / 20);
            let participants = participants / 20;
            cluster::play(
                ClusterScenario { nodes, rooms, participants, seconds: 90, ..scenario },
                None,
            )
        }
        File::Day(scenario) => {
            let peak = scenario.peak / 20.0;
            day::play(DayScenario { peak, ..scenario }, None)
        }
    };
    played.unwrap().rows.into_iter().map(Value::Object).collect()
}

/// A number of a report, by its place in it.
fn number(report: &Value, place: &str) -> f64 {
    report.pointer(place).and_then(Value::as_f64).unwrap_or_else(|| panic!("{place} of {report}"))
}

/// The row of a report that has these values.
fn row<'a>(report: &'a Value, keys: &[(&str, Value)]) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    let has = |row: &&Value| keys.iter().all(|(key, value)| row[*key] == *value);
    rows.iter().find(has).unwrap_or_else(|| panic!("{keys:?} in {report}"))
}

#[test]
fn anchors_placed_one_by_one_leave_less_lacking_than_streams_do() {
    for name in ["placement", "fleet", "worst-order"] {
        let [anchor, stream] = &play(name, 15.0, &["--placement", "anchor,stream"])[..] else {
            panic!("{name}: two ways");
        };
        let lacks = |report| number(report, "/all/lacks_p95_db");
        assert!(lacks(anchor) < lacks(stream) - 0.1, "{name}: {anchor} {stream}");
        assert!(number(anchor, "/all/anchors") > number(stream, "/all/anchors"), "{name}");
    }
}

#[test]
fn the_calibrated_order_is_the_soonest_where_networks_are_loaded() {
    let [shortest, calibrated] = &play("networks", 60.0, &["--order", "shortest,calibrated"])[..]
    else {
        panic!("two ways");
    };
    assert!(number(calibrated, "/all/p99_ms") < number(shortest, "/all/p99_ms"));
}

#[test]
fn overload_takes_anchors_and_not_the_deadline() {
    let report = &play("overload", 20.0, &[])[0];
    assert!(number(report, "/all/fraction") < 0.02, "{report}");
    assert!(number(report, "/all/p99_ms") < BUDGET_MS && number(report, "/all/miss_rate") < 0.01);
    assert!(number(report, "/devices_wanted") >= 3.0, "{report}");
}

#[test]
fn those_who_come_in_a_burst_cost_those_who_are_there_little() {
    let report = &play("burst", 40.0, &[])[0];
    let group = |name: &str| {
        let groups = report["groups"].as_array().unwrap();
        groups.iter().find(|group| group["name"] == name).unwrap()
    };
    assert!(number(group("there"), "/fraction") > 1.5 * number(group("burst"), "/fraction"));
    assert!(number(report, "/all/p99_ms") < BUDGET_MS, "{report}");
}

#[test]
fn the_job_of_a_lost_accelerator_is_given_back_and_nothing_is_late() {
    let report = &play("lost", 25.0, &[])[0];
    assert_eq!(report["given_back"], 1, "{report}");
    assert!(number(report, "/all/miss_rate") < 0.01, "{report}");
}

#[test]
fn the_worse_a_link_the_less_its_anchors_gain() {
    let report = &play("network", 30.0, &[])[0];
    let groups = report["groups"].as_array().unwrap();
    let gains: Vec<_> = groups.iter().map(|group| number(group, "/gain_db")).collect();
    assert!(gains.len() >= 4 && gains.is_sorted_by(|a, b| a > b), "{gains:?}");
}

#[test]
fn policies_are_what_their_names_say() {
    let ways = "latency-sensitive,cost-effective,per-frame";
    let [soon, cheap, every] = &play("policies", 15.0, &["--policy", ways])[..] else {
        panic!("three ways");
    };
    let p99 = |report| number(report, "/all/p99_ms");
    assert!(p99(soon) < BUDGET_MS && p99(cheap) > 2.0 * BUDGET_MS, "{soon} {cheap}");
    assert!(number(every, "/devices_wanted") > 5.0 * number(soon, "/devices_wanted"));
}

#[test]
fn frames_are_chosen_better_than_at_random_and_better_the_longer_the_interval() {
    let ways = "latency-sensitive,cost-effective,key-uniform";
    let [soon, late, uniform] = &play("recorded", 12.0, &["--policy", ways])[..] else {
        panic!("three ways");
    };
    let worth = |report| number(report, "/all/worth");
    assert!(worth(soon) > worth(uniform) + 0.005, "{soon} {uniform}");
    assert!(worth(late) > worth(soon) + 0.01, "{late} {soon}");
}

#[test]
fn each_room_has_its_own_policy() {
    let report = &play("rooms", 20.0, &[])[0];
    let [calls, lectures] = &report["groups"].as_array().unwrap()[..] else { panic!("{report}") };
    assert!(number(calls, "/p99_ms") < BUDGET_MS && number(lectures, "/p99_ms") > BUDGET_MS);
    assert!(number(lectures, "/fraction") > 1.5 * number(calls, "/fraction"), "{report}");
}

#[test]
fn a_thousand_streams_and_more_have_their_fraction_in_time() {
    for (name, seconds, fraction) in [("thousand", 8.0, 0.03), ("scale-out", 2.0, 0.05)] {
        let report = &play(name, seconds, &[])[0];
        assert!(number(report, "/all/fraction") > fraction, "{name}: {report}");
        assert_eq!(report["all"]["missed"], 0, "{name}: {report}");
    }
}

#[test]
fn the_calibrated_order_serves_more_where_requests_have_something_in_common() {
    for (name, least) in [("recommend", 1.3), ("recommend-shuffled", 2.0)] {
        let report = &play(name, 0.0, &[])[0];
        let of = |order: &str| row(report, &[("order", order.into()), ("load", 1.0.into())]);
        let mean = |order| number(of(order), "/mean_ms");
        assert!(mean("fifo") > least * mean("calibrated"), "{name}: {report}");
        let loads = |order| number(of(order), "/loads");
        assert!(loads("calibrated") < loads("fifo"), "{name}: {report}");
    }
    let report = &play("verify", 0.0, &[])[0];
    let of = |order: &str| row(report, &[("order", order.into()), ("load", 1.0.into())]);
    let loads = |order| number(of(order), "/loads");
    assert!((loads("calibrated") - loads("fifo")).abs() < 0.01, "nothing is in common: {report}");
}

#[test]
fn the_nearest_deadline_misses_least_and_two_slots_are_best() {
    let of = |report: &Value, way: &str, cap: u32| {
        number(row(report, &[("way", way.into()), ("cap", cap.into())]), "/missed")
    };
    let report = &play("stages", 0.0, &[])[0];
    let threads = number(row(report, &[("way", "threads".into())]), "/missed");
    assert!(of(report, "edf", 1) < threads && threads < of(report, "fifo", 1), "{report}");
    let report = &play("slots", 0.0, &[])[0];
    let missed: Vec<f64> = [1, 2, 4, 6].map(|cap| of(report, "edf", cap)).to_vec();
    assert!(missed[1] < missed[0] && missed[1..].is_sorted(), "{missed:?}");
}

#[test]
fn more_clients_have_their_promise_than_by_a_fixed_setting() {
    let report = &play("clients", 6.0, &[])[0];
    let clients = |way: &str| number(row(report, &[("way", way.into())]), "/clients");
    assert!(clients("quality-sla") > clients("static"), "{report}");
}

#[test]
fn all_join_a_cluster_that_loses_servers_and_most_are_back_soon() {
    for name in ["cluster", "cluster-large-rooms"] {
        let report = &play(name, 0.0, &[])[0];
        let (displaced, joins) = (number(report, "/displaced"), number(report, "/joins"));
        assert!(displaced > 0.0 && displaced < joins, "{name}: {report}");
        assert!(number(report, "/back_p99_ms") < 30_000.0, "{name}: {report}");
    }
}

#[test]
fn workers_that_come_and_go_cost_less_than_those_of_the_peak() {
    for name in ["day", "day-broadcasts"] {
        let report = &play(name, 0.0, &[])[0];
        let hours = |way: &str| number(row(report, &[("way", way.into())]), "/machine_hours");
        assert!(hours("anchors, scaled") < hours("anchors, peak"), "{name}: {report}");
        assert!(5.0 * hours("anchors, peak") < hours("per-frame, peak"), "{name}: {report}");
    }
}

#[test]
fn each_shipped_scenario_shows_something() {
    let here = include_str!("contrasts_tests.rs");
    let stem = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    for name in file::shipped().into_iter().map(stem) {
        assert!(here.contains(&format!("\"{name}\"")), "{name} has no contrast");
    }
}
