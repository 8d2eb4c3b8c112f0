//! `windlass-lab bench schedule`: what choosing anchors costs, by the number of streams.
//!
//! Source: NeuroScaler §5.1 and §8.2 (100 streams a thread at 4.13 ms). In: streams that are all alike but for phase,
//! sizes of frames drawn by a seed. Out: CPU time of an interval, all of it: frames pushed, chosen, reported as
//! finished.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use windlass_scheduler::{Candidate, NetworkCost, Scheduler, SchedulerConfig, Tier};
use windlass_types::{Size, StreamId};

use super::plans::{self, PlanRow};
use crate::eval::cpu_clock::thread_time;
use crate::eval::report::Machine;
use crate::eval::stats::percentile;
use crate::output::Output;
use crate::page::Contents;
use crate::plot::{Curve, Plot};
use crate::progress::Progress;

/// Choose anchors among the frames of many streams, without pictures.
#[derive(Debug, Clone, Args)]
pub(super) struct ScheduleArgs {
    /// Streams at once.
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_values = ["100", "1000", "10000", "50000"])]
    pub streams: Vec<NonZeroU32>,

    /// Frames per second of each.
    #[arg(long, default_value = "30", value_name = "N")]
    pub fps: NonZeroU32,

    /// T_intv in milliseconds.
    #[arg(long, default_value = "66", value_name = "MS")]
    pub interval_ms: NonZeroU32,

    /// Intervals that are measured.
    #[arg(long, default_value = "60", value_name = "N")]
    pub ticks: NonZeroU32,

    /// Streams with a promised quality (quality-sla) that are planned for at once, 40 by accelerator.
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_values = ["20", "40", "100", "400"])]
    pub clients: Vec<NonZeroU32>,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Report {
    command: &'static str,
    machine: Machine,
    interval_ms: u32,
    fps: u32,
    rows: Vec<Row>,
    plans: Vec<PlanRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    streams: u32,
    /// Median CPU time of an interval, in ms; `p99_ms` is what one in a hundred exceeds.
    tick_ms: f64,
    p99_ms: f64,
    /// The median CPU time of an interval for each stream, in ns.
    ns_by_stream: f64,
    /// Share of the interval that the scheduler's CPU time takes.
    share: f64,
    /// Number of anchors that are chosen in an interval.
    chosen: f64,
}

/// Runs the bench and prints its report.
pub(super) fn run(args: &ScheduleArgs) -> Result<()> {
    let progress = Progress::new(args.streams.len() + args.clients.len(), "rows");
    let (mut rows, mut plans) = (Vec::new(), Vec::new());
    for &streams in &args.streams {
        if progress.begin(format!("{streams} streams")).is_err() {
            break;
        }
        rows.push(measure(streams.get(), args));
        progress.done();
    }
    for &clients in &args.clients {
        if progress.begin(format!("{clients} clients")).is_err() {
            break;
        }
        plans.push(plans::measure(clients, 200));
        progress.done();
    }
    let report = Report {
        command: "bench schedule",
        machine: Machine::here(),
        interval_ms: args.interval_ms.get(),
        fps: args.fps.get(),
        rows,
        plans,
    };
    args.output.put(&report, progress.interrupted(), &report.table(), || Contents {
        plots: report.plots(),
        ..Contents::default()
    })
}

fn measure(streams: u32, args: &ScheduleArgs) -> Row {
    let interval = Duration::from_millis(args.interval_ms.get().into());
    let network = |nanos| NetworkCost { scale: 2, per_pixel: Duration::from_nanos(nanos) };
    // There are devices for a third of what the fraction allows, so that both limits are met.
    let config = SchedulerConfig {
        interval,
        devices: (streams / 500).max(1),
        networks: vec![network(100), network(220)],
        ..SchedulerConfig::default()
    };
    let mut scheduler = Scheduler::new(config);
    let (mut frames, mut chosen) = (Frames::new(streams, args.fps.get()), Vec::new());
    let (mut times, mut total) = (Vec::new(), 0);
    let warm_up = 1_500 / args.interval_ms.get() + 2;
    for tick in 0..warm_up + args.ticks.get() {
        let now = interval * (tick + 1);
        frames.until(now);
        let before = thread_time();
        for frame in &frames.due {
            scheduler.push(*frame);
        }
        chosen.clear();
        scheduler.tick(now, &mut chosen);
        for job in &chosen {
            scheduler.finished(job, Some(job.cost));
        }
        let took = thread_time().saturating_sub(before);
        if tick >= warm_up {
            times.push(1e3 * took.as_secs_f64());
            total += chosen.len();
        }
    }
    let tick_ms = percentile(&times, 50.0).unwrap_or_default();
    Row {
        streams,
        tick_ms,
        p99_ms: percentile(&times, 99.0).unwrap_or_default(),
        ns_by_stream: 1e6 * tick_ms / f64::from(streams),
        share: tick_ms / f64::from(args.interval_ms.get()),
        chosen: total as f64 / times.len() as f64,
    }
}

/// The frames of all streams as they arrive.
struct Frames {
    streams: u32,
    every: Duration,
    next: Vec<u32>,
    seed: u32,
    due: Vec<Candidate>,
}

impl Frames {
    fn new(streams: u32, fps: u32) -> Frames {
        let every = Duration::from_secs(1) / fps;
        Frames { streams, every, next: vec![0; streams as usize], seed: 1, due: Vec::new() }
    }

    /// Collects the frames that arrive up to `now`, stream by stream.
    fn until(&mut self, now: Duration) {
        self.due.clear();
        for stream in 0..self.streams {
            let next = &mut self.next[stream as usize];
            loop {
                let arrival = self.every * *next + self.every * (stream % 32) / 32;
                if arrival > now {
                    break;
                }
                self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let tier = match *next {
                    0 => Tier::Key,
                    n if n % 40 == 0 => Tier::Golden,
                    _ => Tier::Normal,
                };
                self.due.push(Candidate {
                    id: u64::from(stream) << 32 | u64::from(*next),
                    stream: StreamId(stream),
                    tier,
                    bytes: 200 + self.seed % 1_000,
                    size: Size::new(320, 180),
                    arrival,
                    per_mille: 1000,
                    scale: 2,
                    max_scale: 2,
                });
                *next += 1;
            }
        }
    }
}

impl Report {
    /// The time of an interval by the number of streams.
    fn plots(&self) -> Vec<Plot> {
        let line =
            |of: fn(&Row) -> f64| self.rows.iter().map(move |r| (f64::from(r.streams), of(r)));
        let curve = |name: &str, of| {
            let dots: Vec<_> = line(of).collect();
            Curve { name: name.to_owned(), line: dots.clone(), dots }
        };
        vec![Plot {
            title: "A tick of the scheduler".to_owned(),
            x_title: "streams".to_owned(),
            x_log: true,
            y_title: "CPU time (ms)".to_owned(),
            curves: vec![curve("median", |r| r.tick_ms), curve("99th percentile", |r| r.p99_ms)],
        }]
    }

    fn table(&self) -> String {
        let mut out = String::new();
        let Machine { cpu, platform, .. } = &self.machine;
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{cpu}, {platform}; CPU time of one thread by interval of {} ms, {} frames a second\n",
            self.interval_ms, self.fps
        );
        let _ = writeln!(
            out,
            "{:>8} {:>9} {:>9} {:>10} {:>6} {:>9}",
            "streams", "tick ms", "p99 ms", "ns/stream", "share", "anchors"
        );
        for row in &self.rows {
            let _ = writeln!(
                out,
                "{:>8} {:>9.3} {:>9.3} {:>10.0} {:>5.0}% {:>9.1}",
                row.streams,
                row.tick_ms,
                row.p99_ms,
                row.ns_by_stream,
                100.0 * row.share,
                row.chosen
            );
        }
        let _ = writeln!(
            out,
            "\n{:>8} {:>9} {:>9} {:>9}  (a plan each 200 ms)",
            "clients", "served", "plan ms", "p99 ms"
        );
        for PlanRow { clients, served, plan_ms, p99_ms } in &self.plans {
            let _ = writeln!(out, "{clients:>8} {served:>9.1} {plan_ms:>9.3} {p99_ms:>9.3}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(streams: &str) -> ScheduleArgs {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            schedule: ScheduleArgs,
        }
        let parsed: Cli =
            clap::Parser::try_parse_from(["schedule", "--streams", streams, "--ticks", "20"])
                .expect("they are arguments");
        parsed.schedule
    }

    #[test]
    fn every_stream_gives_its_frames_once() {
        let mut frames = Frames::new(50, 30);
        let mut seen = std::collections::HashSet::new();
        for second in 1..=2 {
            frames.until(Duration::from_millis(999 + 1000 * (second - 1)));
            for frame in &frames.due {
                assert!(seen.insert(frame.id), "{frame:?} twice");
            }
        }
        assert_eq!(seen.len(), 50 * 60);
    }

    #[test]
    fn a_row_says_what_was_chosen_and_what_it_took() {
        let row = measure(200, &args("200"));
        assert!(row.tick_ms > 0.0 && row.p99_ms >= row.tick_ms);
        // One anchor a second each is the most; one device makes 170 of 5.8 ms.
        assert!((1.0..=14.0).contains(&row.chosen), "{row:?}");
    }
}
