//! The spelling of code and pages, by `typos`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::Result;

use crate::process::{Cmd, Missing, step, which};
use crate::skipped;
use crate::wheel::WheelFile;

/// The program as PyPI has it: it is there in seconds, where cargo would compile it for minutes.
const TYPOS: WheelFile =
    WheelFile { package: "typos==1.52.0", path: "typos-1.52.0.data/scripts/typos" };

/// Fails on a word that is misspelt.
pub(crate) fn check() -> Result<()> {
    step("Checking the spelling");
    match program() {
        Ok(typos) => Cmd::new(typos).arg("--format=brief").run(),
        Err(error) if error.is::<Missing>() => {
            skipped::note("spelling", &format!("no typos: {error}"));
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// The installed program, or the fetched one.
fn program() -> Result<PathBuf> {
    if let Some(typos) = which("typos") {
        return Ok(typos);
    }
    let typos = TYPOS.fetch()?;
    // What is unpacked from a wheel cannot be run yet.
    std::fs::set_permissions(&typos, std::fs::Permissions::from_mode(0o755))?;
    Ok(typos)
}
