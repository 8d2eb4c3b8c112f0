//! Measures one network at one size with a number of threads. All engines take turns, so that a machine with other
//! work to do slows all of them alike.

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rustix::time::{ClockId, clock_gettime};
use windlass_sr::{Architecture, Model, embedded_model};

use crate::args::{Args, Network, Size};
use crate::engines::{Kind, Worker, Workshop};
use crate::pictures::pictures;
use crate::quality::{Quality, reference};
use crate::report::{Outcome, Row};

/// Number of pictures that take turns, so that caches do not hold all of the data that is used again and again.
pub(crate) const PICTURES: usize = 4;
/// Pause between engines. By its end the threads of the engine before have given up waiting in a busy loop for more
/// work.
const REST: Duration = Duration::from_millis(15);
/// Longest time of a picture for a warm-up: an engine's turn begins with a picture that does not count, unless
/// pictures take longer. Another engine may have evicted its memory from the caches, which only many fast pictures
/// would not show.
const WARM: Duration = Duration::from_millis(100);

/// The case that is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// The network.
    pub(crate) network: Architecture,
    /// Size of the pictures.
    pub(crate) size: Size,
    /// Number of threads that engines may use.
    pub(crate) threads: usize,
}

/// How an engine's threads are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Number of engines at once, each on pictures of its own.
    pub(crate) engines: usize,
    /// Number of threads of an engine on one picture.
    pub(crate) threads: usize,
}

impl Case {
    /// The ways in which an engine of this kind can use the threads.
    fn spreads(&self, kind: Kind) -> Vec<Spread> {
        let across = Spread { engines: self.threads, threads: 1 };
        let within = Spread { engines: 1, threads: self.threads };
        if self.threads == 1 || kind.is_ours() { vec![across] } else { vec![within, across] }
    }
}

/// The times of one turn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turn {
    /// Time from one picture of an engine to its next, in ms.
    pub(crate) picture_ms: f64,
    /// CPU time of all threads for each picture, in ms.
    pub(crate) cpu_ms: f64,
    /// Pictures of all engines together in a second.
    pub(crate) rate: f64,
}

/// An engine in one way of using threads, with its turns.
struct Entry {
    kind: Kind,
    spread: Spread,
    workers: Result<(Vec<Box<dyn Worker>>, Quality), String>,
    turns: Vec<Turn>,
}

/// The built-in weights of a network where there are some, else random ones.
pub(crate) fn weights(Network(network): Network) -> Result<Arc<Model>> {
    let trained = embedded_model()?;
    if trained.architecture() == network {
        return Ok(trained);
    }
    Ok(Arc::new(Model::random(network, 1)?))
}

/// Measures all engines on a case, and returns a row for each.
pub(crate) fn rows(
    case: &Case,
    model: &Arc<Model>,
    kinds: &[Kind],
    args: &Args,
) -> Result<Vec<Row>> {
    let pictures = pictures(case.size, PICTURES)?;
    let expected = reference(model, case.size, &pictures[0])?;
    let mut workshop = Workshop::new(model.clone(), case.size, args.onnxruntime.clone())?;
    let mut entries = Vec::new();
    for &kind in kinds {
        for spread in case.spreads(kind) {
            let workers = make(&mut workshop, kind, spread, &pictures[0], &expected);
            let workers = workers.map_err(|error| format!("{error:#}"));
            entries.push(Entry { kind, spread, workers, turns: Vec::new() });
        }
    }
    let turn_time = Duration::from_millis(args.turn_ms);
    for round in 0..args.rounds.get() as usize {
        // Another engine begins each round.
        for turn in 0..entries.len() {
            let count = entries.len();
            let Entry { workers, turns, .. } = &mut entries[(round + turn) % count];
            let Ok((ready, _)) = workers else { continue };
            std::thread::sleep(REST);
            let slow = turns.last().is_some_and(|turn| turn.picture_ms > WARM.as_secs_f64() * 1e3);
            match take_turn(ready, &pictures, turn_time, slow) {
                Ok(turn) => turns.push(turn),
                Err(error) => *workers = Err(format!("{error:#}")),
            }
        }
    }
    // Rates are compared in single precision on the CPU, in half precision on a GPU.
    let ours = [("f32", false), ("f16", true)].map(|beside| {
        let this = entries.iter().find(|Entry { kind, .. }| {
            kind.is_ours() && (kind.number(), kind.is_on_gpu()) == beside
        });
        this.map_or_else(Vec::new, |entry| entry.turns.clone())
    });
    let row = |entry: Entry| {
        let ours = &ours[usize::from(entry.kind.is_on_gpu())];
        let outcome = match entry.workers {
            Ok((_, quality)) => Outcome::measured(case, &entry.turns, ours, quality),
            Err(reason) => Outcome::Failed { reason },
        };
        Row::new(case, entry.kind, entry.spread, outcome)
    };
    Ok(entries.into_iter().map(row).collect())
}

/// Makes an engine and checks what it computes.
fn make(
    workshop: &mut Workshop,
    kind: Kind,
    spread: Spread,
    picture: &[u8],
    expected: &[f32],
) -> Result<(Vec<Box<dyn Worker>>, Quality)> {
    let workers = (0..spread.engines).map(|_| workshop.make(kind, spread.threads));
    let mut workers = workers.collect::<Result<Vec<_>>>()?;
    let mut qualities = Vec::new();
    for worker in &mut workers {
        qualities.push(Quality::of(&mut **worker, picture, expected)?);
    }
    let worst = qualities.into_iter().max_by(|a, b| a.greatest.total_cmp(&b.greatest));
    Ok((workers, worst.ok_or_else(|| anyhow!("no engine at all"))?))
}

/// Runs the engines at once for some time; each makes at least one picture.
fn take_turn(
    workers: &mut [Box<dyn Worker>],
    pictures: &[Vec<u8>],
    least: Duration,
    slow: bool,
) -> Result<Turn> {
    let start = Barrier::new(workers.len() + 1);
    let run = |worker: &mut dyn Worker, first: usize| -> Result<f64> {
        let mut read = |residual: &[f32]| {
            black_box(residual);
        };
        let warm = if slow { Ok(()) } else { worker.infer(&pictures[first], &mut read) };
        // Whatever happened, the other threads wait here.
        start.wait();
        warm?;
        let (began, mut done) = (Instant::now(), 0);
        while done == 0 || began.elapsed() < least {
            worker.infer(&pictures[(first + done) % pictures.len()], &mut read)?;
            done += 1;
        }
        Ok(1e3 * began.elapsed().as_secs_f64() / f64::from(u32::try_from(done)?))
    };
    let (run, start) = (&run, &start);
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter_mut()
            .enumerate()
            .map(|(n, worker)| scope.spawn(move || run(&mut **worker, n % pictures.len())))
            .collect();
        start.wait();
        let (began, began_ms) = (Instant::now(), process_ms());
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<f64>>| {
            thread.join().map_err(|_| anyhow!("the engine panicked"))?
        };
        let times = threads.into_iter().map(join).collect::<Result<Vec<f64>>>()?;
        let (wall_ms, cpu_ms) = (1e3 * began.elapsed().as_secs_f64(), process_ms() - began_ms);
        let rate = times.iter().map(|ms| 1e3 / ms).sum::<f64>();
        Ok(Turn {
            picture_ms: times.iter().sum::<f64>() / times.len() as f64,
            cpu_ms: 1e3 * cpu_ms / wall_ms / rate,
            rate,
        })
    })
}

/// CPU time of all threads of the process, in ms.
fn process_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// The median of the values; NaN where there are none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn every_engine_is_a_row_and_those_that_fail_say_why() {
        let missing = "--onnxruntime=/nowhere/libonnxruntime.so";
        let args = Args::parse_from(["engines", "--rounds=1", "--turn-ms=0", missing]);
        let network = Architecture::chain(2, 8, 2);
        let case = Case { network, size: Size { width: 32, height: 16 }, threads: 2 };
        let kinds = Kind::of(&[crate::args::Maker::Ours, crate::args::Maker::Ort]);
        let model = weights(Network(network)).unwrap();
        let rows = rows(&case, &model, &kinds, &args).unwrap();
        assert_eq!(rows.len(), kinds.len() + 2, "onnxruntime is there in both ways");
        for row in rows {
            match row.outcome {
                Outcome::Measured { pictures_per_second, .. } => {
                    assert!(row.engine != "ort" && pictures_per_second > 0.0);
                }
                Outcome::Failed { reason } => {
                    assert!(row.engine == "ort" && !reason.is_empty());
                }
            }
        }
    }
}
