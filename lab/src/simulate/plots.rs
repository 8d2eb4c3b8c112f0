//! Plots (SVG) of scenarios' results.

use std::path::Path;

use crate::simulator::streams::{
    OrderName, Report, RequestReport, RequestRow, Second, StageReport, StageRow, TaskScheduling,
};
use anyhow::{Context, Result};

use crate::plot::{Curve, Plot};

/// Writes plots to a folder, named after a scenario.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plots<'a> {
    /// The folder for the plots.
    pub folder: &'a Path,
    /// The beginning of the plots' file names.
    pub stem: &'a str,
}

/// A measure that is drawn: the file's name, the axis' title, and the value.
type Measure<T> = (&'static str, &'static str, fn(&T) -> f64);

/// The measures that are drawn second by second.
const MEASURES: [Measure<Second>; 5] = [
    ("latency-over-time", "anchor latency, 95th percentile (ms)", |s| s.p95_ms),
    ("missed", "missed (% of chosen)", |s| 100.0 * s.miss_rate),
    ("fraction", "anchors (% of frames)", |s| 100.0 * s.fraction),
    ("utilisation", "accelerators busy (%)", |s| 100.0 * s.utilisation),
    ("gain", "predicted gain over no anchors (dB)", |s| s.gain_db),
];

impl Plots<'_> {
    /// Draws a scenario of streams, played in one or more ways.
    pub(super) fn streams(self, reports: &[(String, Report)]) -> Result<()> {
        let shares = |report: &Report| -> Vec<(f64, f64)> {
            report.percentiles_ms.iter().zip(0..).map(|(&ms, n)| (ms, f64::from(n))).collect()
        };
        let curves = reports.iter().map(|(way, report)| line(way, shares(report)));
        self.write("latency", "anchor latency (ms)", "anchors (%)", curves.collect())?;
        for (name, title, value) in MEASURES {
            let curves = reports.iter().map(|(way, report)| {
                line(way, report.course.iter().map(|s| (s.at_s, value(s))).collect())
            });
            self.write(name, "time (s)", title, curves.collect())?;
        }
        Ok(())
    }

    /// Draws a scenario of requests: each order by load, and the calibrated one by λ.
    pub(super) fn requests(self, report: &RequestReport) -> Result<()> {
        let measures: [Measure<RequestRow>; 4] = [
            ("mean", "mean latency (s)", |row| row.mean_ms / 1e3),
            ("p99", "latency, 99th percentile (s)", |row| row.p99_ms / 1e3),
            ("throughput", "served (1/s)", |row| row.throughput_per_s),
            ("loads", "loads of networks (% of requests)", |row| 100.0 * row.loads),
        ];
        for (name, title, value) in measures {
            let of = |order: OrderName| {
                let rows = report.rows.iter().filter(move |row| row.order == order);
                rows.filter_map(move |row| Some((row.load?, value(row))))
            };
            let orders = [OrderName::Fifo, OrderName::Shortest, OrderName::Calibrated];
            let curves = orders.map(|order| dotted(super::order(order), of(order).collect()));
            self.write(name, "offered over x", title, curves.into())?;
        }
        let by_lambda = report.lambdas.iter().map(|row| {
            let shares = row.percentiles_ms.iter().zip(0..);
            let points = shares.map(|(&ms, n)| (ms / 1e3, f64::from(n)));
            line(&format!("λ {}", row.lambda), points.collect())
        });
        self.write("lambda", "latency (s)", "requests (%)", by_lambda.collect())
    }

    /// Draws a scenario of stages: what is missed, by slots.
    pub(super) fn stages(self, report: &StageReport) -> Result<()> {
        let most = report.rows.iter().filter_map(|row| row.cap).max().unwrap_or(1) as f64;
        let curves = TaskScheduling::ALL.map(|way| {
            let share = |row: &StageRow| 100.0 * row.missed / f64::from(report.requests.max(1));
            let rows = report.rows.iter().filter(|row| row.way == way);
            let mut points: Vec<(f64, f64)> =
                rows.map(|row| (row.cap.map_or(1.0, |cap| cap as f64), share(row))).collect();
            if way == TaskScheduling::Threads {
                points.extend(
                    points.first().map(|first| (most, first.1)).into_iter().collect::<Vec<_>>(),
                );
            }
            dotted(way.name(), points)
        });
        self.write("missed", "slots", "missed (% of requests)", curves.into())
    }

    fn write(self, name: &str, x_title: &str, y_title: &str, curves: Vec<Curve>) -> Result<()> {
        if curves.iter().all(|curve| curve.line.is_empty()) {
            return Ok(());
        }
        let plot = Plot {
            title: self.stem.to_owned(),
            x_title: x_title.to_owned(),
            x_log: false,
            y_title: y_title.to_owned(),
            curves,
        };
        std::fs::create_dir_all(self.folder)
            .with_context(|| format!("making the folder {}", self.folder.display()))?;
        let path = self.folder.join(format!("{}_{name}.svg", self.stem));
        std::fs::write(&path, plot.svg()).with_context(|| format!("writing {}", path.display()))
    }
}

fn line(name: &str, line: Vec<(f64, f64)>) -> Curve {
    Curve { name: name.to_owned(), line, dots: Vec::new() }
}

fn dotted(name: &str, line: Vec<(f64, f64)>) -> Curve {
    Curve { name: name.to_owned(), dots: line.clone(), line }
}

#[cfg(test)]
mod tests {
    use crate::simulator::streams::{RequestScenario, Scenario, run, run_requests, run_stages};

    use super::super::file::{self, File};
    use super::*;

    #[test]
    fn every_kind_of_scenario_can_be_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let plots = Plots { folder: folder.path(), stem: "it" };
        let mut drawn = [false; 3];
        for path in file::shipped() {
            match file::read(&path).unwrap() {
                File::Streams(scenario, traces) if !drawn[0] => {
                    let short = Scenario { seconds: 2.0, ..scenario };
                    let report = run(&short, &traces).unwrap();
                    plots.streams(&[("one".to_owned(), report)]).unwrap();
                    drawn[0] = true;
                }
                File::Requests(scenario) if !drawn[1] => {
                    let short = RequestScenario { rounds: 1, loads: vec![0.5, 1.0], ..scenario };
                    plots.requests(&run_requests(&short).unwrap()).unwrap();
                    drawn[1] = true;
                }
                File::Stages(scenario) if !drawn[2] => {
                    plots.stages(&run_stages(&scenario).unwrap()).unwrap();
                    drawn[2] = true;
                }
                _ => {}
            }
        }
        assert_eq!(drawn, [true; 3]);
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let wanted = [
            "it_fraction.svg",
            "it_gain.svg",
            "it_lambda.svg",
            "it_latency-over-time.svg",
            "it_latency.svg",
            "it_loads.svg",
            "it_mean.svg",
            "it_missed.svg",
            "it_p99.svg",
            "it_throughput.svg",
            "it_utilisation.svg",
        ];
        assert_eq!(names, wanted);
        for name in names {
            let svg = std::fs::read_to_string(folder.path().join(&name)).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        }
    }
}
