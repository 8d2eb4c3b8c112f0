//! `windlass-lab bench hybrid`: our decoder's HR pictures against libvpx decoding pictures of that size.
//!
//! The house way of measuring is that of `bench vp9`:
//! streams as Chromium makes them, turns pass by pass, the least time of each frame, processor time
//! ([`measure`]) → report ([`report`]).

mod args;
mod measure;
mod report;

pub(super) use args::HybridArgs;

use anyhow::{Context, Result};

use self::report::Report;
use crate::bench::vp9::streams;
use crate::eval::report::Machine;
use crate::interrupt;
use crate::page::Contents;
use crate::progress::Progress;

/// Runs the bench and prints its report.
pub(super) fn run(args: &HybridArgs) -> Result<()> {
    let mut rows = Vec::new();
    let progress = Progress::new(args.cases.len(), "cases");
    for &case in &args.cases {
        if interrupt::pressed() {
            break;
        }
        let named = || format!("measuring {}", case.name());
        let made = args.streams(case);
        let mut streams = streams::collect(&made).with_context(named)?;
        let mut next = || streams.next().context("a stream is missing")?;
        let (low, high) = (next()?, next()?);
        progress.say(format!("{}: making anchors", case.name()));
        let bench = measure::Bench::new(&low, &high, case.shape().2).with_context(named)?;
        progress.say(format!("{}: {} passes", case.name(), args.passes));
        let times = bench.steady(args.passes).with_context(named)?;
        rows.push(report::steady(case, &times));
        for k in [1, 4, 8] {
            let late = bench.late(k, args.passes).with_context(named)?;
            rows.push(report::late(case, k, &late, &times));
        }
        progress.done();
    }
    let report = Report { command: "bench hybrid", machine: Machine::here(), rows };
    args.output.put(&report, progress.interrupted(), &report.table(), Contents::default)
}
