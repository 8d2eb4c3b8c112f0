//! Every check and test, in the order in which a failure is cheapest.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::clips::for_tests;
use crate::process::{Cmd, step, which};
use crate::{
    advisories, apt, binaries, borders, capped, circles, fuzz, oldest, page, root, sentences,
    skipped, target_dir,
};

/// A part of the tests.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Formatting and lints of Rust and TypeScript.
    Lint,
    /// Unit, property and integration tests in Rust; those of kernels also with a cap on the instruction set.
    Rust,
    /// Each fuzz target on its inputs so far and on new ones.
    Fuzz,
    /// The unit tests of the SDK and its React components.
    Web,
    /// The WebAssembly module against the native decoder.
    Wasm,
    /// The Helm chart: rendered by Helm, held against Kubernetes' schemas, its command lines started.
    Chart,
    /// Calls between real browsers through the real server.
    E2e,
}

/// Where the React components are.
const REACT: &str = "client-web/react";

/// How long each fuzz target runs.
const FUZZ_SECONDS: u32 = 30;

/// Runs `parts`, or all of them where none is named, and says at the end what was skipped.
pub(crate) fn run(parts: &[Part]) -> Result<()> {
    skipped::begin()?;
    let ended = perform(parts);
    skipped::say();
    ended?;
    step("All checks passed");
    Ok(())
}

fn perform(parts: &[Part]) -> Result<()> {
    let wants = |part: Part| parts.is_empty() || parts.contains(&part);
    apt::install(apt::BUILD)?;
    apt::install(apt::TEST)?;
    page::build()?;
    if wants(Part::Lint) {
        step("Checking formatting and lints");
        lock_files()?;
        if Cmd::cargo(["fmt", "--version"]).succeeds() {
            Cmd::cargo(["fmt", "--all", "--check"]).run()?;
        } else {
            skipped::note("formatting", "no rustfmt (`rustup component add rustfmt`)");
        }
        if Cmd::cargo(["clippy", "--version"]).succeeds() {
            // The second is what `cargo xtask run` builds.
            let builds: [&[&str]; 2] = [
                &["--workspace", "--all-targets"],
                &["--package", "windlass", "--no-default-features"],
            ];
            for build in builds {
                let clippy = Cmd::cargo(["clippy", "--quiet"]).args(build);
                clippy.args(["--", "-D", "warnings"]).run()?;
            }
        } else {
            skipped::note("lints of Rust", "no clippy (`rustup component add clippy`)");
        }
        web_lints()?;
        step("Building the documentation");
        Cmd::cargo(["doc", "--quiet", "--locked", "--workspace", "--no-deps"])
            .arg("--document-private-items")
            .env("RUSTDOCFLAGS", "-D warnings")
            .run()?;
        if which("typos").is_some() {
            Cmd::new("typos").arg("--format=brief").run()?;
        } else {
            skipped::note("spelling", "no typos (`cargo install typos-cli`)");
        }
        if which("cargo-deny").is_some() {
            deny()?;
        } else {
            skipped::note("licences", "no cargo-deny (`cargo xtask deny` installs it)");
        }
        advisories::run(None)?;
        borders::check()?;
        circles::check()?;
        sentences::check()?;
        oldest::check()?;
    }
    if wants(Part::Rust) {
        binaries::run_all()?;
        capped::run()?;
    }
    if wants(Part::Fuzz) {
        fuzz::run(FUZZ_SECONDS, fuzz::Build::Stable)?;
    }
    if wants(Part::Web) {
        step("Running the tests of the SDK and its React components");
        npm("client-web", "test")?;
        page::npm_ci(REACT)?;
        npm(REACT, "test")?;
    }
    if wants(Part::Wasm) {
        wasm_twin()?;
    }
    if wants(Part::Chart) {
        chart()?;
    }
    if wants(Part::E2e) {
        e2e(&["ci"], &[])?;
        step("Taking the main path of each longer browser test");
        browsers(&["soak"], &["--test-only"], &[])?;
    }
    Ok(())
}

/// Each workspace's lock file must know all crates: a workspace that is built later would fail late.
fn lock_files() -> Result<()> {
    for workspace in advisories::WORKSPACES {
        let update = ["update", "--quiet", "--workspace", "--locked", "--manifest-path"];
        let manifest = root().join(workspace).join("Cargo.toml");
        if !Cmd::cargo(update).arg(&manifest).succeeds() {
            bail!(
                "{workspace}/Cargo.lock does not fit its crates: `cargo update --workspace --manifest-path {workspace}/Cargo.toml` mends it"
            );
        }
    }
    Ok(())
}

/// Licences and sources of all workspaces' crates.
pub(crate) fn deny() -> Result<()> {
    if which("cargo-deny").is_none() {
        step("Installing cargo-deny");
        Cmd::cargo(["install", "--quiet", "--locked", "cargo-deny"]).run()?;
    }
    step("Checking licences and sources of dependencies");
    for workspace in advisories::WORKSPACES {
        // By .cargo/deny.toml of the folder that this runs in: the flag that says so has moved between versions.
        Cmd::cargo(["deny", "--log-level", "error", "--manifest-path"])
            .arg(root().join(workspace).join("Cargo.toml"))
            .args(["check", "licenses", "bans", "sources"])
            .run()?;
    }
    Ok(())
}

/// The WebAssembly module must give the native decoder's pictures, bit for bit.
fn wasm_twin() -> Result<()> {
    step("Comparing the WebAssembly module with the native decoder");
    build_programs()?;
    for stream in ["realtime", "altref"] {
        let ivf = root().join(format!("hybrid/vp9/tests/fixtures/{stream}.ivf"));
        let native = Cmd::new(target_dir().join("debug/examples/twin"))
            .arg(&ivf)
            .output()
            .context("the native decoder's checksums could not be made (`twin` example)")?;
        let twin = target_dir().join(format!("{stream}-twin.json"));
        std::fs::write(&twin, native)?;
        let script = "client-web/wasm/check.mjs";
        let module = "client-web/dist/windlass.wasm";
        Cmd::new("node").args([script, module]).arg(&ivf).arg(&twin).run()?;
    }
    Ok(())
}

fn chart() -> Result<()> {
    page::npm_ci("tests/chart")?;
    step("Building the server for the chart's tests");
    build_programs()?;
    step("Rendering and checking the Helm chart");
    Cmd::new("node")
        .args(["--test", "chart.test.mjs"])
        .dir("tests/chart")
        .env("WINDLASS_BIN", target_dir().join("debug/windlass"))
        .run()
}

/// Types, lints, packages and the API reference of the SDK and its React components.
fn web_lints() -> Result<()> {
    npm("client-web", "typecheck")?;
    npm("client-web", "lint")?;
    page::npm_ci(REACT)?;
    npm(REACT, "typecheck")?;
    npm(REACT, "lint")?;
    page::npm_ci("client-web/reference")?;
    npm("client-web", "docs")
}

fn npm(folder: &str, script: &str) -> Result<()> {
    Cmd::new("npm").args(["run", "--silent", script]).dir(folder).run()
}

/// Runs test files of `tests/e2e` against the real server: those named, and all of the folders named.
pub(crate) fn e2e(tests: &[&str], env: &[(&str, String)]) -> Result<()> {
    page::npm_ci("tests/e2e")?;
    page::npm_ci("tests/e2e/bundlers")?;
    page::npm_ci(REACT)?;
    step("Building the server for the browser tests");
    build_programs()?;
    step("Running calls between real browsers");
    browsers(tests, &[], env)
}

/// Browser tests that no other test runs beside: they ask how good pictures are and how soon they come, of a browser that
/// encodes, decodes and rebuilds them, or they ask for enhanced pictures of a server that others load.
const ALONE: [&str; 20] = [
    "adapt",
    "call",
    "captured",
    "choice",
    "cluster",
    "codec",
    "demo",
    "frames",
    "gpu-network",
    "hd",
    "hostile",
    "impaired",
    "plain",
    "quality",
    "rebuilt",
    "screen",
    "spread",
    "stills",
    "webgpu",
    "whip-whep",
];

/// Runs test files as above, with these options of Node's test runner; what they need is built. Those that may run beside another
/// come first, two at a time: they wait for a server or a page most of the time.
fn browsers(tests: &[&str], options: &[&str], env: &[(&str, String)]) -> Result<()> {
    let mut files = Vec::new();
    for test in tests {
        let place = root().join("tests/e2e").join(test);
        if place.is_dir() {
            let entries = std::fs::read_dir(&place)?.collect::<std::io::Result<Vec<_>>>()?;
            files.extend(entries.into_iter().map(|entry| entry.path()));
        } else {
            files.push(place);
        }
    }
    files.sort();
    let (beside, alone): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| may_run_beside(file));
    for (files, at_once) in [(beside, 2), (alone, 1)] {
        if files.is_empty() {
            continue;
        }
        let mut cmd = for_tests(
            Cmd::new("node")
                .arg("--test")
                .arg(format!("--test-concurrency={at_once}"))
                .args(options)
                .args(&files)
                .dir("tests/e2e"),
        )
        .env("WINDLASS_BIN", target_dir().join("debug/windlass"));
        for (key, value) in env {
            cmd = cmd.env(key, value);
        }
        cmd.run()?;
    }
    Ok(())
}

/// Whether a file of browser tests bears another beside it. Of the longer tests none does.
fn may_run_beside(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::file_name).and_then(OsStr::to_str);
    let name = file.file_name().and_then(OsStr::to_str).and_then(|name| name.split('.').next());
    folder == Some("ci") && name.is_some_and(|name| !ALONE.contains(&name))
}

/// Builds all programs and examples: with the features of `cargo test --workspace`, so that nothing is compiled again after it.
pub(crate) fn build_programs() -> Result<()> {
    Cmd::cargo(["build", "--quiet", "--workspace", "--bins", "--examples"]).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_tests_that_measure_pictures_run_alone() {
        let ci = |name: &str| root().join("tests/e2e/ci").join(format!("{name}.test.mjs"));
        assert!(ALONE.iter().all(|name| ci(name).is_file() && !may_run_beside(&ci(name))));
        assert!(may_run_beside(&ci("people")));
        assert!(!may_run_beside(&root().join("tests/e2e/soak/lead.test.mjs")));
    }
}
