//! The tests of what has kernels, as on processors with less than this one: by the binaries of the tests of all, with a cap on the
//! instruction set (`WINDLASS_MAX_ISA`).

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::clips::for_tests;
use crate::process::{Cmd, step};
use crate::{skipped, workers};

/// SSE4.2 has no forms of kernels: plain code is taken.
const CAPS: [&str; 2] = ["avx2", "sse4.2"];
/// Crates with kernels, or whose results come of them.
const CRATES: [&str; 5] =
    ["windlass-vp9", "windlass-hybrid", "windlass-htj2k", "windlass-sr", "windlass-enhancer"];

/// Tests of these that are left out: in real time, for which plain code is too slow; on an emulated GPU; without kernels; of
/// allocations, half a minute of a processor for the same answer.
const LEFT_OUT: [&str; 11] = [
    "gpu_anchors",
    "learn",
    "pipeline",
    "subjects",
    "worth",
    "cuda",
    "cuda_coder",
    "cuda_shared_coder",
    "cuda_wgmma",
    "gpus",
    "hybrid_allocations",
];

/// A module of the enhancer's unit tests, in real time too.
const LEFT_OUT_OF_UNITS: &str = "pipeline::";

/// A test's binary, and where it is run.
#[derive(Debug, PartialEq, Eq)]
struct Binary {
    package: String,
    name: String,
    folder: PathBuf,
    file: PathBuf,
}

/// Runs them; an error names those that failed.
pub(crate) fn run() -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        skipped::note("kernels with a cap", "this processor has no sets to cap");
        return Ok(());
    }
    step(&format!("Running the tests of kernels with at most {}", CAPS.join(", then ")));
    // The same build as of the tests of all, so that nothing is compiled again.
    let built = Cmd::cargo(["test", "--workspace", "--quiet", "--no-run"])
        .arg("--message-format=json")
        .output()
        .context("`cargo test --workspace --no-run` failed; run it to see why")?;
    let binaries = binaries(&built);
    for name in CRATES {
        ensure!(binaries.iter().any(|b| b.package == name), "{name} has no tests");
    }
    let runs: Vec<_> =
        CAPS.iter().flat_map(|cap| binaries.iter().map(move |b| (*cap, b))).collect();
    let failed: Vec<_> =
        workers::each(&runs, |(cap, binary)| test(cap, binary)).into_iter().flatten().collect();
    if failed.is_empty() {
        Ok(())
    } else {
        bail!("these tests fail with a cap on the instruction set: {}", failed.join("; "))
    }
}

/// What to run again where it fails.
fn test(cap: &str, binary: &Binary) -> Option<String> {
    let begun = Instant::now();
    let Binary { package, name, folder, file } = binary;
    let mut cmd = for_tests(Cmd::new(file)).arg("--quiet");
    if package == "windlass-enhancer" {
        cmd = cmd.args(["--skip", LEFT_OUT_OF_UNITS]);
    }
    let cmd = cmd
        .dir(folder)
        .env("CARGO_MANIFEST_DIR", folder)
        .env("CARGO_PKG_NAME", package)
        .env("WINDLASS_MAX_ISA", cap);
    let (passed, said) = match cmd.captured() {
        Ok(ended) => ended,
        Err(error) => (false, format!("{error:#}")),
    };
    if passed {
        eprintln!("{cap}: {package} {name} passed ({:.1} s)", begun.elapsed().as_secs_f64());
        return None;
    }
    eprintln!("{said}\n{cap}: {package} {name} FAILED");
    let kind = if is_library(package, name) { "--lib".into() } else { format!("--test {name}") };
    Some(format!("`WINDLASS_MAX_ISA={cap} cargo test --package {package} {kind}`"))
}

/// Cargo names a library's tests after the library.
fn is_library(package: &str, name: &str) -> bool {
    package.replace('-', "_") == name
}

#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The binaries of what cargo says that it built.
fn binaries(messages: &str) -> Vec<Binary> {
    let of = |line: &str| {
        let message: Message = serde_json::from_str(line).ok()?;
        message.profile?.test.then_some(())?;
        let (file, name) = (message.executable?, message.target?.name);
        let folder = message.manifest_path?.parent()?.to_owned();
        let package = package(&folder)?;
        (!LEFT_OUT.contains(&name.as_str())).then_some(())?;
        Some(Binary { package, name, folder, file })
    };
    messages.lines().filter_map(of).collect()
}

/// The crate of a folder, where it is one of ours that has kernels.
fn package(folder: &Path) -> Option<String> {
    let folders =
        ["hybrid/vp9", "hybrid", "hybrid/htj2k", "enhancer/sr", "enhancer"].into_iter().zip(CRATES);
    let within = folder.strip_prefix(crate::root()).ok()?;
    folders.into_iter().find(|(of, _)| within == Path::new(of)).map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_crates_with_kernels_are_found_in_what_cargo_says() {
        let line = |folder: &str, name: &str, test: bool, file: &str| {
            let manifest = crate::root().join(folder).join("Cargo.toml");
            serde_json::json!({
                "reason": "compiler-artifact",
                "manifest_path": manifest,
                "target": { "name": name },
                "profile": { "test": test },
                "executable": (!file.is_empty()).then_some(file),
            })
            .to_string()
        };
        let said = [
            line("hybrid", "windlass_hybrid", false, ""),
            line("hybrid", "windlass_hybrid", true, "/t/hybrid"),
            line("sfu", "windlass_sfu", true, "/t/sfu"),
            line("enhancer/sr", "cuda", true, "/t/cuda"),
            line("enhancer/sr", "windlass_sr", true, "/t/sr"),
            r#"{"reason":"build-finished","success":true}"#.into(),
        ];
        let found = binaries(&said.join("\n"));
        let names: Vec<_> = found.iter().map(|b| (b.package.as_str(), b.name.as_str())).collect();
        assert_eq!(names, [("windlass-hybrid", "windlass_hybrid"), ("windlass-sr", "windlass_sr")]);
        assert_eq!(found[1].folder, crate::root().join("enhancer/sr"));
    }
}
