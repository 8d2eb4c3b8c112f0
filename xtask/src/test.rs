//! Every check and test, in the order in which a failure is cheapest.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;

use crate::binaries::{self, Binary};
use crate::checks::{self, Check};
use crate::clips::for_tests;
use crate::process::{Cmd, step, which};
use crate::{
    advisories, apt, borders, calls, capped, circles, comments, fuzz, oldest, page, root,
    sentences, sizes, skipped, spelling, target_dir,
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

/// The folder of the server SDK for Node. It has no packages of its own: those of `client-web` check it.
const SERVER_SDK: &str = "signaling/sdk/node";

/// Tests that only compute, by crate and name; the empty name: all of that crate.
const COMPUTING: [(&str, &str); 22] = [
    ("windlass-enhancer", "enhanced"),
    ("windlass-enhancer", "subjects"),
    ("windlass-files", ""),
    ("windlass-htj2k", ""),
    ("windlass-hybrid", ""),
    ("windlass-lab", "bench_quality"),
    ("windlass-lab", "windlass-lab"),
    ("windlass-metrics", ""),
    ("windlass-netem", ""),
    ("windlass-network", ""),
    ("windlass-plan", ""),
    ("windlass-protocol", ""),
    ("windlass-scheduler", ""),
    ("windlass-scores", ""),
    ("windlass-skips", ""),
    ("windlass-sr", ""),
    ("windlass-tests", ""),
    ("windlass-testkit", ""),
    ("windlass-types", ""),
    ("windlass-vp9", ""),
    ("windlass-vpx", ""),
    ("xtask", ""),
];
/// Tests of those crates that must come in time: the shared coder gives up a GPU that is silent, the emulated one too.
const IN_TIME: [(&str, &str); 1] = [("windlass-sr", "cuda_shared_coder")];
/// Tests of the server in real time that mostly wait, by crate and name: but for `attack`, each takes a small part of a
/// CPU.
const WAITING: [(&str, &str); 27] = [
    ("windlass", "admin"),
    ("windlass", "attack"),
    ("windlass", "cli"),
    ("windlass", "closed"),
    ("windlass", "data"),
    ("windlass", "deploy"),
    ("windlass", "docs"),
    ("windlass", "doctor"),
    ("windlass", "drain"),
    ("windlass", "origins"),
    ("windlass", "privacy"),
    ("windlass", "public"),
    ("windlass", "reload"),
    ("windlass", "rights"),
    ("windlass", "sdks"),
    ("windlass", "systemd"),
    ("windlass", "tls"),
    ("windlass", "traces"),
    ("windlass", "windlass"),
    ("windlass-admin", ""),
    ("windlass-cluster", ""),
    ("windlass-doctor", ""),
    ("windlass-logging", ""),
    ("windlass-page", ""),
    ("windlass-public", ""),
    ("windlass-record", ""),
    ("windlass-signaling", ""),
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
        // The checks of TypeScript and of advisories wait for the network and for one CPU.
        thread::scope(|scope| {
            let web = scope.spawn(|| web_lints().and_then(|()| advisories::run(None)));
            let rust = lints();
            match (rust, web.join().unwrap_or_else(|e| resume_unwind(e))) {
                (Err(rust), Err(web)) => bail!("{rust:#}\n{web:#}"),
                (rust, web) => rust.and(web),
            }
        })?;
    }
    let binaries = if wants(Part::Rust) { binaries::build()? } else { Vec::new() };
    if [Part::Wasm, Part::Chart, Part::E2e].into_iter().any(wants) {
        step("Building the programs");
        binaries::build_programs()?;
    }
    if wants(Part::E2e) {
        calls::install()?;
    }
    let fuzz_targets = OnceLock::new();
    let mut checks = Vec::new();
    if wants(Part::Rust) {
        checks.extend(of_rust(&binaries)?);
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
        checks.extend(of_web()?);
    }
    if wants(Part::Fuzz) {
        let again = "cargo xtask test fuzz";
        let build = || {
            let built = fuzz::Build::Stable.all().map(|folder| drop(fuzz_targets.set(folder)));
            told(again, built)
        };
        checks.push(Check::new("the fuzz targets' build", build).patient());
        // Without them their build has told why.
        let fuzz = || fuzz_targets.get().and_then(|at| told(again, fuzz::run(FUZZ_SECONDS, at)));
        checks.push(Check::new("fuzzing", fuzz).in_caches());
    }
    if wants(Part::E2e) {
        let again = "cargo xtask test e2e";
        checks.push(Check::new("browsers", || told(again, calls::beside_any())).behind());
        checks.push(Check::new("light browsers", || told(again, calls::beside_light())).after());
        checks.push(Check::new("browsers alone", || told(again, calls::alone())).alone());
    }
    if !checks.is_empty() {
        step(&format!("Running {} programs of tests", checks.len()));
    }
    checks::run(checks)
}

/// Checks formatting, texts, borders and lints of Rust.
fn lints() -> Result<()> {
    lock_files()?;
    comments::check()?;
    sentences::check()?;
    borders::check()?;
    circles::check()?;
    sizes::check()?;
    calls::main_paths()?;
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
            let clippy = Cmd::cargo(["clippy", "--locked", "--quiet"]).args(build);
            clippy.args(["--", "-D", "warnings"]).run()?;
        }
        fuzz::lint()?;
    } else {
        skipped::note("lints of Rust", "no clippy (`rustup component add clippy`)");
    }
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
    oldest::check()
}

/// Prints the error of a step that failed, and returns the command to run it again.
fn told(again: &str, ended: Result<()>) -> Option<String> {
    let error = ended.err()?;
    eprintln!("{error:#}");
    Some(again.to_owned())
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

/// The tests in Rust: all of them, those of kernels with a cap on the instruction set, and the documentation's.
fn of_rust(binaries: &[Binary]) -> Result<Vec<Check<'_>>> {
    for (package, name) in WAITING.into_iter().chain(COMPUTING).chain(IN_TIME) {
        let known = binaries.iter().any(|binary| of(binary, package, name));
        ensure!(known, "{package} has no test {name} any more: leave it out");
    }
    let mut checks: Vec<_> = binaries.iter().map(check).collect();
    checks.extend(capped::checks(binaries)?);
    let documentation = || {
        let cmd = for_tests(Cmd::cargo(["test", "--locked", "--workspace", "--quiet", "--doc"]));
        cmd.check("the documentation's tests", "cargo test --workspace --doc".to_owned())
    };
    checks.push(Check::new("the documentation's tests", documentation).patient());
    Ok(checks)
}

/// The check that runs a test, in its lane.
fn check(binary: &Binary) -> Check<'_> {
    let check = Check::new(binary.name.clone(), || binary.test("", |cmd| cmd));
    let is = |list: &[(&str, &str)]| list.iter().any(|(p, n)| of(binary, p, n));
    match () {
        () if is(&IN_TIME) => check,
        () if is(&COMPUTING) => check.patient(),
        () if is(&WAITING) => check.waiting(),
        () => check,
    }
}

/// Whether a test is of this crate and has this name; the empty name: any.
fn of(binary: &Binary, package: &str, name: &str) -> bool {
    binary.package == package && (name.is_empty() || binary.name == name)
}

/// The unit tests of the SDK and its React components.
fn of_web() -> Result<[Check<'static>; 2]> {
    page::npm_ci(page::REACT)?;
    Ok([("the SDK", "client-web"), ("the React components", page::REACT)].map(|(name, folder)| {
        Check::new(name, move || {
            let again = format!("cd {folder} && npm test");
            Cmd::new("npm").args(["run", "--silent", "test"]).dir(folder).check(name, again)
        })
        .patient()
    }))
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

/// Tests the chart: rendered by Helm, checked against Kubernetes' schemas, and installed where there is a Kubernetes.
fn chart() -> Option<String> {
    skipped::told(Cmd::new("node"))
        .args(["--test", "chart.test.mjs", "kubernetes.test.mjs"])
        .dir("tests/chart")
        .env("WINDLASS_BIN", target_dir().join("debug/windlass"))
        .check("the Helm chart", "cargo xtask test chart".to_owned())
}

/// Checks types, lints, packages and the API reference of the SDK and its React components; types and lints of the
/// server SDK for Node.
fn web_lints() -> Result<()> {
    npm("client-web", "typecheck")?;
    npm("client-web", "lint")?;
    page::npm_ci(page::REACT)?;
    npm(page::REACT, "typecheck")?;
    npm(page::REACT, "lint")?;
    npm(SERVER_SDK, "typecheck")?;
    npm(SERVER_SDK, "lint")?;
    page::npm_ci("client-web/reference")?;
    npm("client-web", "docs")
}

fn npm(folder: &str, script: &str) -> Result<()> {
    Cmd::new("npm").args(["run", "--silent", script]).dir(folder).run()
}
