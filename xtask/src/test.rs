//! Every check and test, in the order in which a failure is cheapest.

use std::ffi::OsStr;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::binaries::{self, Binary};
use crate::checks::{self, Check};
use crate::clips::for_tests;
use crate::process::{Cmd, step, which};
use crate::{
    advisories, apt, borders, capped, circles, comments, fuzz, oldest, page, root, sentences,
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
/// Where the server SDK for Node is. It has no packages: what checks it is that of `client-web`.
const SERVER_SDK: &str = "signaling/sdk/node";

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
        comments::check()?;
        sentences::check()?;
        oldest::check()?;
    }
    beside_each_other(&wants)?;
    if !wants(Part::E2e) {
        return if wants(Part::Fuzz) { fuzzing() } else { Ok(()) };
    }
    // Calls between browsers leave half of the processors' time: fuzzing, and building for it, takes no more than that.
    thread::scope(|scope| {
        let fuzzed = wants(Part::Fuzz).then(|| {
            scope.spawn(|| {
                rustix::process::nice(19).context("the priority cannot be lowered")?;
                fuzzing()
            })
        });
        let called = calls();
        let fuzzed = fuzzed.map_or(Ok(()), |it| it.join().unwrap_or_else(|e| resume_unwind(e)));
        called.and(fuzzed)
    })
}

fn fuzzing() -> Result<()> {
    fuzz::run(FUZZ_SECONDS, fuzz::Build::Stable)
}

fn calls() -> Result<()> {
    e2e(&["ci"], &[])?;
    step("Taking the main path of each longer browser test");
    browsers(&["soak"], &["--test-only"], &[])
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

/// What bears other checks beside it: the tests in Rust, of the SDK, of the WebAssembly module and of the chart.
fn beside_each_other(wants: &impl Fn(Part) -> bool) -> Result<()> {
    let binaries = if wants(Part::Rust) { binaries::build()? } else { Vec::new() };
    let mut checks = Vec::new();
    if wants(Part::Rust) {
        let name = |binary: &Binary| binary.name.clone();
        checks.extend(binaries.iter().map(|b| Check::new(name(b), || b.test("", |cmd| cmd))));
        checks.extend(capped::checks(&binaries)?);
    }
    if wants(Part::Wasm) || wants(Part::Chart) {
        step("Building the programs");
        build_programs()?;
    }
    if wants(Part::Wasm) {
        checks.extend(["realtime", "altref"].map(|stream| {
            let name = format!("the WebAssembly module on {stream}");
            Check::new(name.clone(), move || wasm_twin(&name, stream))
        }));
    }
    if wants(Part::Chart) {
        page::npm_ci("tests/chart")?;
        checks.push(Check::new("the Helm chart", chart));
    }
    if wants(Part::Web) {
        page::npm_ci(REACT)?;
        let folders = [("the SDK", "client-web"), ("the React components", REACT)];
        checks.extend(folders.map(|(name, folder)| {
            Check::new(name, move || {
                let again = format!("cd {folder} && npm test");
                Cmd::new("npm").args(["run", "--silent", "test"]).dir(folder).check(name, again)
            })
        }));
    }
    if checks.is_empty() {
        return Ok(());
    }
    step(&format!("Running {} programs of tests", checks.len()));
    checks::run(checks)?;
    if wants(Part::Rust) {
        step("Running the documentation's tests");
        for_tests(Cmd::cargo(["test", "--workspace", "--quiet", "--doc"])).run()?;
    }
    Ok(())
}

/// The WebAssembly module must give the native decoder's pictures, bit for bit.
fn wasm_twin(name: &str, stream: &str) -> Option<String> {
    let again = || "cargo xtask test wasm".to_owned();
    let ivf = root().join(format!("hybrid/vp9/tests/fixtures/{stream}.ivf"));
    let native = Cmd::new(target_dir().join("debug/examples/twin")).arg(&ivf).output();
    let twin = target_dir().join(format!("{stream}-twin.json"));
    if native.is_none_or(|native| std::fs::write(&twin, native).is_err()) {
        eprintln!(
            "{name} FAILED: the native decoder's checksums could not be made (`twin` example)"
        );
        return Some(again());
    }
    let check =
        Cmd::new("node").args(["client-web/wasm/check.mjs", "client-web/dist/windlass.wasm"]);
    check.arg(&ivf).arg(&twin).check(name, again())
}

/// The chart: rendered by Helm, and held against Kubernetes' schemas.
fn chart() -> Option<String> {
    skipped::told(Cmd::new("node"))
        .args(["--test", "chart.test.mjs"])
        .dir("tests/chart")
        .env("WINDLASS_BIN", target_dir().join("debug/windlass"))
        .check("the Helm chart", "cargo xtask test chart".to_owned())
}

/// Types, lints, packages and the API reference of the SDK and its React components; types and lints of the server SDK
/// for Node.
fn web_lints() -> Result<()> {
    npm("client-web", "typecheck")?;
    npm("client-web", "lint")?;
    page::npm_ci(REACT)?;
    npm(REACT, "typecheck")?;
    npm(REACT, "lint")?;
    npm(SERVER_SDK, "typecheck")?;
    npm(SERVER_SDK, "lint")?;
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

/// How a file of browser tests bears others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Company {
    /// It waits for a server or a page most of the time, and asks for no picture in time.
    Any,
    /// It asks how good pictures are and how soon they come, and takes little of a processor.
    Light,
    /// It asks for that with a browser that encodes, decodes and rebuilds, or of a server that others load.
    None,
}

/// Files that bear any other beside them and last longest, which begin first.
const LONGEST: [&str; 3] = ["twin", "people", "bundlers"];

/// Files of [`Company::Light`].
const LIGHT: [&str; 6] = ["adapt", "choice", "cluster", "frames", "quality", "screen"];

/// Files of [`Company::None`], as all longer tests are.
const ALONE: [&str; 14] = [
    "call",
    "captured",
    "codec",
    "demo",
    "gpu-network",
    "hd",
    "hostile",
    "impaired",
    "plain",
    "rebuilt",
    "spread",
    "stills",
    "webgpu",
    "whip-whep",
];

/// Runs test files as above, with these options of Node's test runner; what they need is built. Those that bear others
/// run two at a time.
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
    files.sort_by_key(|file| (place(file), file.clone()));
    for (kind, at_once) in [(Company::Any, 2), (Company::Light, 2), (Company::None, 1)] {
        let files: Vec<_> = files.iter().filter(|file| company(file) == kind).collect();
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

/// The name of a file of browser tests, if it is one of every change's.
fn name(file: &Path) -> Option<&str> {
    let folder = file.parent().and_then(Path::file_name).and_then(OsStr::to_str);
    let name = file.file_name().and_then(OsStr::to_str).and_then(|name| name.split('.').next());
    name.filter(|_| folder == Some("ci"))
}

fn company(file: &Path) -> Company {
    match name(file) {
        Some(name) if LIGHT.contains(&name) => Company::Light,
        Some(name) if !ALONE.contains(&name) => Company::Any,
        _ => Company::None,
    }
}

/// Where a file stands in the order.
fn place(file: &Path) -> usize {
    checks::place(&LONGEST, name(file).unwrap_or_default())
}

/// Builds all programs and examples: with the features of `cargo test --workspace`, so that nothing is compiled again
/// after it.
pub(crate) fn build_programs() -> Result<()> {
    Cmd::cargo(["build", "--quiet", "--workspace", "--bins", "--examples"]).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_tests_that_measure_pictures_bear_no_heavy_ones() {
        let ci = |name: &str| root().join("tests/e2e/ci").join(format!("{name}.test.mjs"));
        let all = |names: &[&str], kind| {
            names.iter().all(|name| ci(name).is_file() && company(&ci(name)) == kind)
        };
        assert!(all(&ALONE, Company::None) && all(&LIGHT, Company::Light));
        assert!(all(&LONGEST, Company::Any));
        assert_eq!(company(&root().join("tests/e2e/soak/lead.test.mjs")), Company::None);
    }

    #[test]
    fn the_longest_browser_tests_begin_first() {
        assert!(place(Path::new("ci/twin.test.mjs")) < place(Path::new("ci/adapt.test.mjs")));
    }
}
