//! `windlass-lab bench engine --choose`: by which networks, and by how much, a server on this machine would enlarge
//! the streams of a number of publishers.
//!
//! The networks are measured as `windlass serve` measures them at its start, and its own scheduler runs on publishers
//! that are all alike ([`sustained`]). A server follows what a call really costs while it goes on; this says what to
//! expect.

use std::fmt::Write as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use windlass_enhancer::{EnhancerConfig, NetworkStats};
use windlass_scheduler::NetworkCost;
use windlass_sr::NetworkChoice;

use super::args::EngineArgs;
use super::sustain::{Sustained, sustained};
use crate::eval::frames::Size;
use crate::eval::report::Machine;
use crate::page::Contents;
use crate::plot::{Curve, Plot};

/// What the server would choose.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Choice")]
pub(crate) struct ChooseArgs {
    /// Say by which networks the server would enlarge so many publishers of --sizes, within its default budget and half
    /// of the machine's threads.
    #[arg(long, value_delimiter = ',', value_name = "N,…", conflicts_with_all = ["quality", "networks", "threads", "backends"])]
    pub choose: Vec<NonZeroU32>,

    /// The networks to choose from, as `windlass serve --network` takes them.
    #[arg(long, value_name = "NAME|FILE,...", default_value = "auto", requires = "choose")]
    pub network: NetworkChoice,

    /// Inference threads [default: half of the machine's].
    #[arg(long, value_name = "N", requires = "choose")]
    pub enhancer_threads: Option<NonZeroUsize>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Report {
    command: &'static str,
    machine: Machine,
    threads: usize,
    /// Time to calibrate all networks together, in ms.
    calibration_ms: f64,
    networks: Vec<Calibrated>,
    rows: Vec<Row>,
}

/// A network as a server measures it at its start.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Calibrated {
    network: String,
    scale: usize,
    /// Time for inference and encoding of a whole picture, in ns for each low sample.
    ns_by_sample: f64,
}

/// The choice for a number of publishers at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    publishers: u32,
    input: String,
    /// For each network: how many of the streams have it.
    streams: Vec<usize>,
    anchors_per_s: f64,
    /// Share of the inference threads' time that is used.
    share: f64,
}

/// Measures the networks, asks the scheduler and prints the report.
pub(super) fn run(args: &EngineArgs) -> Result<()> {
    let ChooseArgs { choose, network, enhancer_threads } = &args.choose;
    let default = EnhancerConfig::default();
    let threads = enhancer_threads.map_or(default.threads, NonZeroUsize::get);
    let config = EnhancerConfig { network: network.clone(), threads, ..default };
    let begun = Instant::now();
    let networks = config.calibrate()?;
    let calibration_ms = 1e3 * begun.elapsed().as_secs_f64();
    let cost = |n: &NetworkStats| NetworkCost { scale: n.scale, per_pixel: n.per_pixel };
    let scheduler = config.scheduler(networks.iter().map(cost).collect());
    let mut rows = Vec::new();
    for &Size { width, height } in &args.sizes {
        let size = windlass_types::Size::new(u16::try_from(width)?, u16::try_from(height)?);
        for &publishers in choose {
            let found = sustained(&scheduler, publishers.get(), size);
            rows.push(Row::new(publishers.get(), size, found));
        }
    }
    let named = networks.iter().map(|n| Calibrated {
        network: n.name.to_string(),
        scale: n.scale,
        ns_by_sample: 1e9 * n.per_pixel.as_secs_f64(),
    });
    let report = Report {
        command: "bench engine --choose",
        machine: Machine::here(),
        threads,
        calibration_ms,
        networks: named.collect(),
        rows,
    };
    args.output.put(&report, None, &report.table(), || Contents {
        plots: report.plots(),
        ..Contents::default()
    })
}

impl Row {
    fn new(publishers: u32, size: windlass_types::Size, found: Sustained) -> Row {
        let Sustained { streams, anchors_per_s, share } = found;
        Row { publishers, input: size.to_string(), streams, anchors_per_s, share }
    }
}

impl Report {
    /// Anchors a second by the number of publishers, for each size.
    fn plots(&self) -> Vec<Plot> {
        let mut curves: Vec<Curve> = Vec::new();
        for row in &self.rows {
            let place = (f64::from(row.publishers), row.anchors_per_s);
            if curves.last().is_none_or(|curve| curve.name != row.input) {
                let name = row.input.clone();
                curves.push(Curve { name, line: Vec::new(), dots: Vec::new() });
            }
            if let Some(curve) = curves.last_mut() {
                curve.line.push(place);
                curve.dots.push(place);
            }
        }
        vec![Plot {
            title: "Anchors that the machine sustains".to_owned(),
            x_title: "publishers".to_owned(),
            x_log: false,
            y_title: "anchors a second".to_owned(),
            curves,
        }]
    }

    fn table(&self) -> String {
        let mut out = String::new();
        let Machine { cpu, platform, .. } = &self.machine;
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{cpu}, {platform}; {} inference threads; networks measured in {:.0} ms\n",
            self.threads, self.calibration_ms
        );
        for Calibrated { network, scale, ns_by_sample } in &self.networks {
            let _ = writeln!(
                out,
                "{network:<14} by {scale}  {ns_by_sample:>8.1} ns by low sample, coding included"
            );
        }
        let _ = write!(out, "\n{:>10} {:>9}", "publishers", "input");
        for Calibrated { network, .. } in &self.networks {
            let _ = write!(out, " {network:>14}");
        }
        let _ = writeln!(out, " {:>10} {:>14}", "anchors/s", "share of time");
        for row in &self.rows {
            let _ = write!(out, "{:>10} {:>9}", row.publishers, row.input);
            for streams in &row.streams {
                let _ = write!(out, " {streams:>14}");
            }
            let _ = writeln!(out, " {:>10.1} {:>13.0}%", row.anchors_per_s, 100.0 * row.share);
        }
        out.push_str("\nPublishers of a quarter layer alone, 30 frames a second; by network: how many have it\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_asked_for_by_itself() {
        let args = ["--choose", "1,20", "--network", "xs", "--sizes", "160x90"];
        let args = EngineArgs::parsed(&args).unwrap();
        assert_eq!(args.choose.choose.len(), 2);
        assert_eq!(args.choose.network, NetworkChoice::Xs);
        for wrong in [
            &["--network", "xs"][..],
            &["--choose", "0"],
            &["--choose", "1", "--threads", "2"],
            &["--choose", "1", "--quality", "a.mp4"],
            &["--choose", "1", "--network", "none"],
        ] {
            assert!(EngineArgs::parsed(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn each_network_has_its_column() {
        let network =
            |name: &str, scale| Calibrated { network: name.into(), scale, ns_by_sample: 50.0 };
        let found = Sustained { streams: vec![3, 7], anchors_per_s: 9.9, share: 0.254 };
        let report = Report {
            command: "bench engine --choose",
            machine: Machine::here(),
            threads: 1,
            calibration_ms: 12.0,
            networks: vec![network("xs-x2", 2), network("xs-x4", 4)],
            rows: vec![Row::new(10, windlass_types::Size::new(160, 90), found)],
        };
        let table = report.table();
        let line = table.lines().find(|line| line.contains("160x90")).unwrap();
        let cells: Vec<_> = line.split_whitespace().collect();
        assert_eq!(cells, ["10", "160x90", "3", "7", "9.9", "25%"]);
    }
}
