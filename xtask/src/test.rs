//! Every check and test, in the order in which a failure is cheapest.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use crate::binaries::{self, Binary};
use crate::checks::{self, Check};
use crate::clips::for_tests;
use crate::process::{Cmd, step, which};
use crate::{
    advisories, apt, borders, capped, circles, comments, fuzz, oldest, page, root, sentences,
    skipped, spelling, target_dir,
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

/// The folder of the React components.
const REACT: &str = "client-web/react";
/// The folder of the server SDK for Node. It has no packages of its own: those of `client-web` check it.
const SERVER_SDK: &str = "signaling/sdk/node";

/// The crates whose tests only compute: codecs, networks, and the choice of anchors.
const COMPUTING: [&str; 10] = [
    "windlass-htj2k",
    "windlass-hybrid",
    "windlass-netem",
    "windlass-network",
    "windlass-scheduler",
    "windlass-scores",
    "windlass-sr",
    "windlass-tests",
    "windlass-vp9",
    "windlass-vpx",
];
/// Tests of the server in real time that mostly wait: each takes a small part of a CPU.
const WAITING: [&str; 11] = [
    "admin", "data", "docs", "doctor", "drain", "privacy", "public", "rights", "sdks", "tls",
    "traces",
];
/// How long each fuzz target runs, in seconds.
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
        comments::check()?;
        sentences::check()?;
        borders::check()?;
        circles::check()?;
        main_paths()?;
        spelling::check()?;
        if Cmd::cargo(["fmt", "--version"]).succeeds() {
            Cmd::cargo(["fmt", "--all", "--check"]).run()?;
        } else {
            skipped::note("formatting", "no rustfmt (`rustup component add rustfmt`)");
        }
        if Cmd::cargo(["clippy", "--version"]).succeeds() {
            // The second build is what `cargo xtask run` builds.
            let builds: [&[&str]; 2] = [
                &["--workspace", "--all-targets"],
                &["--package", "windlass", "--no-default-features"],
            ];
            for build in builds {
                let clippy = Cmd::cargo(["clippy", "--quiet"]).args(build);
                clippy.args(["--", "-D", "warnings"]).run()?;
            }
            fuzz::lint()?;
        } else {
            skipped::note("lints of Rust", "no clippy (`rustup component add clippy`)");
        }
        web_lints()?;
        step("Building the documentation");
        Cmd::cargo(["doc", "--quiet", "--locked", "--workspace", "--no-deps"])
            .arg("--document-private-items")
            .env("RUSTDOCFLAGS", "-D warnings")
            .run()?;
        if which("cargo-deny").is_some() {
            deny()?;
        } else {
            skipped::note("licences", "no cargo-deny (`cargo xtask deny` installs it)");
        }
        advisories::run(None)?;
        oldest::check()?;
    }
    let binaries = if wants(Part::Rust) { binaries::build()? } else { Vec::new() };
    beside_each_other(&wants, &binaries)?;
    if !wants(Part::E2e) {
        return patient(&wants, &binaries);
    }
    prepare_calls()?;
    // Building and fuzzing take memory bandwidth at any priority: files of browser tests that run alone run after it.
    thread::scope(|scope| {
        let patient = scope.spawn(|| {
            checks::give_way()?;
            patient(&wants, &binaries)
        });
        let called = calls(&[Company::Any, Company::Light]);
        let patient = patient.join().unwrap_or_else(|e| resume_unwind(e));
        called.and(patient)
    })?;
    calls(&[Company::None])
}

/// Checks that no clock ends: fuzzing, and the tests of kernels with a cap on the instruction set.
fn patient(wants: &(impl Fn(Part) -> bool + Sync), binaries: &[Binary]) -> Result<()> {
    if wants(Part::Fuzz) {
        fuzz::run(FUZZ_SECONDS, fuzz::Build::Stable)?;
    }
    if wants(Part::Rust) {
        step("Running the tests of kernels with a cap on the instruction set");
        checks::run(capped::checks(binaries)?)?;
    }
    Ok(())
}

/// An option that ends a file of browser tests after half an hour, or `times` that: a browser that died can leave one
/// waiting without end. The tests have no limits of their own, as they take several times as long on CPUs that have
/// other things to do.
pub(crate) fn bound(times: u32) -> String {
    format!("--test-timeout={}", 1_800_000 * u64::from(times))
}

/// Runs the browser tests of `ci`, and the main path of each longer one: the files that run in this company.
fn calls(companies: &[Company]) -> Result<()> {
    step("Running calls between real browsers");
    browsers(&["ci"], companies, &[&bound(1)], &[])?;
    step("Taking the main path of each longer browser test");
    browsers(&["soak"], companies, &[&bound(1), "--test-only"], &[])
}

/// Checks that each longer file of browser tests names a main path, which `calls` takes.
fn main_paths() -> Result<()> {
    for entry in root().join("tests/e2e/soak").read_dir()? {
        let path = entry?.path();
        let name = path.display().to_string();
        if name.ends_with(".test.mjs") && !std::fs::read_to_string(&path)?.contains("only: ") {
            bail!(
                "{name} has no main path: give `only: true` to one of its tests, and to its `describe`"
            );
        }
    }
    Ok(())
}

/// Checks that each workspace's lock file knows all crates: a workspace that is built later would fail late.
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

/// Checks the licences and sources of all workspaces' crates.
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

/// Runs the checks that can run beside each other: the tests in Rust, of the SDK, of the WebAssembly module and of
/// the chart.
fn beside_each_other(wants: &impl Fn(Part) -> bool, binaries: &[Binary]) -> Result<()> {
    let mut checks = Vec::new();
    if wants(Part::Rust) {
        let known = binaries.iter().filter(|binary| waits(binary)).count();
        ensure!(known == WAITING.len(), "a test of {WAITING:?} is no more: leave its name out");
        let name = |binary: &Binary| binary.name.clone();
        checks.extend(binaries.iter().map(|binary| {
            let check = Check::new(name(binary), || binary.test("", |cmd| cmd));
            if computes(binary) {
                check.patient()
            } else if waits(binary) {
                check.waiting()
            } else {
                check
            }
        }));
    }
    if wants(Part::Wasm) || wants(Part::Chart) {
        step("Building the programs");
        build_programs()?;
    }
    if wants(Part::Wasm) {
        checks.extend(["realtime", "altref"].map(|stream| {
            let name = format!("the WebAssembly module on {stream}");
            Check::new(name.clone(), move || wasm_twin(&name, stream)).patient()
        }));
    }
    if wants(Part::Chart) {
        page::npm_ci("tests/chart")?;
        checks.push(Check::new("the Helm chart", chart).patient());
    }
    if wants(Part::Web) {
        page::npm_ci(REACT)?;
        let folders = [("the SDK", "client-web"), ("the React components", REACT)];
        checks.extend(folders.map(|(name, folder)| {
            Check::new(name, move || {
                let again = format!("cd {folder} && npm test");
                Cmd::new("npm").args(["run", "--silent", "test"]).dir(folder).check(name, again)
            })
            .patient()
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

/// Whether a test only computes: those of [`COMPUTING`], and the laboratory's simulations. The shared coder does not:
/// it gives up a GPU that is silent for three seconds, the emulated one too.
fn computes(binary: &Binary) -> bool {
    let of = COMPUTING.contains(&binary.package.as_str()) || binary.name == "windlass-lab";
    of && binary.name != "cuda_shared_coder"
}

/// Whether a test mostly waits.
fn waits(binary: &Binary) -> bool {
    binary.package == "windlass" && WAITING.contains(&binary.name.as_str())
}

/// Checks that the WebAssembly module makes the native decoder's pictures, bit for bit.
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

/// Tests the chart: rendered by Helm, and checked against Kubernetes' schemas.
fn chart() -> Option<String> {
    skipped::told(Cmd::new("node"))
        .args(["--test", "chart.test.mjs"])
        .dir("tests/chart")
        .env("WINDLASS_BIN", target_dir().join("debug/windlass"))
        .check("the Helm chart", "cargo xtask test chart".to_owned())
}

/// Checks types, lints, packages and the API reference of the SDK and its React components; types and lints of the
/// server SDK for Node.
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

/// Runs test files of `tests/e2e` against the real server, with these options of Node's test runner: the files named,
/// and all of the folders named.
pub(crate) fn e2e(tests: &[&str], options: &[&str], env: &[(&str, String)]) -> Result<()> {
    prepare_calls()?;
    step("Running calls between real browsers");
    browsers(tests, &[Company::Any, Company::Light, Company::None], options, env)
}

/// Installs and builds what browser tests need.
fn prepare_calls() -> Result<()> {
    page::npm_ci("tests/e2e")?;
    page::npm_ci("tests/e2e/bundlers")?;
    page::npm_ci(REACT)?;
    step("Building the server for the browser tests");
    build_programs()
}

/// How a file of browser tests can run beside others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Company {
    /// Beside any other file: it waits for a server or a page most of the time, and needs no picture in time.
    Any,
    /// Beside light files: it tests how good pictures are and how soon they come, and takes little CPU time.
    Light,
    /// Alone: it tests pictures with a browser that encodes, decodes and rebuilds, or with a server that others load.
    None,
}

/// Lines by which a file of browser tests says in its head how it runs; one without them runs alone.
const COMPANY: [(&str, Company); 3] = [
    ("// Runs first, beside any file.", Company::Any),
    ("// Runs beside any file.", Company::Any),
    ("// Runs beside light files.", Company::Light),
];

/// Runs those of test files, as [`e2e`] does, that run in one of these companies. Files that can run beside others run
/// two at a time.
fn browsers(
    tests: &[&str],
    companies: &[Company],
    options: &[&str],
    env: &[(&str, String)],
) -> Result<()> {
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
    let files = files.into_iter().map(|file| Ok((place(&file)?, file)));
    let mut files = files.collect::<Result<Vec<_>>>()?;
    files.sort();
    // A failure in one company says nothing of the others.
    let mut failed = Ok(());
    for &kind in companies {
        let at_once = if kind == Company::None { 1 } else { 2 };
        let fit = |place: &usize| {
            COMPANY.get(*place).map_or(Company::None, |(_, company)| *company) == kind
        };
        let files: Vec<_> =
            files.iter().filter(|(place, _)| fit(place)).map(|(_, file)| file).collect();
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
        failed = failed.and(cmd.run());
    }
    failed
}

/// Which line of [`COMPANY`] stands in the comment that a file begins with; their number: none.
fn place(file: &Path) -> Result<usize> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//")).collect();
    Ok(COMPANY.iter().position(|(line, _)| head.contains(line)).unwrap_or(COMPANY.len()))
}

/// Builds all programs and examples, with the features of `cargo test --workspace`, so that nothing is compiled again
/// after it.
pub(crate) fn build_programs() -> Result<()> {
    Cmd::cargo(["build", "--quiet", "--workspace", "--bins", "--examples"]).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_test_says_itself_what_it_may_run_beside() {
        let place = |file: &str| place(&root().join("tests/e2e").join(file)).unwrap();
        assert_eq!(place("soak/twin.test.mjs"), 0, "it begins first");
        assert_eq!(place("ci/rights.test.mjs"), 1);
        assert_eq!(place("ci/quality.test.mjs"), 2);
        for alone in ["soak/stills.test.mjs", "soak/lead.test.mjs"] {
            assert_eq!(place(alone), COMPANY.len(), "{alone}");
        }
    }
}
