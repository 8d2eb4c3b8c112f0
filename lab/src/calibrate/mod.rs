//! `windlass-lab calibrate`: what parts take on this machine, for `windlass plan`.
//!
//! Short load tests on a server of our own, of real clients ([`runs`]): few and many publishers, few and many viewers,
//! two sizes, with enhancement and without, three budgets. Slopes between them are the costs ([`fit`](fit())). Beside
//! them the product's decoder and twin ([`frames`]), and its networks as a server measures them at its start. All is
//! CPU time, so that what else runs disturbs it little. [`check`] plays load tests of other sizes and holds them
//! against what the constants predict.

mod check;
mod fit;
mod frames;
#[cfg(test)]
mod gains;
mod runs;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use windlass_enhancer::EnhancerConfig;
use windlass_plan::{Constants, Machine, NetworkCost};

use self::fit::fit;
use self::runs::{Run, Taken};
use crate::eval::report::Machine as Here;
use crate::interrupt;
use crate::progress::Progress;

/// Arguments of `windlass-lab calibrate`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CalibrateArgs {
    /// Where the constants are written; with --check, those that are checked [default: those that the program brings]
    #[arg(required_unless_present = "check", value_name = "FILE")]
    file: Option<PathBuf>,

    /// Measure no constants: play load tests of sizes that none was fitted to, and say how far prediction and
    /// measurement differ. Fails if one differs by more than 20 %
    #[arg(long)]
    check: bool,

    /// Seconds of each load test
    #[arg(long, value_name = "S", default_value = "10", value_parser = clap::value_parser!(u32).range(3..=600))]
    seconds: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &CalibrateArgs) -> Result<()> {
    if args.check {
        let constants = match &args.file {
            Some(path) => Constants::read(path)?,
            None => Constants::shipped()?,
        };
        return check::run(&constants, args.seconds, args.json);
    }
    let path = args.file.as_ref().context("a file for the constants")?;
    let load_average = load_average();
    let progress = Progress::new(runs::FITTED.len() + 2, "measurements");
    progress.begin("networks")?;
    let networks = networks()?;
    progress.done();
    progress.begin("decoding")?;
    let frames = frames::measure()?;
    progress.done();
    let mut taken: Vec<(Run, Taken)> = Vec::new();
    for run in runs::FITTED {
        progress.begin(run.to_string())?;
        taken.push((run, run.play(args.seconds)?));
        progress.done();
        interrupt::check()?;
    }
    drop(progress);
    let Here { cpu, threads, platform } = Here::here();
    let build = if cfg!(debug_assertions) { "development" } else { "release" }.to_owned();
    let machine = Machine { cpu, threads, platform, build, load_average };
    let constants = fit(machine, today(), networks, &frames, &taken)?;
    constants.check().map_err(anyhow::Error::msg).context("what was measured cannot be right")?;
    let text = serde_json::to_string_pretty(&constants)? + "\n";
    std::fs::write(path, &text).with_context(|| format!("writing {}", path.display()))?;
    eprintln!("wrote {}; `windlass plan --constants {0}` uses it", path.display());
    if args.json {
        print!("{text}");
    }
    Ok(())
}

/// The networks of the smallest scale, the cheapest first, as a server measures them when it starts.
fn networks() -> Result<Vec<NetworkCost>> {
    let measured = EnhancerConfig::default().calibrate().context("measuring the networks")?;
    let least = measured.iter().map(|network| network.scale).min();
    let mut networks: Vec<NetworkCost> = measured
        .iter()
        .filter(|network| Some(network.scale) == least)
        .map(|network| NetworkCost {
            name: network.name.to_string(),
            ns_by_sample: 1e9 * network.per_pixel.as_secs_f64(),
        })
        .collect();
    networks.sort_by(|a, b| a.ns_by_sample.total_cmp(&b.ns_by_sample));
    Ok(networks)
}

/// The system's load average of the last minute.
fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

/// The date of today, as 2026-11-27.
fn today() -> String {
    let now = std::time::SystemTime::now();
    humantime::format_rfc3339_seconds(now)
        .to_string()
        .split('T')
        .next()
        .unwrap_or_default()
        .to_owned()
}
