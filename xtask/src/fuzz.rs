//! The fuzz targets of `hybrid/fuzz`, where a nightly tool chain and cargo-fuzz are at hand.

use anyhow::{Result, bail};

use crate::process::{Cmd, Missing, step, which};

const FOLDER: &str = "hybrid/fuzz";
const TARGETS: [&str; 6] =
    ["decode", "parse", "anchor_message", "anchor_image", "anchor_stream", "hybrid"];
/// Streams that the seeds of the VP9 targets are cut from.
const STREAMS: [&str; 2] = ["../tests/fixtures", "../../tests/fixtures/vp9"];

/// Runs every target for `seconds`; [`Missing`] where the tools cannot be had.
pub fn run(seconds: u32) -> Result<()> {
    if which("rustup").is_none() || !nightly(["--version"]).succeeds() {
        bail!(Missing("Rust's nightly tool chain (`rustup toolchain install nightly`)".into()));
    }
    if !nightly(["fuzz", "--version"]).succeeds() {
        bail!(Missing("cargo-fuzz (`cargo install cargo-fuzz`)".into()));
    }
    step("Making seeds for the fuzz targets from streams");
    nightly(["run", "--release", "--quiet", "--example", "seeds", "--"]).args(STREAMS).run()?;
    let mut failed = Vec::new();
    for target in TARGETS {
        step(&format!("Fuzzing {target} for {seconds} seconds"));
        let run = nightly(["fuzz", "run", "--no-trace-compares", target, "--"])
            // The longest inputs take 40 ms; the rest is for machines with much else to do.
            .args(["-max_len=12300", "-timeout=60", "-rss_limit_mb=2048"])
            .arg(format!("-max_total_time={seconds}"))
            .run();
        if run.is_err() {
            failed.push(target);
        }
    }
    if !failed.is_empty() {
        bail!("fuzzing found faults in: {}; inputs are in {FOLDER}/artifacts", failed.join(", "));
    }
    Ok(())
}

/// The nightly tool chain's cargo, in the folder of the targets.
fn nightly<const N: usize>(args: [&str; N]) -> Cmd {
    Cmd::new("rustup").args(["run", "nightly", "cargo"]).args(args).dir(FOLDER)
}
