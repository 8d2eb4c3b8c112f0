//! `windlass-lab bench stages`: decoding and encoding on a busy CPU, by plain threads and with slots.
//!
//! Source: ZARN §4.1: who misses its deadline where the operating system alone schedules, with slots in the order of
//! arrival, and with slots by deadline. Nothing is simulated: VP9 frames are decoded and anchors encoded as in the
//! server, in real time. In: a clip, or a drawn scene. Out, by load and way of scheduling: what was missed, how long
//! tasks took, and what was done in time.

mod load;
mod report;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use windlass_enhancer::pipeline::Slots;
use windlass_scheduler::slots::{SlotConfig, TaskOrder};

use self::load::{FPS, Load};
use self::report::{Report, Row};
use self::work::{Cost, Work};
use super::vp9::args::{Preset, Vp9Args};
use super::vp9::streams;
use crate::eval::report::Machine;
use crate::output::Output;
use crate::page::Contents;
use crate::progress::Progress;
use crate::simulator::streams::TaskScheduling;

/// Width and height of the drawn scene's low layer in samples, and its number of frames.
const DRAWN: (usize, usize, usize) = (640, 360, 150);

/// Decode streams and code anchors in real time, by plain threads and with slots.
///
/// The streams of a load take that share of all cores, by what a frame and an anchor take alone. All ways serve the
/// same arrivals.
#[derive(Debug, Clone, Args)]
pub(super) struct StagesArgs {
    /// Per cent of the cores' time.
    #[arg(long, value_delimiter = ',', value_name = "%,…", default_values = ["30", "70", "90", "110", "150"],
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub loads: Vec<u32>,

    /// Seconds of each run.
    #[arg(long, default_value = "10", value_name = "S",
          value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,

    /// Runs of each, by turns.
    #[arg(long, default_value = "1", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// After a frame's arrival its anchor must be coded: the server's budget less its allowance for delivery.
    #[arg(long, default_value = "140", value_name = "MS")]
    pub deadline_ms: u32,

    /// One frame in so many becomes an anchor.
    #[arg(long, default_value = "10", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub anchor_every: u32,

    /// Time off the CPU from decoded to super-resolved: choosing, and an accelerator.
    #[arg(long, default_value = "50", value_name = "MS")]
    pub away_ms: u32,

    /// A frame comes so much before or after its time, at most.
    #[arg(long, default_value = "10", value_name = "MS",
          value_parser = clap::value_parser!(u32).range(0..=16))]
    pub jitter_ms: u32,

    /// Slots; 0: as many as there are cores.
    #[arg(long, default_value = "0", value_name = "N")]
    pub cpu_tasks: usize,

    /// By how much an expected miss is forgiven, with slots by deadline.
    #[arg(long, default_value = "0", value_name = "MS")]
    pub lost_cause_threshold_ms: u32,

    /// Clip to make the streams of; else LivePortrait__s18.mp4 in the folder WINDLASS_CLIPS, else a drawn scene.
    #[arg(long, value_name = "FILE")]
    pub clip: Option<PathBuf>,

    /// The ffmpeg that reads the clip.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH")]
    pub ffmpeg: Option<PathBuf>,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
}

/// The slots in which tasks run; `None`: all run at once.
fn slots(scheduling: TaskScheduling, args: &StagesArgs) -> Option<Slots> {
    let order = match scheduling {
        TaskScheduling::Threads => return None,
        TaskScheduling::Fifo => TaskOrder::Fifo,
        TaskScheduling::Edf => TaskOrder::Edf,
    };
    Some(Slots::new(SlotConfig {
        cap: args.cap(),
        order,
        lost_cause_threshold: Duration::from_millis(args.lost_cause_threshold_ms.into()),
        // A stream has one anchor at a time.
        max_waiting: usize::MAX,
    }))
}

impl StagesArgs {
    fn cap(&self) -> usize {
        match self.cpu_tasks {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        }
    }

    /// A clip's streams, where there is one.
    fn work(&self) -> Result<(String, Work)> {
        let made = Vp9Args {
            files: Vec::new(),
            streams: vec![Preset::P360, Preset::P720],
            passes: std::num::NonZeroU32::MIN,
            seconds: 10,
            clip: self.clip.clone(),
            crop: None,
            keep: None,
            wasm: false,
            module: PathBuf::new(),
            node: PathBuf::new(),
            ffmpeg: self.ffmpeg.clone(),
            output: Output::default(),
        };
        let streams = streams::collect(&made).and_then(Iterator::collect::<Result<Vec<_>>>);
        match streams {
            Ok(streams) => {
                ensure!(streams.len() == 2, "a stream is missing");
                Ok((
                    streams[0].path.display().to_string(),
                    Work::of_clip(&streams[0], &streams[1])?,
                ))
            }
            Err(error) if self.clip.is_some() => Err(error),
            Err(error) => {
                eprintln!("a drawn scene, as there is no clip: {error:#}");
                let (width, height, frames) = DRAWN;
                Ok(("a drawn scene".to_owned(), Work::drawn(width, height, frames)?))
            }
        }
    }

    /// The number of streams that take `percent` of all cores, as a load.
    fn load(&self, percent: u32, cost: Cost) -> Load {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let wanted = f64::from(percent) / 100.0 * cores;
        let ms = |ms: u32| Duration::from_millis(ms.into());
        Load {
            streams: ((wanted / self.share(cost)).round() as usize).max(1),
            seconds: self.seconds,
            deadline: ms(self.deadline_ms),
            every: self.anchor_every as usize,
            away: ms(self.away_ms),
            jitter: ms(self.jitter_ms),
        }
    }

    /// Share of a core that one stream takes.
    fn share(&self, cost: Cost) -> f64 {
        let anchors = cost.encode.as_secs_f64() / f64::from(self.anchor_every);
        f64::from(FPS) * (cost.decode.as_secs_f64() + anchors)
    }
}

/// Runs the bench and prints its report.
pub(super) fn run(args: &StagesArgs) -> Result<()> {
    let (source, work) = args.work()?;
    // The first run only fills caches and raises clocks.
    work.cost()?;
    let cost = work.cost()?;
    let mut rows: Vec<Row> = Vec::new();
    let runs = args.loads.len() * args.rounds as usize * TaskScheduling::ALL.len();
    let progress = Progress::new(runs, "runs");
    'runs: for &percent in &args.loads {
        let load = args.load(percent, cost);
        let first = rows.len();
        for round in 0..args.rounds {
            for turn in 0..TaskScheduling::ALL.len() {
                let way = TaskScheduling::ALL[(turn + round as usize) % TaskScheduling::ALL.len()];
                if progress
                    .begin(format!("{percent} %: {} streams, {}", load.streams, way.name()))
                    .is_err()
                {
                    rows[first..].iter_mut().for_each(Row::finish);
                    break 'runs;
                }
                let slots = slots(way, args);
                let outcome = load.serve(&work, slots.as_ref())?;
                match rows[first..].iter_mut().find(|row| row.way == way.name()) {
                    Some(row) => row.add(outcome),
                    None => rows.push(Row::new(percent, way.name(), &load, outcome)),
                }
                progress.done();
            }
        }
        rows[first..].iter_mut().for_each(Row::finish);
    }
    let report = Report {
        command: "bench stages",
        machine: Machine::here(),
        source,
        cpu_tasks: args.cap(),
        deadline_ms: args.deadline_ms,
        away_ms: args.away_ms,
        decode_ms: 1e3 * cost.decode.as_secs_f64(),
        encode_ms: 1e3 * cost.encode.as_secs_f64(),
        rows,
    };
    args.output.put(&report, progress.interrupted(), &report.table(), Contents::default)
}
