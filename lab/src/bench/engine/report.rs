//! The report: a table for people, or one JSON object.

use std::fmt::Write as _;

use serde::Serialize;
use windlass_sr::Simd;

use super::args::Case;
use super::measure::{Peak, Peaks, SwapTimes, Times, median};
use crate::eval::frames::Size;
use crate::eval::report::Machine;

/// A network at a size on an instruction set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// The network.
    pub model: String,
    /// `trained` or `random`.
    pub weights: &'static str,
    pub backend: &'static str,
    /// The type of number between the layers.
    pub number: &'static str,
    /// Size of the low layer.
    pub input: String,
    /// Number of engines at once, each on pictures of its own.
    pub threads: usize,
    /// CPU time of a thread for each picture, in ms: the median of the passes.
    pub frame_ms: f64,
    /// CPU time of a thread for each picture in the fastest pass, in ms.
    pub min_ms: f64,
    /// Time from one picture of a thread to its next by the clock, in ms.
    pub wall_ms: f64,
    /// Pictures of all threads together in a second by the clock.
    pub throughput_fps: f64,
    /// The network's own operations in a second of a thread, in 10⁹; padding does not count.
    pub gflops: f64,
    /// Maximum rate of multiplications and additions in registers alone, of one thread, in 10⁹ a second.
    pub peak_gflops: f64,
    pub peak_share: f64,
    /// Times to change to weights that are new to the process, and to weights that are not, in ms.
    pub first_swap_ms: f64,
    pub swap_ms: f64,
    /// PSNR between this residual and that of plain code in single precision, in dB.
    pub psnr_to_plain_db: Option<f64>,
}

impl Row {
    pub(super) fn new(
        case: &Case,
        trained: bool,
        simd: Simd,
        times: &[Times],
        peak_gflops: f64,
        swap: SwapTimes,
        psnr_to_plain_db: Option<f64>,
    ) -> Row {
        let &Case { network, size: Size { width, height }, threads } = case;
        let mut cpu: Vec<f64> = times.iter().map(|time| time.cpu_ms).collect();
        let mut wall: Vec<f64> = times.iter().map(|time| time.wall_ms).collect();
        let (frame_ms, wall_ms) = (median(&mut cpu), median(&mut wall));
        let gflops = 2e-6 * network.macs() as f64 * (width * height) as f64 / frame_ms;
        Row {
            model: network.to_string(),
            weights: if trained { "trained" } else { "random" },
            backend: simd.name(),
            number: simd.number(),
            input: format!("{width}x{height}"),
            threads,
            frame_ms,
            min_ms: cpu.first().copied().unwrap_or(f64::NAN),
            wall_ms,
            throughput_fps: 1e3 * threads as f64 / wall_ms,
            gflops,
            peak_gflops,
            peak_share: gflops / peak_gflops,
            first_swap_ms: swap.first_ms,
            swap_ms: swap.again_ms,
            psnr_to_plain_db,
        }
    }
}

/// All results of one run of the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    /// The command: `bench engine`.
    pub command: &'static str,
    /// The machine that the bench ran on.
    pub machine: Machine,
    /// The maximum rate of each instruction set.
    pub peaks: Vec<Peak>,
    /// The rows, by network, size, threads and backend.
    pub rows: Vec<Row>,
}

impl Report {
    pub(super) fn new(machine: Machine, Peaks(peaks): Peaks, rows: Vec<Row>) -> Report {
        Report { command: "bench engine", machine, peaks, rows }
    }

    /// The report as a table.
    pub(super) fn table(&self) -> String {
        let mut out = String::new();
        let Machine { cpu, threads, platform } = &self.machine;
        // Writing to a string does not fail.
        let _ = writeln!(out, "{cpu}, {threads} threads, {platform}; CPU time of a thread\n");
        for Peak { backend, number, gflops } in &self.peaks {
            let _ = writeln!(out, "{backend:<16} {number:<4} {gflops:>7.1} GFLOP/s in registers");
        }
        let _ = writeln!(
            out,
            "\n{:<18} {:>9} {:<16} {:>7} {:>9} {:>9} {:>9} {:>8} {:>8} {:>6} {:>10} {:>8} {:>7}",
            "network",
            "input",
            "backend",
            "threads",
            "ms",
            "least",
            "wall ms",
            "fps",
            "GFLOP/s",
            "share",
            "first swap",
            "swap",
            "PSNR"
        );
        for row in &self.rows {
            let psnr = row.psnr_to_plain_db.map_or_else(|| "–".to_owned(), |v| format!("{v:.1}"));
            let _ = writeln!(
                out,
                "{:<18} {:>9} {:<16} {:>7} {:>9.2} {:>9.2} {:>9.2} {:>8.1} {:>8.1} {:>5.0}% {:>10.4} {:>8.4} {:>7}",
                row.model,
                row.input,
                row.backend,
                row.threads,
                row.frame_ms,
                row.min_ms,
                row.wall_ms,
                row.throughput_fps,
                row.gflops,
                100.0 * row.peak_share,
                row.first_swap_ms,
                row.swap_ms,
                psnr
            );
        }
        out.push_str(
            "\nthreads: engines at once, each on pictures of its own; fps: of all of them\n",
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::json;
    use windlass_sr::Architecture;

    #[test]
    fn figures_follow_from_the_median_of_the_passes() {
        let network = Architecture::chain(2, 16, 5);
        let case = Case { network, size: Size::new(640, 360), threads: 2 };
        let time = |cpu_ms| Times { cpu_ms, wall_ms: 2.0 * cpu_ms };
        let times = [time(30.0), time(10.0), time(20.0)];
        let swap = SwapTimes { first_ms: 0.5, again_ms: 0.1 };
        let row = Row::new(&case, true, Simd::Scalar, &times, 351.7, swap, None);
        assert_eq!((row.frame_ms, row.min_ms, row.wall_ms), (20.0, 10.0, 40.0));
        // 7632 multiplications for each of 230 400 samples.
        assert!((row.gflops - 175.84).abs() < 0.01, "{}", row.gflops);
        assert!((row.peak_share - 0.5).abs() < 1e-3 && (row.throughput_fps - 50.0).abs() < 1e-9);
        let report = Report::new(Machine::here(), Peaks::default(), vec![row]);
        assert!(report.table().contains("chain 5x16 x2") && report.table().contains("50%"));
        let json: serde_json::Value = serde_json::from_str(&json(&report, None).unwrap()).unwrap();
        assert_eq!(json["command"], "bench engine");
        assert_eq!(json["rows"][0]["threads"], 2);
    }
}
