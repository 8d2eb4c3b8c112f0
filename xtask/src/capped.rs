//! Runs the tests of crates with kernels as on CPUs with smaller instruction sets than this one. It uses the binaries
//! of all tests, with a cap on the instruction set (`WINDLASS_MAX_ISA`).

use anyhow::{Result, ensure};

use crate::binaries::Binary;
use crate::checks::Check;
use crate::process::Cmd;
use crate::skipped;

/// The caps, and the crates with kernels, or whose results depend on them, whose tests run with each. Only networks
/// have forms for AVX-512, so that a cap to AVX2 changes nothing elsewhere. Nothing has forms for SSE4.2: plain code
/// runs.
const CAPS: [(&str, &[&str]); 2] = [
    ("avx2", &["windlass-sr", "windlass-enhancer"]),
    (
        "sse4.2",
        &["windlass-vp9", "windlass-hybrid", "windlass-htj2k", "windlass-sr", "windlass-enhancer"],
    ),
];

/// Test binaries of these crates that are left out: tests in real time, for which plain code is too slow; tests on an
/// emulated GPU; tests without kernels; and tests of allocations, which take half a minute of CPU time for the same
/// answer.
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

/// A check for each of those tests and each cap.
pub(crate) fn checks(binaries: &[Binary]) -> Result<Vec<Check<'_>>> {
    if !cfg!(target_arch = "x86_64") {
        skipped::note("kernels with a cap", "this CPU has no sets to cap");
        return Ok(Vec::new());
    }
    let mut checks = Vec::new();
    for (cap, crates) in CAPS {
        for name in crates {
            let mut of_crate = binaries.iter().filter(|b| is_of_kernels(b, name)).peekable();
            ensure!(of_crate.peek().is_some(), "{name} has no tests");
            checks.extend(of_crate.map(|binary| {
                let name = format!("{cap}: {}", binary.name);
                Check::new(name, move || test(cap, binary)).patient()
            }));
        }
    }
    Ok(checks)
}

fn is_of_kernels(binary: &Binary, package: &str) -> bool {
    binary.package == package && !LEFT_OUT.contains(&binary.name.as_str())
}

/// Runs a test with a cap. Returns the command to run again if it fails.
fn test(cap: &str, binary: &Binary) -> Option<String> {
    // Kernels of all sets are compared without a cap; with one there are fewer to compare.
    let capped = |cmd: Cmd| cmd.env("WINDLASS_MAX_ISA", cap).env("PROPTEST_CASES", "64");
    let again = binary.test(&format!("{cap}: "), capped)?;
    Some(format!("WINDLASS_MAX_ISA={cap} {again}"))
}
