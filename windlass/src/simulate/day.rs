//! What came of a day on workers that an autoscaler orders and gives back, beside as many as its peak needs.

use std::fmt::Write;

use anyhow::{Result, ensure};
use serde::Serialize;
use windlass_cluster::simulate::day::{DayReport, DayScenario, Kind, Way, play as play_day};
use windlass_enhancer::schedule::devices_for;
use windlass_enhancer::simulate::{self, Accelerator, Group, NetworkSpec, Scenario, Traces};
use windlass_media::AnchorPolicy;

/// Streams of a kind that the scheduler is given to learn what one takes, and for how long.
const SAMPLED: (u32, f64) = (200, 12.0);

/// What came of one way to have workers.
#[derive(Debug, Serialize)]
struct Row {
    /// `anchors` with workers that are `scaled`, or as many from the beginning to the end as the `peak` or the `mean` wants; `per-frame`, as many as the rule
    /// wants `at once`, or `peak`.
    way: String,
    #[serde(flatten)]
    report: DayReport,
    /// What it costs; null: a worker's price is not known.
    cost: Option<f64>,
    /// Machine hours of as many as the peak needs, over these.
    x_peak: f64,
    /// Machine hours of super-resolution of every frame, by as many as its peak needs, over these.
    x_per_frame: f64,
}

/// All ways, with what a stream of each kind takes.
#[derive(Debug, Serialize)]
struct Report<'a> {
    about: &'a str,
    paper: Option<&'a str>,
    seed: u64,
    /// By kind, in milliseconds of an accelerator a second: by anchors, and by every frame.
    demand_ms: Vec<(String, f64, f64)>,
    rows: Vec<Row>,
}

/// Plays it; the report as a table or JSON.
pub fn play(mut scenario: DayScenario, seed: Option<u64>, json: bool) -> Result<String> {
    ensure!(!scenario.hours.is_empty(), "hours: there are none");
    ensure!(!scenario.streams.is_empty(), "streams: there are none");
    ensure!((0.0..=100_000.0).contains(&scenario.peak), "peak must be from 0 to 100000");
    ensure!(scenario.stay_s >= 1.0, "stay_s must be 1 or more");
    ensure!(scenario.worker.devices > 0.0, "worker.devices must be more than 0");
    let Scaled { target, streams } = Scaled::of(&scenario);
    ensure!(target && streams, "scaling: target must be above 0 and at most 1, streams 1 or more");
    scenario.seed = seed.unwrap_or(scenario.seed);
    let of = |policy| scenario.streams.iter().map(move |kind| demand(kind, policy));
    let anchors: Vec<f64> = of(AnchorPolicy::LatencySensitive).collect::<Result<_>>()?;
    let frames: Vec<f64> = of(AnchorPolicy::PerFrame).collect::<Result<_>>()?;
    let names = scenario.streams.iter().map(|kind| kind.name.clone());
    let demand_ms = names.zip(anchors.iter().zip(&frames));
    let demand_ms = demand_ms.map(|(name, (a, f))| (name, a * 1e3, f * 1e3)).collect();
    let rows = rows(&scenario, &anchors, &frames);
    let DayScenario { about, paper, seed, .. } = &scenario;
    let report = Report { about, paper: paper.as_deref(), seed: *seed, demand_ms, rows };
    Ok(if json { serde_json::to_string(&report)? + "\n" } else { table(&scenario, &report) })
}

/// Whether the autoscaler's settings make sense.
struct Scaled {
    target: bool,
    streams: bool,
}

impl Scaled {
    fn of(scenario: &DayScenario) -> Scaled {
        let scaling = &scenario.scaling;
        let target = scaling.target > 0.0 && scaling.target <= 1.0;
        Scaled { target, streams: scaling.streams >= 1.0 }
    }
}

/// Seconds of an accelerator that one stream takes in a second, as the scheduler's own code asks for it.
fn demand(kind: &Kind, policy: AnchorPolicy) -> Result<f64> {
    let (count, seconds) = SAMPLED;
    let sampled = Scenario {
        anchor_fraction: kind.anchor_fraction,
        ..serde_saphyr::from_str(&format!(
            "{{ about: '', seconds: {seconds}, networks: [], accelerators: [], streams: [] }}"
        ))?
    };
    let stream: Group = serde_saphyr::from_str(&format!(
        "{{ name: sampled, count: {count}, width: {}, height: {}, fps: {} }}",
        kind.width, kind.height, kind.fps
    ))?;
    let accelerator: Accelerator = serde_saphyr::from_str("{ speed: 1 }")?;
    let report = simulate::run(
        &Scenario {
            networks: vec![NetworkSpec { scale: 2, ns_by_pixel: kind.ns_by_pixel }],
            accelerators: vec![accelerator; 64],
            streams: vec![Group { policy, ..stream }],
            ..sampled
        },
        &Traces::new(),
    )?;
    Ok(report.compute_demand / f64::from(count))
}

fn rows(scenario: &DayScenario, anchors: &[f64], frames: &[f64]) -> Vec<Row> {
    let play = |demands: &[f64], way| play_day(scenario, demands, &devices_for, way);
    let scaled = play(anchors, Way::Scaled);
    let mean = (scaled.machine_hours / 24.0).round() as u32;
    let peak = play(anchors, Way::Fixed(scaled.wanted_most));
    let per_frame = play(frames, Way::Counted);
    // Not placed, so that nothing can be said of what goes without: as many as the rule wants, at once.
    let at_once = DayReport { machine_hours: per_frame.wanted_hours, ..per_frame.clone() };
    let throughout = f64::from(per_frame.wanted_most) * 24.0;
    let peak_hours = [peak.machine_hours, throughout];
    let ways = [
        ("anchors, scaled", scaled, 0),
        ("anchors, peak", peak, 0),
        ("anchors, mean", play(anchors, Way::Fixed(mean)), 0),
        ("per-frame, at once", at_once, 1),
        ("per-frame, peak", DayReport { machine_hours: throughout, ..per_frame }, 1),
    ];
    let price = scenario.worker.price;
    let row = |(way, report, of): (&str, DayReport, usize)| Row {
        way: way.to_owned(),
        cost: (price > 0.0).then_some(report.machine_hours * price),
        x_peak: peak_hours[of] / report.machine_hours.max(1e-9),
        x_per_frame: throughout / report.machine_hours.max(1e-9),
        report,
    };
    ways.map(row).into()
}

fn table(scenario: &DayScenario, report: &Report) -> String {
    let mut out = String::new();
    let streams = report.rows.first().map_or((0, 0), |r| (r.report.streams, r.report.streams_most));
    let _ = writeln!(out, "{}", scenario.about);
    let _ = writeln!(out, "{} publishers, {} at once at the most", streams.0, streams.1);
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
        "most",
        "wanted",
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
    for Row { way, report: r, cost, x_peak, x_per_frame } in &report.rows {
        let cost = cost.map_or("-".to_owned(), |cost| format!("{cost:.0}"));
        if way.starts_with("per-frame") {
            let _ = writeln!(
                out,
                "{way:<18} {:>9.1} {cost:>9} {:>7} {:>7} {:>63} {x_peak:>7.2} {x_per_frame:>7.1}",
                r.machine_hours, "-", r.wanted_most, ""
            );
            continue;
        }
        let _ = writeln!(
            out,
            "{way:<18} {:>9.1} {cost:>9} {:>7} {:>7} {:>8} {:>8.3}% {:>8} {:>9} {:>7.2}% {:>7} {:>5.0}% {x_peak:>7.2} {x_per_frame:>7.1}",
            r.machine_hours,
            r.machines_most,
            r.wanted_most,
            r.started,
            100.0 * r.without_share,
            r.without_most_s,
            r.minutes_without,
            100.0 * r.missed_share,
            r.moves,
            100.0 * r.utilisation,
        );
    }
    if let Some(paper) = report.paper {
        let _ = writeln!(out, "paper: {paper}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "\
about: a small day
hours: [0.2, 1, 0.2]
peak: 60
stay_s: 900
servers: 2
streams: [{ name: q, share: 1, width: 320, height: 180, fps: 30, ns_by_pixel: 87, anchor_fraction: 0.033 }]
worker: { devices: 1, most_streams: 20, boot_s: 90, drain_s: 30 }
scaling: { streams: 15 }
";

    #[test]
    fn the_scheduler_says_what_a_stream_takes() {
        let scenario: DayScenario = serde_saphyr::from_str(SMALL).unwrap();
        let kind = &scenario.streams[0];
        // 320 x 180 pixels at 87 ns: 5.01 ms an anchor, 0.99 anchors a second, 30 frames.
        let anchors = demand(kind, AnchorPolicy::LatencySensitive).unwrap();
        assert!((anchors - 0.00496).abs() < 0.0002, "{anchors}");
        let frames = demand(kind, AnchorPolicy::PerFrame).unwrap();
        assert!((frames - 0.150).abs() < 0.004, "{frames}");
    }

    #[test]
    fn a_report_is_a_table_or_json() {
        let scenario: DayScenario = serde_saphyr::from_str(SMALL).unwrap();
        let text = play(scenario.clone(), None, false).unwrap();
        assert!(text.contains("anchors, scaled") && text.contains("per-frame, peak"), "{text}");
        let json = play(scenario.clone(), Some(7), true).unwrap();
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        let hours = |at: usize| report["rows"][at]["machine_hours"].as_f64().unwrap();
        assert!(hours(0) < hours(1), "as many as are wanted cost less than the peak's: {json}");
        assert!(report["rows"][0]["x_per_frame"].as_f64() > Some(1.0), "{json}");
        assert!(report["rows"][0]["cost"].is_null(), "no price was said");
        for (change, named) in [("hours: [0.2, 1, 0.2]", "hours: []"), ("peak: 60", "peak: -1")] {
            let wrong = serde_saphyr::from_str(&SMALL.replace(change, named)).unwrap();
            let error = play(wrong, None, false).unwrap_err().to_string();
            assert!(error.starts_with(&named[..4]), "{error}");
        }
    }
}
