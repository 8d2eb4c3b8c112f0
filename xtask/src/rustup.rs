//! Rust's targets: whether the compiler in use has one, and adding it where rustup can fetch it.

use std::path::PathBuf;

use crate::process::{Cmd, step, which};

/// Whether the compiler has a target, after rustup has tried to add it.
pub(crate) fn has_or_adds(target: &str) -> bool {
    if !has(target) && which("rustup").is_some() {
        step(&format!("Adding Rust's target {target}"));
        Cmd::new("timeout").args(["120", "rustup", "target", "add", target]).succeeds();
    }
    has(target)
}

/// Whether the compiler in use has a standard library for `target`.
pub(crate) fn has(target: &str) -> bool {
    Cmd::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .is_some_and(|dir| PathBuf::from(dir).is_dir())
}
