//! The fuzz targets of the codec, the SFU and signalling: libFuzzer, which the crate `libfuzzer-sys` brings, in a build
//! that tells it what code an input reaches. Stable Rust has all of that; AddressSanitizer beside it takes a nightly
//! tool chain.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{Cmd, step, which};
use crate::{root, target_dir, workers};

/// The workspace with all fuzz targets.
const WORKSPACE: &str = "tests/fuzz";

/// A folder of fuzz targets, and the example with arguments that makes their first inputs.
struct Suite {
    folder: &'static str,
    targets: &'static [&'static str],
    seeds: Option<&'static [&'static str]>,
    max_bytes: u32,
}

/// The folders of fuzz targets.
const SUITES: [Suite; 4] = [
    Suite {
        folder: "hybrid/vp9/fuzz",
        targets: &["decode"],
        // The streams from which seeds are cut.
        seeds: Some(&["vp9_seeds", "../tests/fixtures", "../../../tests/fixtures/vp9"]),
        max_bytes: 12_300,
    },
    Suite {
        folder: "hybrid/fuzz",
        targets: &["anchor_message", "anchor_image", "flow", "hybrid"],
        seeds: Some(&["hybrid_seeds", "../vp9/tests/fixtures", "../../tests/fixtures/vp9"]),
        max_bytes: 12_300,
    },
    Suite {
        folder: "sfu/fuzz",
        targets: &["stack", "datagrams", "media", "offers", "sctp"],
        seeds: Some(&["sfu_seeds"]),
        max_bytes: 16_000,
    },
    Suite { folder: "signaling/fuzz", targets: &["session"], seeds: None, max_bytes: 4_096 },
];

/// The compiler flags with which libFuzzer learns what code an input reaches, as cargo-fuzz builds it. Traced
/// comparisons are left out: they cost more than they find.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Ccodegen-units=1";

/// The tool chain that builds the targets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// The tool chain in use: the targets find panics, wrong results and endless work.
    Stable,
    /// The nightly tool chain, with AddressSanitizer: the targets find wrong accesses to memory too.
    Sanitized,
}

impl Build {
    /// The nightly tool chain with AddressSanitizer where there is one, else the one in use.
    pub(crate) fn best() -> Build {
        let nightly = ["run", "nightly", "cargo", "--version"];
        if which("rustup").is_some() && Cmd::new("rustup").args(nightly).succeeds() {
            return Build::Sanitized;
        }
        crate::skipped::note(
            "AddressSanitizer while fuzzing",
            "no nightly tool chain (`rustup toolchain install nightly`)",
        );
        Build::Stable
    }

    /// Builds all targets and the examples that make their first inputs. Returns the folder with the programs.
    pub(crate) fn all(self) -> Result<PathBuf> {
        let Some(host) = Cmd::new("rustc").args(["--print", "host-tuple"]).output() else {
            bail!("`rustc --print host-tuple` says nothing; Rust 1.84 or newer is needed");
        };
        let args = ["build", "--quiet", "--locked", "--release", "--bins", "--examples"];
        let (cmd, flags) = match self {
            Build::Stable => (Cmd::cargo(args), COVERAGE.to_owned()),
            Build::Sanitized => {
                let nightly = Cmd::new("rustup").args(["run", "nightly", "cargo"]).args(args);
                (nightly, format!("{COVERAGE} -Zsanitizer=address"))
            }
        };
        step("Building the fuzz targets (the first time takes some minutes)");
        // With an explicit `--target`, programs that run during the build are built without these flags.
        cmd.args(["--target", &host])
            .dir(WORKSPACE)
            .env("RUSTFLAGS", flags)
            .env("CARGO_TARGET_DIR", self.target_dir())
            .env("CARGO_INCREMENTAL", "0")
            .run()?;
        Ok(self.target_dir().join(host).join("release"))
    }

    fn target_dir(self) -> PathBuf {
        let folder = target_dir().join(match self {
            Build::Stable => "fuzz",
            Build::Sanitized => "fuzz-sanitized",
        });
        // Targets run in folders of their own, so paths must be absolute.
        std::path::absolute(&folder).unwrap_or(folder)
    }
}

/// Lints the targets: with the workspace, and not only when they are built to run, which takes long.
pub(crate) fn lint() -> Result<()> {
    let clippy = Cmd::cargo(["clippy", "--quiet", "--locked", "--all-targets"]).dir(WORKSPACE);
    let target_dir = Build::Stable.target_dir();
    clippy.env("CARGO_TARGET_DIR", target_dir).args(["--", "-D", "warnings"]).run()
}

/// A target, and the folder in which it runs.
struct Target {
    name: &'static str,
    folder: &'static str,
    binary: PathBuf,
    max_bytes: u32,
}

/// Runs every target of a folder of [`Build::all`] for `seconds`, as many at once as there are CPUs.
pub(crate) fn run(seconds: u32, built: &Path) -> Result<()> {
    let mut targets = Vec::new();
    for Suite { folder, targets: names, seeds, max_bytes } in SUITES {
        if let Some([example, from @ ..]) = seeds {
            let make = Cmd::new(built.join("examples").join(example)).args(from).dir(folder);
            let (made, said) = make.captured()?;
            ensure!(made, "`{example}` could not make the first inputs of {folder}:\n{said}");
        }
        targets.extend(names.iter().map(|&name| {
            let binary = built.join(name);
            Target { name, folder, binary, max_bytes }
        }));
    }
    step(&format!("Fuzzing {} targets for {seconds} seconds each", targets.len()));
    let ended = workers::each(&targets, |target| target.fuzz(seconds));
    let fault = |ended: Result<Option<String>>| ended.unwrap_or_else(|e| Some(format!("{e:#}")));
    let faults: Vec<String> = ended.into_iter().filter_map(fault).collect();
    if !faults.is_empty() {
        bail!("fuzzing found faults:\n{}", faults.join("\n"));
    }
    Ok(())
}

impl Target {
    /// Fuzzes the target. Returns what was found, and how to see it again.
    fn fuzz(&self, seconds: u32) -> Result<Option<String>> {
        let Target { name, folder, binary, max_bytes } = self;
        let (corpus, artifacts) = (format!("corpus/{name}"), format!("artifacts/{name}/"));
        for made in [&corpus, &artifacts] {
            fs::create_dir_all(root().join(folder).join(made))?;
        }
        let (passed, said) = Cmd::new(binary)
            .dir(folder)
            // Inputs that failed once are tried again.
            .args([&corpus, &artifacts])
            // The longest inputs take 40 ms; the rest is for machines with much else to do.
            .args(["-timeout=60", "-rss_limit_mb=2048", "-print_final_stats=1"])
            .arg(format!("-artifact_prefix={artifacts}"))
            .arg(format!("-max_len={max_bytes}"))
            .arg(format!("-max_total_time={seconds}"))
            .captured()
            .with_context(|| format!("fuzzing {name}"))?;
        if passed {
            let inputs = executed(&said);
            let inputs = inputs.with_context(|| format!("{name} does not say what it tried"))?;
            eprintln!("{name}: {inputs} inputs, no fault");
            return Ok(None);
        }
        let lines: Vec<&str> = said.lines().collect();
        eprintln!("{}\n{name}: FAULT", lines[lines.len().saturating_sub(60)..].join("\n"));
        let again = format!("cd {folder} && {}", binary.display());
        Ok(Some(match input(&said) {
            Some(input) => {
                format!("{name}: the input is {folder}/{input}; again: `{again} {input}`")
            }
            None => format!("{name}: it left no input; again: `{again} {corpus}`"),
        }))
    }
}

/// The number of inputs that were tried, from libFuzzer's last words.
fn executed(said: &str) -> Option<&str> {
    let line =
        said.lines().rev().find(|line| line.starts_with("stat::number_of_executed_units:"))?;
    line.rsplit(' ').next()
}

/// The file of the input that showed a fault.
fn input(said: &str) -> Option<&str> {
    said.lines()
        .find_map(|line| line.split_once("Test unit written to "))
        .map(|(_, file)| file.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_inputs_are_read_from_what_the_fuzzer_says() {
        let said = "INFO: seed corpus: files: 3\nDone 812 runs in 3 second(s)\n\
            stat::number_of_executed_units: 812\nstat::average_exec_per_sec:     270\n";
        assert_eq!((executed(said), input(said)), (Some("812"), None));
        let fault = "thread panicked\n==7== ERROR: libFuzzer: deadly signal\n\
            artifact_prefix='artifacts/decode/'; Test unit written to artifacts/decode/crash-0a1b\nBase64: AA==\n";
        assert_eq!(input(fault), Some("artifacts/decode/crash-0a1b"));
    }
}
