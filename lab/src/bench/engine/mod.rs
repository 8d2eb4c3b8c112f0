//! `windlass-lab bench engine`: networks on the CPU, on every instruction set and type of number that it has.
//!
//! Source: `lab/reports.md`. What the CPU can do at most is measured in the same passes, by multiplications in
//! registers alone, and each network stands beside that ([`measure`]). Weights are the built-in ones where the network
//! is built in, else random: they say nothing about quality, and the same about speed. What trained networks gain
//! stands beside what they cost with `--quality` ([`quality`]); which of them the server would choose here is said with
//! `--choose` ([`choose`]).

mod args;
#[cfg(target_arch = "x86_64")]
mod bytes;
mod choose;
mod measure;
mod quality;
mod report;
mod sustain;

pub(super) use args::EngineArgs;

use anyhow::{Context, Result};

use self::report::Report;
use crate::eval::report::Machine;
use crate::page::Contents;
use crate::progress::Progress;

/// Runs the bench and prints its report.
pub(super) fn run(args: &EngineArgs) -> Result<()> {
    if !args.quality.quality.is_empty() {
        return quality::run(args);
    }
    if !args.choose.choose.is_empty() {
        return choose::run(args);
    }
    let mut peaks = measure::Peaks::default();
    let mut rows = Vec::new();
    let cases = args.cases();
    let progress = Progress::new(cases.len(), "cases");
    for case in cases {
        if progress.begin(case).is_err() {
            break;
        }
        rows.extend(measure::rows(&case, args, &mut peaks).with_context(|| case.to_string())?);
        progress.done();
    }
    let report = Report::new(Machine::here(), peaks, rows);
    args.output.put(&report, progress.interrupted(), &report.table(), Contents::default)
}
