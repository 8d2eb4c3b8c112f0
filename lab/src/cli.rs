//! The command line.

use clap::{Parser, Subcommand};

use crate::{bench, calibrate, compare, eval, link, loadtest, report, simulate};

/// Measures Windlass: its pictures against the original, its parts against their peers, its server under load.
#[derive(Debug, Parser)]
#[command(name = "windlass-lab", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the enhancement offline: the same pipeline on clips, against the original.
    Eval(Box<eval::EvalArgs>),
    /// Measure how fast the parts are, against their peers.
    Bench(bench::BenchArgs),
    /// Measure what parts of a server take on this machine, for `windlass plan`; or hold such constants against load
    /// tests.
    ///
    /// It takes some three minutes, and starts servers of its own. Leave the machine alone meanwhile.
    Calibrate(calibrate::CalibrateArgs),
    /// Show people pairs of pictures or clips without their names, and say what they prefer.
    Compare(compare::CompareArgs),
    /// Play scenarios of many streams through the scheduler, without pictures.
    Simulate(simulate::SimulateArgs),
    /// Stand between clients and a server's UDP port as an access link: its rate, queue, delay, jitter and losses.
    ///
    /// Start the server with --advertise and the address that this prints. The same links in simulated time:
    /// `windlass-lab bench links`.
    Link(link::LinkArgs),
    /// Load a running server with many calls over real WebRTC, and say what came of it.
    ///
    /// Publishers send recorded simulcast VP9 as browsers do and answer requests for key frames; subscribers take video
    /// and anchors, and say how long anchors took. All clients run in this process, from one core if need be; the
    /// server is another one. Figures of the server are differences of its /metrics. Ctrl-C ends the run early, with
    /// its report.
    ///
    /// Each room has --per-room publishers and one or more subscribers who take all of its tracks. Subscribers ask for
    /// the enhanced rung of the best layer below f that is sent; with `q` alone, the default, or `h` alone, anchors are
    /// made by super-resolution; where the next larger layer is sent too, of that layer's pixels.
    Loadtest(Box<loadtest::LoadtestArgs>),
    /// Write the tables of docs/benchmarks.md and lab/notes from the figures in lab/results, or print one file's.
    Report(report::ReportArgs),
}

#[cfg(test)]
mod papers_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
