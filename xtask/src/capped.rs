//! The tests of what has kernels, as on processors with less than this one: by the binaries of the tests of all, with a
//! cap on the instruction set (`WINDLASS_MAX_ISA`).

use anyhow::{Result, ensure};

use crate::binaries::Binary;
use crate::checks::Check;
use crate::skipped;

/// SSE4.2 has no forms of kernels: plain code is taken.
const CAPS: [&str; 2] = ["avx2", "sse4.2"];
/// Crates with kernels, or whose results come of them.
const CRATES: [&str; 5] =
    ["windlass-vp9", "windlass-hybrid", "windlass-htj2k", "windlass-sr", "windlass-enhancer"];

/// Tests of these that are left out: in real time, for which plain code is too slow; on an emulated GPU; without
/// kernels; of allocations, half a minute of a processor for the same answer.
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

/// One check for each of those tests and each cap.
pub(crate) fn checks(binaries: &[Binary]) -> Result<Vec<Check<'_>>> {
    if !cfg!(target_arch = "x86_64") {
        skipped::note("kernels with a cap", "this processor has no sets to cap");
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
            checks.push(Check::new(name, move || test(cap, binary)));
        }
    }
    Ok(checks)
}

fn is_of_kernels(binary: &Binary) -> bool {
    CRATES.contains(&binary.package.as_str()) && !LEFT_OUT.contains(&binary.name.as_str())
}

/// What to run again where it fails.
fn test(cap: &str, binary: &Binary) -> Option<String> {
    let units = binary.package == "windlass-enhancer";
    let again = binary.test(&format!("{cap}: "), |cmd| {
        let cmd = if units { cmd.args(["--skip", LEFT_OUT_OF_UNITS]) } else { cmd };
        cmd.env("WINDLASS_MAX_ISA", cap)
    })?;
    Some(format!("WINDLASS_MAX_ISA={cap} {again}"))
}
