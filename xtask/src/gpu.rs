//! Checks the GPU's engine without a GPU, by NVIDIA's own compiler: it compiles the kernels of all networks by NVRTC,
//! which comes from PyPI.

use anyhow::Result;

use crate::process::{Cmd, step};
use crate::wheel::WheelFile;

/// The library NVRTC.
const NVRTC: WheelFile = WheelFile {
    package: "nvidia-cuda-nvrtc-cu12==12.9.86",
    path: "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
};

/// Runs the tests; [`Missing`](crate::process::Missing) where the library cannot be had.
pub(crate) fn run() -> Result<()> {
    let nvrtc = NVRTC.fetch()?;
    step("Compiling the kernels of all networks by NVRTC");
    let test = ["test", "--quiet", "--package", "windlass-sr"];
    Cmd::cargo(test)
        .args(["--lib", "--test", "cuda_coder", "compile"])
        .env("LD_LIBRARY_PATH", nvrtc.parent().unwrap_or(&nvrtc))
        .env("WINDLASS_TEST_ALL_KERNELS", "1")
        .run()
}
