//! The report of `bench stages`.

use std::fmt::Write as _;

use serde::Serialize;

use super::load::{Load, Outcome, Tasks};
use crate::eval::report::Machine;
use crate::latencies::Latencies;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    pub command: &'static str,
    pub machine: Machine,
    /// The clip or scene that the streams are made of.
    pub source: String,
    pub cpu_tasks: usize,
    pub deadline_ms: u32,
    pub away_ms: u32,
    /// CPU time of a frame's decoding and of an anchor's encoding without other load, in ms.
    pub decode_ms: f64,
    pub encode_ms: f64,
    pub rows: Vec<Row>,
}

/// A load, served in one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    pub load_percent: u32,
    pub streams: usize,
    pub way: &'static str,
    pub decode: Stage,
    pub encode: Stage,
    /// Share of all cores' time that this process used, for each run.
    pub used: Vec<f64>,
    /// Share of all cores' time that other processes used, for each run.
    pub others: Vec<f64>,
    #[serde(skip)]
    deadline_ms: f64,
    #[serde(skip)]
    seconds: f64,
}

/// The tasks of a stage.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(super) struct Stage {
    pub due: usize,
    /// Number of tasks that were late, dropped or refused.
    pub missed: usize,
    pub in_time_per_s: f64,
    /// Latency from a frame's arrival in ms, of the tasks that were done.
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// Number of tasks that were refused as lost causes.
    pub refused: u64,
    /// Number of tasks that began too late to end in time, and had to run.
    pub late: u64,
    #[serde(skip)]
    latencies: Vec<f64>,
}

impl Stage {
    fn add(&mut self, tasks: Tasks) {
        self.due += tasks.due;
        self.latencies.extend(tasks.latencies);
    }

    fn finish(&mut self, deadline_ms: f64, seconds: f64) {
        let in_time = self.latencies.iter().filter(|l| **l <= deadline_ms).count();
        self.missed = self.due.saturating_sub(in_time);
        self.in_time_per_s = in_time as f64 / seconds;
        let latencies: Latencies = self.latencies.iter().collect();
        [self.p50_ms, self.p95_ms, self.p99_ms] =
            [50.0, 95.0, 99.0].map(|percent| latencies.percentile_or_zero(percent));
    }
}

impl Row {
    /// The row of a first run.
    pub(super) fn new(load_percent: u32, way: &'static str, load: &Load, outcome: Outcome) -> Row {
        let mut row = Row {
            load_percent,
            streams: load.streams,
            way,
            decode: Stage::default(),
            encode: Stage::default(),
            used: Vec::new(),
            others: Vec::new(),
            deadline_ms: 1e3 * load.deadline.as_secs_f64(),
            seconds: f64::from(load.seconds),
        };
        row.add(outcome);
        row
    }

    /// Adds the results of another run.
    pub(super) fn add(&mut self, outcome: Outcome) {
        for slots in outcome.slots.iter().flat_map(|s| &s.stages) {
            let of = match slots.stage {
                "encode" => &mut self.encode,
                _ => &mut self.decode,
            };
            of.refused += slots.refused;
            of.late += slots.late;
        }
        self.decode.add(outcome.decode);
        self.encode.add(outcome.encode);
        self.used.push(outcome.used);
        self.others.push(outcome.others);
    }

    /// Computes the figures once all runs are in.
    pub(super) fn finish(&mut self) {
        let seconds = self.seconds * self.used.len() as f64;
        self.decode.finish(self.deadline_ms, seconds);
        self.encode.finish(self.deadline_ms, seconds);
    }
}

impl Report {
    pub(super) fn table(&self) -> String {
        let mut out = String::new();
        let Machine { cpu, platform, threads } = &self.machine;
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{cpu}, {platform}, {threads} cores, {} slots; {}; alone {:.2} ms by frame, {:.2} by anchor; deadline {} ms, {} of them away\n",
            self.cpu_tasks,
            self.source,
            self.decode_ms,
            self.encode_ms,
            self.deadline_ms,
            self.away_ms
        );
        let _ = writeln!(
            out,
            "{:>5} {:>7} {:<8} {:>5} {:>6} {:<7} {:>6} {:>7} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7}",
            "load",
            "streams",
            "way",
            "used",
            "others",
            "stage",
            "due",
            "missed",
            "in time/s",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "refused",
            "late"
        );
        let mean = |shares: &[f64]| 100.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        for row in &self.rows {
            for (name, s) in [("decode", &row.decode), ("encode", &row.encode)] {
                let _ = writeln!(
                    out,
                    "{:>4}% {:>7} {:<8} {:>4.0}% {:>5.0}% {name:<7} {:>6} {:>7} {:>9.1} {:>7.1} {:>7.1} {:>7.1} {:>7} {:>7}",
                    row.load_percent,
                    row.streams,
                    row.way,
                    mean(&row.used),
                    mean(&row.others),
                    s.due,
                    s.missed,
                    s.in_time_per_s,
                    s.p50_ms,
                    s.p95_ms,
                    s.p99_ms,
                    s.refused,
                    s.late
                );
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_or_was_never_done_is_missed() {
        let mut stage = Stage::default();
        stage.add(Tasks { due: 3, latencies: vec![20.0, 10.0] });
        stage.add(Tasks { due: 2, latencies: vec![200.0] });
        stage.finish(140.0, 2.0);
        assert_eq!((stage.due, stage.missed), (5, 3));
        assert!((stage.in_time_per_s - 1.0).abs() < 1e-9);
        assert_eq!((stage.p50_ms, stage.p99_ms), (20.0, 200.0));
    }
}
