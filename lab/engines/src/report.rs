//! The report: a table for people, or one JSON object.

use std::fmt::Write as _;

use serde::Serialize;

use crate::engines::Kind;
use crate::measure::{Case, Spread, Turn, median};
use crate::quality::Quality;

/// An engine's row: on one network at one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    /// The network.
    pub(crate) network: String,
    /// Size of the pictures that go in.
    pub(crate) input: String,
    /// Number of threads that engines may use.
    pub(crate) threads: usize,
    /// The engine.
    pub(crate) engine: &'static str,
    /// The type of number between the engine's layers.
    pub(crate) number: &'static str,
    /// Whether the engine is Windlass's.
    pub(crate) ours: bool,
    /// Whether the engine runs on a GPU: such rows are compared with each other alone.
    on_gpu: bool,
    /// How threads are used: engines at once × threads of each on a picture.
    pub(crate) spread: String,
    /// The figures, or why there are none.
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

/// Figures, or why there are none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Medians of the rounds.
    Measured {
        /// Time for a picture of one engine by the clock, in ms.
        picture_ms: f64,
        /// Time for a picture in the fastest round by the clock, in ms.
        min_ms: f64,
        /// CPU time of all threads for each picture, in ms.
        cpu_ms: f64,
        /// Pictures of all engines together in a second.
        pictures_per_second: f64,
        /// The network's own operations in a second, of all threads, in 10⁹.
        gflops: f64,
        /// Rate of Windlass's engine in single precision over this one's, in the same rounds. On a GPU: of Windlass's
        /// engine there.
        ours_f32_faster: Option<f64>,
        /// How far the residual is from that of plain code.
        quality: Quality,
    },
    /// The engine could not be made, or gave up.
    Failed {
        /// The error, in the engine's own words.
        reason: String,
    },
}

impl Row {
    /// A row of a case.
    pub(crate) fn new(case: &Case, kind: Kind, spread: Spread, outcome: Outcome) -> Row {
        Row {
            network: case.network.to_string(),
            input: format!("{}x{}", case.size.width, case.size.height),
            threads: case.threads,
            engine: kind.name(),
            number: kind.number(),
            ours: kind.is_ours(),
            on_gpu: kind.is_on_gpu(),
            spread: format!("{}x{}", spread.engines, spread.threads),
            outcome,
        }
    }

    fn rate(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Measured { pictures_per_second, .. } => Some(pictures_per_second),
            Outcome::Failed { .. } => None,
        }
    }
}

impl Outcome {
    /// The medians of an engine's turns, beside those of Windlass's in the same rounds.
    pub(crate) fn measured(
        case: &Case,
        turns: &[Turn],
        ours: &[Turn],
        quality: Quality,
    ) -> Outcome {
        let pictures_per_second = median(turns.iter().map(|turn| turn.rate));
        let operations = 2e-9 * case.network.macs() as f64 * case.size.area() as f64;
        let ratio = median(turns.iter().zip(ours).map(|(turn, ours)| ours.rate / turn.rate));
        Outcome::Measured {
            picture_ms: median(turns.iter().map(|turn| turn.picture_ms)),
            min_ms: turns.iter().map(|turn| turn.picture_ms).fold(f64::INFINITY, f64::min),
            cpu_ms: median(turns.iter().map(|turn| turn.cpu_ms)),
            pictures_per_second,
            gflops: operations * pictures_per_second,
            ours_f32_faster: ratio.is_finite().then_some(ratio),
            quality,
        }
    }
}

/// Windlass's engine beside the library that makes the most pictures, in one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// The network, the size and the threads.
    pub(crate) case: String,
    /// The type of number: `f32`; `any`, where each does what is best for it; or `any on a GPU`.
    pub(crate) number: &'static str,
    /// The type of number of Windlass's engine.
    pub(crate) ours: String,
    /// The library, its type of number and how it used the threads.
    pub(crate) library: String,
    /// Rate of Windlass's engine over the library's.
    pub(crate) ratio: f64,
}

/// All results of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The CPU's own name.
    pub(crate) cpu: String,
    /// Number of threads that the CPU runs at once.
    pub(crate) cpu_threads: usize,
    /// Load averages when the run began and when it ended, as the system gives them.
    pub(crate) load: [String; 2],
    /// How often the engines took turns.
    pub(crate) rounds: u32,
    /// The rows, by network, size, threads and engine.
    pub(crate) rows: Vec<Row>,
    /// Windlass's engine beside the best library, by case.
    pub(crate) verdicts: Vec<Verdict>,
}

impl Report {
    /// A report of rows, on this machine.
    pub(crate) fn new(rounds: u32, load: [String; 2], rows: Vec<Row>) -> Report {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Report {
            cpu: name.map_or("unknown", |(_, name)| name).to_owned(),
            cpu_threads: std::thread::available_parallelism().map_or(1, usize::from),
            load,
            rounds,
            verdicts: verdicts(&rows),
            rows,
        }
    }

    /// The report as one line of JSON.
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// The report as a table in Markdown.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        let Report { cpu, cpu_threads, load: [before, after], rounds, .. } = self;
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{cpu}, {cpu_threads} threads; load average {before} before and {after} after; median of {rounds} rounds\n"
        );
        out.push_str(
            "| network | LR size | threads | engine | number | engines x threads | ms a picture | least | CPU ms | pictures/s | GFLOP/s | ours f32 is faster by | greatest difference | PSNR |\n",
        );
        out.push_str("| --- ".repeat(14).as_str());
        out.push_str("|\n");
        for row in &self.rows {
            let Row { network, input, threads, engine, number, spread, .. } = row;
            let _ = write!(
                out,
                "| {network} | {input} | {threads} | {engine} | {number} | {spread} | "
            );
            let _ = match &row.outcome {
                Outcome::Failed { reason } => writeln!(out, "not run: {reason} |"),
                Outcome::Measured {
                    picture_ms,
                    min_ms,
                    cpu_ms,
                    pictures_per_second,
                    gflops,
                    ours_f32_faster,
                    quality,
                } => {
                    let ratio = ours_f32_faster.map_or("–".to_owned(), |v| format!("{v:.2}"));
                    let psnr = quality.psnr_db.map_or("equal".to_owned(), |v| format!("{v:.1}"));
                    writeln!(
                        out,
                        "{picture_ms:.2} | {min_ms:.2} | {cpu_ms:.2} | {pictures_per_second:.1} | {gflops:.0} | {ratio} | {:.1e} | {psnr} |",
                        quality.greatest
                    )
                }
            };
        }
        out.push_str("\nOurs beside the library that makes most pictures:\n");
        for Verdict { case, number, ours, library, ratio } in &self.verdicts {
            let _ = writeln!(out, "{case}, {number}: ours ({ours}) {ratio:.2} times {library}");
        }
        out
    }
}

/// The verdicts of every case: single precision against single precision, best against best, and best against best on
/// a GPU.
fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let same =
        |a: &Row, b: &Row| (&a.network, &a.input, a.threads) == (&b.network, &b.input, b.threads);
    for case in rows.chunk_by(same) {
        let ways =
            [("f32", Some("f32"), false), ("any", None, false), ("any on a GPU", None, true)];
        for (number, wanted, on_gpu) in ways {
            let best = |ours: bool| {
                let fit = case.iter().filter(|row| {
                    (row.ours, row.on_gpu) == (ours, on_gpu)
                        && wanted.is_none_or(|number| number == row.number)
                });
                let rated = fit.filter_map(|row| Some((row, row.rate()?)));
                rated.max_by(|a, b| a.1.total_cmp(&b.1))
            };
            if let (Some((ours, our_rate)), Some((library, rate))) = (best(true), best(false)) {
                verdicts.push(Verdict {
                    case: format!("{}, {}, {} threads", ours.network, ours.input, ours.threads),
                    number,
                    ours: ours.number.to_owned(),
                    library: format!("{} {} {}", library.engine, library.number, library.spread),
                    ratio: our_rate / rate,
                });
            }
        }
    }
    verdicts
}

/// The system's load averages; a dash where it has none.
pub(crate) fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().filter(|first| !first.is_empty()).unwrap_or("–").to_owned()
}

#[cfg(test)]
mod tests {
    use windlass_sr::{Architecture, Simd};

    use super::*;
    use crate::args::Size;

    fn row(kind: Kind, rate: f64) -> Row {
        let network = Architecture::chain(2, 16, 5);
        let case = Case { network, size: Size { width: 640, height: 360 }, threads: 1 };
        let turn = |rate: f64| Turn { picture_ms: 1e3 / rate, cpu_ms: 1e3 / rate, rate };
        let turns = [turn(rate), turn(0.1 * rate), turn(2.0 * rate)];
        let ours = [turn(30.0), turn(3.0), turn(60.0)];
        let quality = Quality { greatest: 0.5, psnr_db: Some(60.0) };
        let outcome = Outcome::measured(&case, &turns, &ours, quality);
        Row::new(&case, kind, Spread { engines: 1, threads: 1 }, outcome)
    }

    #[test]
    fn figures_are_medians_and_ours_stands_beside_the_best_library() {
        let mut rows = vec![
            row(Kind::Ours(Simd::Scalar), 30.0),
            row(Kind::Ort, 20.0),
            row(Kind::OrtBytes, 40.0),
            row(Kind::Candle, 2.0),
            row(Kind::OursGpu, 900.0),
            row(Kind::OrtTensorrt, 300.0),
        ];
        let Outcome::Measured { pictures_per_second, gflops, ours_f32_faster, .. } =
            rows[1].outcome
        else {
            panic!("{:?}", rows[1])
        };
        // 7632 multiplications for each of 230 400 samples.
        assert!((pictures_per_second - 20.0).abs() < 1e-9 && (gflops - 70.336).abs() < 0.01);
        assert!((ours_f32_faster.unwrap() - 1.5).abs() < 1e-9);
        rows[3].outcome = Outcome::Failed { reason: "no such library".to_owned() };
        let report = Report::new(3, ["1".to_owned(), "2".to_owned()], rows);
        let [single, any, gpu] = &report.verdicts[..] else { panic!("{:?}", report.verdicts) };
        assert!((gpu.ratio - 3.0).abs() < 1e-9 && gpu.library == "ort-tensorrt f16 1x1");
        assert!((single.ratio - 1.5).abs() < 1e-9 && single.library == "ort f32 1x1");
        assert!((any.ratio - 0.75).abs() < 1e-9 && any.library == "ort int8 1x1");
        let table = report.table();
        assert!(table.contains("not run: no such library") && table.contains("| 1.50 |"));
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(json["rows"][3]["outcome"], "failed");
        assert_eq!(json["rows"][0]["outcome"], "measured");
    }
}
