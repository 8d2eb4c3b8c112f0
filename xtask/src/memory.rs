//! The codec's tests where every access to memory is checked: its scalar forms in Miri, its SIMD
//! forms with AddressSanitizer. Both need Rust's nightly tool chain.

use anyhow::{Result, bail};

use crate::process::{Cmd, Missing, step, which};
use crate::target_dir;

/// Runs both; [`Missing`] where the tools cannot be had.
pub(crate) fn run() -> Result<()> {
    if which("rustup").is_none() || !nightly(["rustc", "--version"]).succeeds() {
        bail!(Missing("Rust's nightly tool chain (`rustup toolchain install nightly`)".into()));
    }
    if !nightly(["cargo", "miri", "--version"]).succeeds() {
        step("Adding Miri to Rust's nightly tool chain");
        let add = ["120", "rustup", "component", "add", "miri", "rust-src"];
        Cmd::new("timeout").args(add).args(["--toolchain", "nightly"]).succeeds();
    }
    address_sanitizer()?;
    if !nightly(["cargo", "miri", "--version"]).succeeds() {
        bail!(Missing("Miri (`rustup component add miri rust-src --toolchain nightly`)".into()));
    }
    miri()
}

fn address_sanitizer() -> Result<()> {
    let Some(host) = Cmd::new("rustc").args(["--print", "host-tuple"]).output() else {
        bail!("`rustc --print host-tuple` says nothing; Rust 1.84 or newer is needed");
    };
    step("Running the codec's tests with AddressSanitizer");
    // With an explicit `--target`, programs that run during the build are built without these flags.
    nightly(["cargo", "test", "--quiet", "-p", "windlass-vp9", "-p", "windlass-hybrid"])
        .args(["--target", &host, "--lib", "--test", "streams", "--test", "allocations"])
        .env("CARGO_TARGET_DIR", target_dir().join("sanitized"))
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .run()
}

fn miri() -> Result<()> {
    let test = |parts: &[&str]| {
        nightly(["cargo", "miri", "test", "--quiet", "--package", "windlass-vp9"])
            .args(parts)
            .env("CARGO_TARGET_DIR", target_dir().join("miri"))
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .env("PROPTEST_CASES", "2")
            .run()
    };
    step("Running the VP9 decoder's unit tests in Miri");
    // Comparing kernels takes hours in Miri; decoding runs them all.
    test(&["--lib", "--", "--skip", "kernels::", "--skip", "loop_filter::", "--skip", "simd::"])?;
    step("Decoding a tiny stream in Miri");
    test(&["--test", "streams", "a_tiny_stream"])
}

fn nightly<const N: usize>(args: [&str; N]) -> Cmd {
    Cmd::new("rustup").args(["run", "nightly"]).args(args)
}
