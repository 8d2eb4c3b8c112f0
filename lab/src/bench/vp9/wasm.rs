//! The WebAssembly module in Node, by the scripts of `client-web/wasm` (they are part of this binary).
//!
//! Each round is a process of its own, so that its first frames run as in a browser that has just
//! loaded the module. A frame's time is the lesser one of wall-clock and CPU time.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tempfile::TempDir;

use super::args::Vp9Args;
use super::best::Best;
use super::streams::Stream;
use crate::interrupt;

/// Number of new processes for each stream.
const ROUNDS: u32 = 3;
/// The scripts for Node, by their file names.
const SCRIPTS: [(&str, &str); 2] = [
    ("bench-vp9.mjs", include_str!("../../../../client-web/wasm/bench-vp9.mjs")),
    ("vp9-timer.mjs", include_str!("../../../../client-web/wasm/vp9-timer.mjs")),
];

/// Runs the module.
pub(super) struct Runner {
    node: PathBuf,
    module: PathBuf,
    scripts: TempDir,
}

/// The module's times, frame by frame.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// Times of the first frames after loading.
    pub cold: Best,
    /// Times of all frames after warm-up.
    pub steady: Best,
}

/// The output of the script for one round.
#[derive(Debug, Deserialize)]
struct Round {
    cold: Vec<f64>,
    steady: Vec<f64>,
}

impl Runner {
    /// A runner; fails with what to do where Node or the module is missing.
    pub(super) fn new(args: &Vp9Args) -> Result<Runner> {
        ensure!(
            args.module.is_file(),
            "there is no WebAssembly module at {}: build it with `cargo xtask wasm`, or name one with --module",
            args.module.display()
        );
        let version = Command::new(&args.node)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|output| output.status.success());
        ensure!(
            version,
            "{} does not run: install Node 20 or later, or name one with --node",
            args.node.display()
        );
        let scripts = tempfile::tempdir().context("making a temporary folder")?;
        for (name, text) in SCRIPTS {
            std::fs::write(scripts.path().join(name), text).context("writing Node's script")?;
        }
        Ok(Runner { node: args.node.clone(), module: args.module.clone(), scripts })
    }

    /// Times a stream; `passes` are shared among the processes.
    pub(super) fn measure(&self, stream: &Stream, passes: NonZeroU32) -> Result<Found> {
        let mut found = Found::default();
        for _ in 0..ROUNDS {
            let output = interrupt::shield(&mut Command::new(&self.node))
                .arg(self.scripts.path().join(SCRIPTS[0].0))
                .args([&self.module, &stream.path])
                .arg(passes.get().div_ceil(ROUNDS).to_string())
                .stdin(Stdio::null())
                .stderr(Stdio::inherit())
                .output()
                .context("starting Node")?;
            ensure!(output.status.success(), "the WebAssembly module failed in Node (see above)");
            let round: Round =
                serde_json::from_slice(&output.stdout).context("reading what Node printed")?;
            ensure!(
                round.steady.len() == stream.chunks.len(),
                "the WebAssembly module decoded {} of {} frames",
                round.steady.len(),
                stream.chunks.len()
            );
            found.cold.record_all(&round.cold);
            found.steady.record_all(&round.steady);
        }
        Ok(found)
    }
}
