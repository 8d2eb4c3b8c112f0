//! Runs the tests of crates with kernels as on CPUs with smaller instruction sets than this one. It uses the binaries
//! of all tests, with a cap on the instruction set (`WINDLASS_MAX_ISA`).

use anyhow::{Result, ensure};

use crate::binaries::Binary;
use crate::checks::Check;
use crate::skipped;

/// The caps. Kernels have no forms for SSE4.2, so it runs plain code.
const CAPS: [&str; 2] = ["avx2", "sse4.2"];
/// Crates with kernels, or whose results depend on them.
const CRATES: [&str; 5] =
    ["windlass-vp9", "windlass-hybrid", "windlass-htj2k", "windlass-sr", "windlass-enhancer"];

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
    let of_kernels: Vec<_> = binaries.iter().filter(|b| is_of_kernels(b)).collect();
    for name in CRATES {
        ensure!(of_kernels.iter().any(|b| b.package == name), "{name} has no tests");
    }
    let mut checks = Vec::new();
    for cap in CAPS {
        for &binary in &of_kernels {
            let name = format!("{cap}: {}", binary.name);
            checks.push(Check::new(name, move || test(cap, binary)).patient());
        }
    }
    Ok(checks)
}

fn is_of_kernels(binary: &Binary) -> bool {
    CRATES.contains(&binary.package.as_str()) && !LEFT_OUT.contains(&binary.name.as_str())
}

/// Runs a test with a cap. Returns the command to run again if it fails.
fn test(cap: &str, binary: &Binary) -> Option<String> {
    let again = binary.test(&format!("{cap}: "), |cmd| cmd.env("WINDLASS_MAX_ISA", cap))?;
    Some(format!("WINDLASS_MAX_ISA={cap} {again}"))
}
