//! The fuzz targets of the codec, the SFU and signalling, where a nightly tool chain and cargo-fuzz are at hand.

use anyhow::{Result, bail};

use crate::process::{Cmd, Missing, step, which};

/// A folder of fuzz targets, and what makes their first inputs.
struct Suite {
    folder: &'static str,
    targets: &'static [&'static str],
    seeds: Option<&'static [&'static str]>,
    max_bytes: u32,
}

const SUITES: [Suite; 4] = [
    Suite {
        folder: "hybrid/vp9/fuzz",
        targets: &["decode"],
        // Streams that seeds are cut from.
        seeds: Some(&["../tests/fixtures", "../../../tests/fixtures/vp9"]),
        max_bytes: 12_300,
    },
    Suite {
        folder: "hybrid/fuzz",
        targets: &["anchor_message", "anchor_image", "flow", "hybrid"],
        seeds: Some(&["../vp9/tests/fixtures", "../../tests/fixtures/vp9"]),
        max_bytes: 12_300,
    },
    Suite {
        folder: "sfu/fuzz",
        targets: &["stack", "datagrams", "media", "offers", "sctp"],
        seeds: Some(&[]),
        max_bytes: 16_000,
    },
    Suite { folder: "signaling/fuzz", targets: &["session"], seeds: None, max_bytes: 4_096 },
];

/// Runs every target for `seconds`; [`Missing`] where the tools cannot be had.
pub(crate) fn run(seconds: u32) -> Result<()> {
    if which("rustup").is_none() || !nightly(".", ["--version"]).succeeds() {
        bail!(Missing("Rust's nightly tool chain (`rustup toolchain install nightly`)".into()));
    }
    if !nightly(".", ["fuzz", "--version"]).succeeds() {
        bail!(Missing("cargo-fuzz (`cargo install cargo-fuzz`)".into()));
    }
    let mut failed = Vec::new();
    for Suite { folder, targets, seeds, max_bytes } in SUITES {
        if let Some(from) = seeds {
            step(&format!("Making seeds for the fuzz targets of {folder}"));
            let make = ["run", "--release", "--quiet", "--example", "seeds", "--"];
            nightly(folder, make).args(from).run()?;
        }
        for target in targets {
            step(&format!("Fuzzing {target} for {seconds} seconds"));
            let run = nightly(folder, ["fuzz", "run", "--no-trace-compares", target, "--"])
                // The longest inputs take 40 ms; the rest is for machines with much else to do.
                .args(["-timeout=60", "-rss_limit_mb=2048"])
                .arg(format!("-max_len={max_bytes}"))
                .arg(format!("-max_total_time={seconds}"))
                .run();
            if run.is_err() {
                failed.push(format!("{target} ({folder}/artifacts)"));
            }
        }
    }
    if !failed.is_empty() {
        bail!("fuzzing found faults; inputs are kept: {}", failed.join(", "));
    }
    Ok(())
}

/// The nightly tool chain's cargo, in a folder of targets.
fn nightly<const N: usize>(folder: &str, args: [&str; N]) -> Cmd {
    Cmd::new("rustup").args(["run", "nightly", "cargo"]).args(args).dir(folder)
}
