//! The kernels of the coder, and their arguments.

use std::mem::offset_of;
use std::sync::Arc;

use crate::cuda::driver::{Device, Kernel, Module};
use crate::cuda::{CudaError, compile};

/// Source of the coder's kernels: one program of four files.
static SOURCE: &str = concat!(
    include_str!("prelude.cu"),
    include_str!("transform.cu"),
    include_str!("blocks.cu"),
    include_str!("detail.cu")
);

/// Columns and rows of a level's input that a block of threads transforms; the same in `transform.cu`.
pub(super) const TILE: (usize, usize) = (64, 32);
/// Threads of a block that transforms.
pub(super) const TRANSFORM_THREADS: u32 = 256;
/// Bytes of shared memory of a block that transforms: the tile, and seven columns and rows more, 4 bytes each.
pub(super) const TRANSFORM_SHARED: usize = 4 * (TILE.0 + 7) * (TILE.1 + 7);
/// Blocks of coefficients by block of threads, each a warp's; the same in `blocks.cu`.
pub(super) const BLOCK_WARPS: usize = 2;
/// Bytes of shared memory of a block of threads that encodes: words for the bits of a row.
pub(super) const BLOCK_SHARED: usize = 4 * BLOCK_WARPS * (128 + 32);

/// Parts of a tile of detail, each a block of threads'; the same in `detail.cu`.
pub(super) const DETAIL_PARTS: usize = 4;
/// Threads of a block that works on a part of a tile of detail.
pub(super) const DETAIL_THREADS: u32 = 256;
/// Bytes of shared memory of a block that works on a tile of detail: low samples of 16 bits with three around, and two
/// sums for each thread.
pub(super) const DETAIL_SHARED: usize =
    (2 * (64 + 6) * (64 / DETAIL_PARTS + 6)).next_multiple_of(16) + 16 * DETAIL_THREADS as usize;

/// Arguments of the transform of one level; `transform.cu` declares the same structure.
#[repr(C)]
pub(super) struct Level {
    pub samples: u64,
    pub input: u64,
    pub low: u64,
    pub planes: u64,
    pub width: i32,
    pub height: i32,
    pub columns: i32,
    pub rows: i32,
    pub depth: i32,
    pub min: i32,
    pub max: i32,
    pub middle: i32,
}

/// Arguments of the block coder; `blocks.cu` declares the same structure.
#[repr(C)]
pub(super) struct Coding {
    pub planes: u64,
    pub blocks: u64,
    pub pictures: u64,
    pub quantisers: u64,
    pub codes: u64,
    pub lengths: u64,
    pub places: u64,
    pub bytes: u64,
    pub area: u64,
    pub width: i32,
    pub count: i32,
    pub bands: i32,
}

/// A picture that stays on the GPU; `detail.cu` declares the same structure.
#[repr(C)]
pub(super) struct Picture {
    pub residual: u64,
    pub low: u64,
    pub width: i32,
    pub height: i32,
    pub scale: i32,
    pub columns: i32,
}

/// Arguments of the sums by tile; `detail.cu` declares the same structure.
#[repr(C)]
pub(super) struct Measure {
    pub picture: Picture,
    pub seen: u64,
    pub sums: u64,
}

/// Arguments for gathering tiles into an image; `detail.cu` declares the same structure.
#[repr(C)]
pub(super) struct Gather {
    pub picture: Picture,
    pub filters: u64,
    pub tiles: u64,
    pub image: u64,
    pub sums: u64,
    pub image_width: i32,
    pub whole: i32,
}

const _: () = assert!(offset_of!(Measure, seen) == 32 && size_of::<Measure>() == 48);
const _: () = assert!(offset_of!(Gather, image_width) == 64 && size_of::<Gather>() == 72);
const _: () = assert!(offset_of!(Level, width) == 32 && size_of::<Level>() == 64);
const _: () = assert!(offset_of!(Coding, width) == 72 && size_of::<Coding>() == 88);

/// The compiled kernels.
#[derive(Debug)]
pub(super) struct Kernels {
    pub transform: Kernel,
    pub measure: Kernel,
    pub write: Kernel,
    pub measure_tiles: Kernel,
    pub gather_tiles: Kernel,
    _module: Module,
}

impl Kernels {
    /// Compiles the kernels for the device, or takes them from the cache.
    pub(super) fn new(device: &Arc<Device>) -> Result<Self, CudaError> {
        let image = compile::image(SOURCE, &[], device.arch, &device.name, device.driver)?;
        let module = Module::load(device, &image)?;
        Ok(Kernels {
            transform: module.kernel("transform", TRANSFORM_SHARED)?,
            measure: module.kernel("measure_blocks", BLOCK_SHARED)?,
            write: module.kernel("write_blocks", BLOCK_SHARED)?,
            measure_tiles: module.kernel("measure_tiles", DETAIL_SHARED)?,
            gather_tiles: module.kernel("gather_tiles", DETAIL_SHARED)?,
            _module: module,
        })
    }
}

/// The kernels' machine code for a compute capability, for tests of the compiler.
///
/// # Errors
///
/// The compiler is not installed, or refuses the kernels: the text says why.
#[doc(hidden)]
pub fn compile_coder_for(arch: i32) -> Result<Vec<u8>, CudaError> {
    compile::compile(SOURCE, &[], arch)
}
