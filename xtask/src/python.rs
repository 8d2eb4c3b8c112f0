//! Programs and packages of PyPI, for tools and tests. Each set has a folder of its own.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::process::{Cmd, Missing, step, which};
use crate::{apt, target_dir};

/// The folder of programs, `python` among them, of an environment that has `packages` (with their versions) and what
/// they need. It is made once; [`Missing`] without Python or PyPI.
pub(crate) fn environment(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = target_dir().join(name);
    let (bin, stamp) = (folder.join("bin"), folder.join("installed"));
    let wanted = packages.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(bin);
    }
    step(&format!("Fetching {wanted}"));
    if !Cmd::new("python3").args(["-c", "import ensurepip, venv"]).succeeds() {
        apt::install(&["python3", "python3-venv"])?;
    }
    if which("python3").is_none() {
        bail!(Missing("Python 3 with venv and pip".into()));
    }
    Cmd::new("python3").args(["-m", "venv"]).arg(&folder).run()?;
    if !Cmd::new(bin.join("pip")).args(["install", "--quiet"]).args(packages).succeeds() {
        bail!(Missing(format!("{wanted} of PyPI")));
    }
    fs::write(stamp, wanted)?;
    Ok(bin)
}
