//! The codec's tests as on a machine with NEON: built for aarch64 and run under emulation.

use anyhow::{Result, bail};

use crate::process::{Cmd, Missing, step, which};
use crate::{apt, rustup};

/// Rust's target for aarch64.
const TARGET: &str = "aarch64-unknown-linux-gnu";
/// The linker for aarch64.
const LINKER: &str = "aarch64-linux-gnu-gcc";
/// The emulator that runs programs for aarch64.
const EMULATOR: &str = "qemu-aarch64";

/// Runs the tests; [`Missing`] where the tools cannot be had.
pub(crate) fn run() -> Result<()> {
    let mut missing = Vec::new();
    if !rustup::has_or_adds(TARGET) {
        missing.push(format!("Rust's {TARGET} target (`rustup target add {TARGET}`)"));
    }
    if [LINKER, EMULATOR].iter().any(|tool| which(tool).is_none()) {
        apt::install(apt::NEON)?;
    }
    for (tool, package) in [(LINKER, "gcc-aarch64-linux-gnu"), (EMULATOR, "qemu-user")] {
        if which(tool).is_none() {
            missing.push(format!("`{tool}` (Debian's package {package})"));
        }
    }
    if !missing.is_empty() {
        bail!(Missing(missing.join(" and ")));
    }
    step("Running the codec's tests on an emulated machine with NEON");
    Cmd::cargo(["test", "--quiet", "--package", "windlass-vp9", "--package", "windlass-hybrid"])
        .args(["--target", TARGET, "--lib", "--test", "streams", "--test", "allocations"])
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
            format!("{EMULATOR} -L /usr/aarch64-linux-gnu"),
        )
        .run()
}
