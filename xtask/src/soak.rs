//! The long tests.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process::{Cmd, Missing, step};
use crate::test::{e2e, with_clips};
use crate::{apt, fuzz, gpu, memory, neon, page, target_dir};

/// Many seeds, a browser call of `seconds`, `minutes` of VP9 per plan and mode of the recorder,
/// `fuzz_seconds` per fuzz target, and participants that come and go for `visits_seconds`.
pub fn run(seconds: u32, minutes: u32, fuzz_seconds: u32, visits_seconds: u32) -> Result<()> {
    apt::install(apt::BUILD)?;
    apt::install(apt::TEST)?;
    apt::install(apt::SOAK)?;
    page::build()?;
    step("Running property tests with many more cases");
    with_clips(Cmd::cargo(["test", "--workspace", "--quiet"]))
        .env("PROPTEST_CASES", "20000")
        .run()?;
    unless_missing(neon::run())?;
    unless_missing(memory::run())?;
    unless_missing(gpu::run())?;
    unless_missing(fuzz::run(fuzz_seconds))?;
    e2e(
        &[
            "call.test.mjs",
            "impaired.test.mjs",
            "detail-faults.test.mjs",
            "detail-fall.test.mjs",
            "detail-uplink.test.mjs",
            "learn.test.mjs",
            "networks.test.mjs",
            "policy.test.mjs",
            "promise.test.mjs",
            "links.test.mjs",
            "https.test.mjs",
            "adaptive.test.mjs",
            "audio.test.mjs",
            "ipv6.test.mjs",
            "restart.test.mjs",
            "turn.test.mjs",
            "firefox.test.mjs",
            "gstreamer.test.mjs",
            "faults.test.mjs",
        ],
        &[("WINDLASS_CALL_SECONDS", seconds.to_string())],
    )?;
    attack()?;
    links()?;
    visits(visits_seconds)?;
    vp9_conformance(&record_vp9(minutes)?)
}

/// Ten million malformed datagrams, beside a call.
fn attack() -> Result<()> {
    step("Attacking a server for ten minutes");
    Cmd::cargo(["test", "--quiet", "--package", "windlass", "--test", "attack"])
        .env("WINDLASS_ATTACK_DATAGRAMS", "10000000")
        .run()
}

/// Viewers behind narrow links, on real sockets: an emulated one, and one of the kernel's where it has what that needs.
fn links() -> Result<()> {
    step("Calling over narrow links for seven minutes");
    Cmd::cargo(["test", "--quiet", "--package", "windlass", "--test", "links"])
        .args(["--", "--ignored", "--nocapture", "--test-threads", "1"])
        .run()
}

/// Twenty participants who come and go over bad links: nothing may be left of them, and what the server counts must add up.
fn visits(seconds: u32) -> Result<()> {
    step(&format!("Having twenty participants come and go for {seconds} seconds"));
    let run = ["run", "--release", "--quiet", "--package", "windlass", "--", "loadtest", "--own"];
    Cmd::cargo(run)
        .args(["--publishers", "8", "--per-room", "2", "--subscribers", "3", "--layers", "q,h"])
        .args(["--stay", "60", "--seconds", &seconds.to_string(), "--links"])
        .arg("3g,lte,wifi-lossy,dsl,step-down,step-up,bursty")
        .args(["--", "--network", "xs"])
        .run()
}

/// Says what was skipped because its tools are missing.
fn unless_missing(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.is::<Missing>() => {
            eprintln!("skipped: {error}");
            Ok(())
        }
        other => other,
    }
}

/// Streams of Chromium's own encoder, fresh ones each time.
fn record_vp9(minutes: u32) -> Result<Vec<PathBuf>> {
    let out = target_dir().join("chromium-vp9");
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    page::npm_ci("tests/e2e")?;
    step("Recording the VP9 streams of calls in Chromium");
    with_clips(Cmd::new("node").arg("record-vp9.mjs").dir("tests/e2e"))
        .args(["--plans", "usual,starved", "--minutes", &minutes.to_string(), "--out"])
        .arg(&out)
        .run()?;
    let entries = std::fs::read_dir(&out).context("the recorder left no folder of streams")?;
    let mut files = entries.map(|e| Ok(e?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|f| f.extension().is_some_and(|e| e == "ivf"));
    files.sort();
    Ok(files)
}

/// Every picture of `files` must be the one that the oracles decode.
fn vp9_conformance(files: &[PathBuf]) -> Result<()> {
    step("Comparing our VP9 decoder's pictures with those of other decoders");
    let run = ["run", "--release", "--quiet", "--package", "windlass-tests", "--example"];
    Cmd::cargo(run).args(["vp9_conformance", "--"]).args(files).run()
}
