//! Networks on an NVIDIA GPU.
//!
//! In and out as for every [`Engine`](super::Engine). The driver and NVRTC are looked for when an engine is made; where
//! one is missing, too old or out of memory, [`CudaEngine::new`] says so in plain words and nothing else happens.
//!
//! Each [`card`] is shared by all engines of the process: a [`CudaEngine`] is a worker's way to one. [`waiting`] says which pictures
//! go in one launch, [`lane`] runs it in memory of its own, [`loaded`] keeps a network's kernels and all the weights that are
//! in use, [`trial`] tries them before that, [`node`] keeps a card's threads beside it. [`devices`] are what the machine has, as
//! [`nvml`] says.
//!
//! `network.cu` runs a group of consecutive convolutions per launch, a tile of the picture in shared memory, products on the tensor
//! cores in half precision with sums in single. [`plan`] decides which convolutions form a group; [`pack`] brings the
//! weights into the order of the tensor cores' registers; [`compile`] makes machine code for the device at hand; [`driver`]
//! owns what the driver hands out; [`peaks`] measures what the device can do; [`coder`] codes anchors on it.

mod card;
pub mod coder;
mod compile;
pub mod devices;
mod driver;
mod engine;
mod held;
mod lane;
mod loaded;
mod node;
mod nvml;
mod pack;
pub mod peaks;
mod plan;
mod trial;
mod waiting;

use thiserror::Error;

pub use card::CardStats;
pub use engine::{CudaEngine, DeviceInfo};
pub use held::Held;

/// Why there is no engine on a GPU, or no longer one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CudaError {
    /// No library of the driver.
    #[error("no NVIDIA driver is installed")]
    NoDriver,
    /// The driver's library lacks what we need.
    #[error("the NVIDIA driver is too old: it is of CUDA {}.{}, 11.8 is needed", .0 / 1000, .0 % 1000 / 10)]
    OldDriver(i32),
    /// The driver finds no GPU.
    #[error("the NVIDIA driver finds no GPU")]
    NoDevice,
    /// The GPU is older than the tensor cores that the kernels use.
    #[error("the GPU is too old: its compute capability is {}.{}, 7.5 is needed", .0 / 10, .0 % 10)]
    OldDevice(i32),
    /// No library of NVRTC.
    #[error("libnvrtc, which compiles the kernels, is not installed")]
    NoCompiler,
    /// NVRTC refused the kernels.
    #[error("compiling the kernels: {0}")]
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
    /// The GPU gave no answer for so long.
    #[error("the GPU has not answered for {0:?}")]
    Silent(std::time::Duration),
    /// The GPU, or the compiler, makes other pictures of the network than its definition.
    #[error(
        "the GPU gets a picture of known result wrong, please report this with its name and driver"
    )]
    Wrong,
    /// The driver refused something: the device is lost, above all.
    #[error("the GPU failed: {0}")]
    Driver(String),
}

/// What the GPUs of this process have done so far; none where none was looked for, or found.
pub fn cards() -> Vec<CardStats> {
    card::Card::known().iter().map(|card| card.stats()).collect()
}

/// What a network's kernels are compiled with for a device of so much shared memory (of a block and of a
/// multiprocessor, in bytes), for tests of the compiler; and the compiler.
#[doc(hidden)]
pub fn compile_for(
    architecture: &super::Architecture,
    arch: i32,
    block: usize,
    multiprocessor: usize,
) -> Result<Vec<u8>, CudaError> {
    let memory = plan::SharedMemory { block, multiprocessor };
    let plan = plan::Plan::new(architecture, memory).ok_or(CudaError::NoPlan)?;
    compile::compile(compile::NETWORK, &compile::options(architecture, &plan), arch)
}
