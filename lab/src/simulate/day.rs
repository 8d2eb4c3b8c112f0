//! `windlass-lab simulate` of a day on workers: an autoscaler orders them and gives them back, beside as many as its
//! peak needs.

use std::fmt::Write;

use crate::simulator::servers::day::{DayReport, DayScenario, Kind, WorkerCount, play as play_day};
use crate::simulator::streams::{self, PlayedPolicy, Scenario, Traces};
use anyhow::{Result, ensure};
use serde::Serialize;
use windlass_scheduler::devices_for;

use super::Played;

/// Number of streams of a kind that the scheduler is given to learn the cost of one, and for how many seconds.
const SAMPLED: (u32, f64) = (200, 12.0);
/// Number of accelerators for these streams: enough for all, whatever their cost.
const ACCELERATORS: usize = 64;

/// The results of one way to have workers.
#[derive(Debug, Serialize)]
struct Row {
    /// The way. `anchors`: with workers that are `scaled`, or with as many all day as the `peak` or the `mean` needs.
    /// `per-frame`: with as many as the rule wants `at once`, or for the `peak`.
    way: &'static str,
    machine_hours: f64,
    /// Maximum number of workers that the rule wants.
    max_wanted: u32,
    /// The report of the day; null where nobody was placed, so that it is not known who would go without.
    placed: Option<DayReport>,
    /// The cost; null where a worker's price is not known.
    cost: Option<f64>,
    /// Machine hours of as many workers as the peak needs, over those of this way.
    x_peak: f64,
    /// Machine hours of super-resolution of every frame, by as many workers as its peak needs, over those of this
    /// way.
    x_per_frame: f64,
}

/// The results of all ways, with the cost of a stream of each kind.
#[derive(Debug, Serialize)]
struct Report<'a> {
    about: &'a str,
    paper: Option<&'a str>,
    seed: u64,
    /// Number of publishers that came in all; `at_once` is the maximum at once.
    streams: u64,
    max_streams: usize,
    /// For each kind, in milliseconds of an accelerator a second: the cost by anchors, and by every frame.
    demand_ms: Vec<(String, f64, f64)>,
    rows: Vec<Row>,
}

/// Plays a scenario.
pub(super) fn play(mut scenario: DayScenario, seed: Option<u64>) -> Result<Played> {
    ensure!(!scenario.hours.is_empty(), "hours: there are none");
    ensure!(!scenario.streams.is_empty(), "streams: there are none");
    ensure!((0.0..=100_000.0).contains(&scenario.peak), "peak must be from 0 to 100000");
    ensure!(scenario.stay_s >= 1.0, "stay_s must be 1 or more");
    ensure!(scenario.worker.devices > 0.0, "worker.devices must be more than 0");
    let target = scenario.scaling.target;
    ensure!(target > 0.0 && target <= 1.0, "scaling.target must be above 0 and at most 1");
    ensure!(scenario.scaling.streams >= 1.0, "scaling.streams must be 1 or more");
    scenario.seed = seed.unwrap_or(scenario.seed);
    let of = |policy| scenario.streams.iter().map(move |kind| demand(kind, policy));
    let anchors: Vec<f64> = of(PlayedPolicy::default()).collect::<Result<_>>()?;
    let frames: Vec<f64> = of(PlayedPolicy::PerFrame).collect::<Result<_>>()?;
    let names = scenario.streams.iter().map(|kind| kind.name.clone());
    let demand_ms = names.zip(anchors.iter().zip(&frames));
    let demand_ms = demand_ms.map(|(name, (a, f))| (name, a * 1e3, f * 1e3)).collect();
    let rows = rows(&scenario, &anchors, &frames);
    let DayScenario { about, paper, seed, .. } = &scenario;
    let came = rows.iter().find_map(|row| row.placed.as_ref());
    let (streams, max_streams) = came.map_or((0, 0), |day| (day.streams, day.max_streams));
    let paper = paper.as_deref();
    let report = Report { about, paper, seed: *seed, streams, max_streams, demand_ms, rows };
    Played::one(&table(&scenario, &report), &report)
}

/// Seconds of an accelerator that one stream takes in a second, as the scheduler's own code asks for it.
fn demand(kind: &Kind, policy: PlayedPolicy) -> Result<f64> {
    let (count, seconds) = SAMPLED;
    let Kind { width, height, fps, ns_by_pixel, anchor_fraction, .. } = kind;
    let accelerators = vec!["{}"; ACCELERATORS].join(", ");
    // Settings that are not named are those of any scenario.
    let sampled: Scenario = serde_saphyr::from_str(&format!(
        "about: what a stream takes
seconds: {seconds}
anchor_fraction: {anchor_fraction}
networks: [{{ ns_by_pixel: {ns_by_pixel} }}]
accelerators: [{accelerators}]
streams: [{{ name: one, count: {count}, width: {width}, height: {height}, fps: {fps}, policy: {policy} }}]",
    ))?;
    let report = streams::run(&sampled, &Traces::new())?;
    Ok(report.compute_demand / f64::from(count))
}

fn rows(scenario: &DayScenario, anchors: &[f64], frames: &[f64]) -> Vec<Row> {
    let play = |demands: &[f64], way| play_day(scenario, demands, &devices_for, way);
    let scaled = play(anchors, WorkerCount::Scaled);
    let mean = (scaled.machine_hours / 24.0).round() as u32;
    let peak = play(anchors, WorkerCount::Fixed(scaled.max_wanted));
    let per_frame = play(frames, WorkerCount::Counted);
    let per_frame_peak = f64::from(per_frame.max_wanted) * 24.0;
    let anchors_peak = peak.machine_hours;
    let price = scenario.worker.price;
    let row = |way, machine_hours: f64, max_wanted, placed, peak_hours| Row {
        way,
        machine_hours,
        max_wanted,
        placed,
        cost: (price > 0.0).then_some(machine_hours * price),
        x_peak: peak_hours / machine_hours.max(1e-9),
        x_per_frame: per_frame_peak / machine_hours.max(1e-9),
    };
    let placed =
        |way, day: DayReport| row(way, day.machine_hours, day.max_wanted, Some(day), anchors_peak);
    let counted = |way, hours| row(way, hours, per_frame.max_wanted, None, per_frame_peak);
    vec![
        placed("anchors, scaled", scaled),
        placed("anchors, peak", peak),
        placed("anchors, mean", play(anchors, WorkerCount::Fixed(mean))),
        counted("per-frame, at once", per_frame.wanted_hours),
        counted("per-frame, peak", per_frame_peak),
    ]
}

fn table(scenario: &DayScenario, report: &Report) -> String {
    let mut out = String::new();
    let Report { streams, max_streams, .. } = report;
    let _ = writeln!(out, "{}", scenario.about);
    let _ = writeln!(out, "{streams} publishers, {max_streams} at once at the most");
    for (name, anchors, frames) in &report.demand_ms {
        let _ = writeln!(
            out,
            "{name}: {anchors:.2} ms of an accelerator a second by anchors, {frames:.1} by every frame"
        );
    }
    let _ = writeln!(
        out,
        "\n{:<18} {:>9} {:>9} {:>7} {:>7} {:>8} {:>9} {:>8} {:>9} {:>8} {:>7} {:>6} {:>7} {:>7}",
        "way",
        "hours",
        "cost",
        "wanted",
        "most",
        "started",
        "without",
        "most s",
        "minutes",
        "missed",
        "moves",
        "busy",
        "x peak",
        "x frame"
    );
    for Row { way, machine_hours, max_wanted, placed, cost, x_peak, x_per_frame } in &report.rows {
        let cost = cost.map_or("-".to_owned(), |cost| format!("{cost:.0}"));
        let _ = write!(out, "{way:<18} {machine_hours:>9.1} {cost:>9} {max_wanted:>7} ");
        let _ = match placed {
            None => write!(out, "{:>68}", ""),
            Some(r) => write!(
                out,
                "{:>7} {:>8} {:>8.3}% {:>8} {:>9} {:>7.2}% {:>7} {:>5.0}%",
                r.max_machines,
                r.started,
                100.0 * r.without_share,
                r.max_without_s,
                r.minutes_without,
                100.0 * r.missed_share,
                r.moves,
                100.0 * r.utilisation,
            ),
        };
        let _ = writeln!(out, " {x_peak:>7.2} {x_per_frame:>7.1}");
    }
    if let Some(paper) = report.paper {
        let _ = writeln!(out, "paper: {paper}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::file::{self, File};
    use super::*;

    #[test]
    fn every_scenario_of_a_day_that_is_shipped_can_be_played() {
        let mut played = 0;
        for path in file::shipped() {
            let File::Day(scenario) = file::read(&path).expect("it is a scenario") else {
                continue;
            };
            let small = DayScenario { peak: scenario.peak / 20.0, ..scenario };
            let demand = |kind| demand(kind, PlayedPolicy::default()).expect("it can be played");
            let demands: Vec<f64> = small.streams.iter().map(demand).collect();
            let play = |way| play_day(&small, &demands, &devices_for, way);
            let scaled = play(WorkerCount::Scaled);
            let peak = play(WorkerCount::Fixed(scaled.max_wanted));
            let told = format!("{path:?}: {scaled:?}, with its peak's {peak:?}");
            assert!(scaled.streams > 0 && scaled.max_streams as u64 <= scaled.streams, "{told}");
            assert_eq!(scaled.streams, peak.streams, "{told}");
            assert!(scaled.machine_hours > 0.0, "{told}");
            assert!(scaled.machine_hours <= peak.machine_hours, "{told}");
            for share in [scaled.without_share, scaled.missed_share, scaled.utilisation] {
                assert!((0.0..=1.0).contains(&share), "{told}");
            }
            played += 1;
        }
        assert!(played >= 2);
    }

    const SMALL: &str = "\
about: a small day
hours: [0.2, 1, 0.2]
peak: 60
stay_s: 900
servers: 2
streams: [{ name: q, share: 1, width: 320, height: 180, fps: 30, ns_by_pixel: 87, anchor_fraction: 0.033 }]
worker: { devices: 1, max_streams: 20, boot_s: 90, drain_s: 30 }
scaling: { streams: 15 }
";

    #[test]
    fn the_scheduler_says_what_a_stream_takes() {
        let scenario: DayScenario = serde_saphyr::from_str(SMALL).unwrap();
        let kind = &scenario.streams[0];
        // 320 x 180 pixels at 87 ns: 5.01 ms an anchor, 0.99 anchors a second, 30 frames.
        let anchors = demand(kind, PlayedPolicy::default()).unwrap();
        assert!((anchors / 0.00496 - 1.0).abs() < 0.06, "{anchors}");
        let frames = demand(kind, PlayedPolicy::PerFrame).unwrap();
        assert!((frames / 0.1503 - 1.0).abs() < 0.06, "{frames}");
    }

    #[test]
    fn a_report_is_a_table_and_an_object() {
        let scenario: DayScenario = serde_saphyr::from_str(SMALL).unwrap();
        let text = play(scenario.clone(), None).unwrap().table;
        assert!(text.contains("anchors, scaled") && text.contains("per-frame, peak"), "{text}");
        let report = &play(scenario.clone(), Some(7)).unwrap().rows[0];
        let hours = |at: usize| report["rows"][at]["machine_hours"].as_f64().unwrap();
        assert!(hours(0) < hours(1), "as many as are wanted cost less than the peak's: {report:?}");
        assert!(report["rows"][0]["x_per_frame"].as_f64() > Some(1.0), "{report:?}");
        assert!(report["rows"][0]["cost"].is_null(), "no price was said");
        for (change, named) in [("hours: [0.2, 1, 0.2]", "hours: []"), ("peak: 60", "peak: -1")] {
            let wrong = serde_saphyr::from_str(&SMALL.replace(change, named)).unwrap();
            let error = play(wrong, None).unwrap_err().to_string();
            assert!(error.starts_with(&named[..4]), "{error}");
        }
    }
}
