//! Builds the WebAssembly module: with rustup's target where it can be had, else with Debian's Rust, which ships the
//! source of the standard library and builds it.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::process::{Cmd, step, which};
use crate::{apt, root, rustup, target_dir};

/// Rust's target for WebAssembly.
const TARGET: &str = "wasm32-unknown-unknown";

/// A tool chain that can build for WebAssembly.
pub(crate) enum Toolchain {
    /// The cargo in use has the target.
    Rustup,
    /// Debian's `cargo-web` builds the standard library itself; the folder holds `rust-lld`.
    Debian {
        /// The folder with a linker by the name `rust-lld`.
        linker_dir: PathBuf,
    },
}

/// Finds a tool chain, installing one where there is none.
pub(crate) fn toolchain() -> Result<Toolchain> {
    if rustup::has(TARGET) {
        return Ok(Toolchain::Rustup);
    }
    if let Some(linker_dir) = debian() {
        return Ok(Toolchain::Debian { linker_dir });
    }
    if rustup::has_or_adds(TARGET) {
        return Ok(Toolchain::Rustup);
    }
    if which("rustup").is_some() {
        eprintln!("rustup cannot fetch the target here; Debian's Rust builds it instead.");
    }
    apt::install(apt::WASM_FALLBACK)?;
    match debian() {
        Some(linker_dir) => Ok(Toolchain::Debian { linker_dir }),
        None => {
            bail!("no WebAssembly tool chain: run `rustup target add {TARGET}`, then try again")
        }
    }
}

fn debian() -> Option<PathBuf> {
    let parts = ["/usr/bin/cargo", "/usr/bin/rustc"];
    if !parts.iter().all(|p| PathBuf::from(p).exists())
        || !Cmd::new("dpkg-query").args(["-W", "rust-web-src"]).succeeds()
    {
        return None;
    }
    // The linker is called by the name `rust-lld`. rustup's tool chain has it, as new as its Rust; else Debian's
    // generic `lld` stands in under that name.
    let sysroot = PathBuf::from(Cmd::new("rustc").args(["--print", "sysroot"]).output()?);
    let host = "lib/rustlib/x86_64-unknown-linux-gnu/bin";
    if sysroot.join(host).join("rust-lld").exists() {
        return Some(sysroot.join(host));
    }
    let dir = target_dir().join("wasm-linker");
    std::fs::create_dir_all(&dir).ok()?;
    let link = dir.join("rust-lld");
    if !link.exists() {
        std::os::unix::fs::symlink(which("lld")?, &link).ok()?;
    }
    Some(dir)
}

/// Builds `client-web/dist/windlass.wasm`.
pub(crate) fn build() -> Result<()> {
    apt::install(apt::BUILD)?;
    let toolchain = toolchain()?;
    step("Building the WebAssembly module");
    let out = target_dir().join("wasm");
    let args = [
        "build",
        "--quiet",
        "--profile",
        "wasm",
        "--target",
        TARGET,
        "--package",
        "windlass-wasm",
        "--target-dir",
    ];
    let flags = "-C target-feature=+simd128";
    match toolchain {
        Toolchain::Rustup => Cmd::cargo(args).arg(&out).env("RUSTFLAGS", flags).run()?,
        Toolchain::Debian { linker_dir } => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let path = std::env::join_paths(
                std::iter::once(linker_dir).chain(std::env::split_paths(&path)),
            )?;
            Cmd::new("/usr/bin/cargo")
                .args(args)
                .arg(&out)
                .args(["-Z", "build-std=std,panic_abort"])
                .env("PATH", path)
                .env("RUSTC", "/usr/bin/rustc")
                // The variable lets a stable compiler build its own standard library; nothing else unstable is used.
                .env("RUSTC_BOOTSTRAP", "1")
                .env("RUSTFLAGS", flags)
                .env_remove("RUSTUP_TOOLCHAIN")
                .env_remove("CARGO")
                .run()?;
        }
    }
    let built = out.join(TARGET).join("wasm/windlass_wasm.wasm");
    let dist = root().join("client-web/dist");
    std::fs::create_dir_all(&dist)?;
    let to = dist.join("windlass.wasm");
    if which("wasm-opt").is_some() {
        Cmd::new("wasm-opt")
            .args([
                "-O3",
                "--enable-simd",
                "--enable-bulk-memory",
                "--enable-sign-ext",
                "--enable-nontrapping-float-to-int",
                "--enable-mutable-globals",
                "-o",
            ])
            .arg(&to)
            .arg(&built)
            .run()
    } else {
        std::fs::copy(&built, &to).map(drop).with_context(|| format!("copying {}", built.display()))
    }
}
