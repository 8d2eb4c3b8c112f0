//! Networks on an NVIDIA GPU.
//!
//! In and out as for every [`Engine`](super::Engine). The driver and NVRTC are loaded when an engine is made. If one is
//! missing or too old, or memory is full, [`CudaEngine::new`] returns an error that says so.
//!
//! Each [`gpu`] is shared by all engines of the process: a [`CudaEngine`] is a worker's way to one. [`waiting`] says
//! which pictures go in one launch, [`stream`] runs it in memory of its own, [`loaded`] keeps a network's kernels and
//! all the weights that are in use, [`trial`] tries them before that, [`numa`] keeps a GPU's threads beside it.
//! [`devices`] are what the machine has, as [`nvml`] says.
//!
//! `network.cu` runs a group of consecutive convolutions per launch, a tile of the picture in shared memory, products
//! on the tensor cores in half precision with sums in single. [`plan`] decides which convolutions form a group;
//! [`pack`] brings the weights into the order of the tensor cores' registers; [`compile`] makes machine code for the
//! device at hand; [`driver`] owns what the driver hands out; [`peaks`] measures what the device can do; [`coder`]
//! encodes anchors on it.
//!
//! On Hopper `mma.sync`, which any device has, leaves a good third of the tensor cores' rate. So for networks of 32 to
//! 64 channels there is another [`variant`]: what lies between the first and the last convolution runs in strips by
//! products of warpgroups (`wgmma.cu`; [`strips`], [`pack_strips`]). Of the variants whose results are right [`choose`]
//! takes the quickest.

mod choose;
pub mod coder;
mod compile;
pub mod devices;
mod driver;
mod engine;
mod gpu;
#[cfg(test)]
mod kernel_tests;
mod loaded;
mod numa;
mod nvml;
mod pace;
mod pack;
mod pack_strips;
pub mod peaks;
mod plan;
mod resident;
mod stream;
mod strips;
mod timeout;
mod trial;
mod variant;
mod waiting;

use thiserror::Error;

pub use engine::{CudaEngine, DeviceInfo};
pub use gpu::GpuStats;
pub use resident::ResidentPicture;
pub use timeout::set_timeout;
pub(crate) use timeout::timeout;
pub use variant::Variant;

/// Why there is no engine on a GPU, or no longer one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CudaError {
    /// The driver's library is not installed.
    #[error("no NVIDIA driver is installed: install one of CUDA 11.8 or later")]
    NoDriver,
    /// What was found is no driver, but the stub of the CUDA toolkit that programs are linked with.
    #[error(
        "the CUDA toolkit's stub was found instead of the NVIDIA driver: take its folder `stubs` out of LD_LIBRARY_PATH"
    )]
    Stub,
    /// The driver is too old: its library lacks functions that we need.
    #[error("the NVIDIA driver is too old: it is of CUDA {}.{}, 11.8 is needed", .0 / 1000, .0 % 1000 / 10)]
    OldDriver(i32),
    /// The driver finds no GPU.
    #[error("the NVIDIA driver finds no GPU")]
    NoDevice,
    /// The GPU is older than the tensor cores that the kernels use.
    #[error("the GPU is too old: its compute capability is {}.{}, 7.5 is needed", .0 / 10, .0 % 10)]
    OldDevice(i32),
    /// NVRTC's library is not found.
    #[error(
        "libnvrtc, which compiles the kernels, is not found: install NVRTC (of the CUDA toolkit, or the Python package \
         `nvidia-cuda-nvrtc`) where the dynamic linker looks"
    )]
    NoCompiler,
    /// NVRTC refused the kernels.
    #[error("NVRTC cannot compile the kernels: {0}")]
    Compile(String),
    /// No tile of the network fits the GPU.
    #[error("the network does not fit the GPU's shared memory")]
    NoPlan,
    /// The GPU has no memory left, even for a single picture.
    #[error("the GPU's memory is full")]
    NoMemory,
    /// More waits for the GPU than it can do.
    #[error("too many pictures wait for the GPU")]
    Overloaded,
    /// The GPU gave no answer for this time.
    #[error("the GPU has not answered for {0:?}")]
    Silent(std::time::Duration),
    /// The pictures that the GPU makes differ from the network's definition: the GPU or the compiler is faulty.
    #[error(
        "the GPU gives a wrong result for a test picture: please report this with its name and driver"
    )]
    Wrong,
    /// The driver refused a call, most often because the device is lost.
    #[error("the GPU failed: {0}")]
    Driver(String),
}

/// Statistics of this process's GPUs; empty if none was looked for, or found.
pub fn gpus() -> Vec<GpuStats> {
    gpu::Gpu::known().iter().map(|gpu| gpu.stats()).collect()
}
