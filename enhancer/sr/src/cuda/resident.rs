//! A picture that was super-resolved and stays on its GPU, so that it crosses the bus only once it is encoded.

use std::sync::Arc;

use windlass_types::tiles::{Mosaic, TileMap};
use windlass_vp9::PlaneSize;

use super::CudaError;
use super::driver::{Device, DeviceBuffer};

/// Memory of one resident picture.
#[derive(Debug)]
pub(super) struct ResidentMemory {
    /// Residual at HR size, 16 bits a sample, in 1/64 grey level.
    pub residual: DeviceBuffer,
    pub low: DeviceBuffer,
}

impl ResidentMemory {
    /// Allocates memory on `device` for pictures of `low` low and `high` high samples.
    pub(super) fn new(device: &Arc<Device>, low: usize, high: usize) -> Result<Self, CudaError> {
        Ok(ResidentMemory {
            residual: DeviceBuffer::new(device, 2 * high)?,
            low: DeviceBuffer::new(device, low)?,
        })
    }

    /// Whether the memory has room for that many samples, and is not much larger.
    pub(super) fn suits(&self, low: usize, high: usize) -> bool {
        let bytes = 2 * high;
        self.low.len() >= low && (bytes..=4 * bytes).contains(&self.residual.len())
    }
}

/// A super-resolved picture on its GPU. The memory is reused once this value and all its clones are gone.
#[derive(Debug, Clone)]
pub struct ResidentPicture {
    pub(super) memory: Arc<ResidentMemory>,
    /// Ordinal of the GPU that holds the picture.
    pub(super) gpu: usize,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) scale: usize,
}

impl ResidentPicture {
    /// Width and height in HR samples.
    pub fn size(&self) -> PlaneSize {
        PlaneSize::new(self.width, self.height).scaled(self.scale)
    }

    /// Width and height of the image that is encoded for some of the picture's tiles.
    pub fn image_size(&self, tiles: &TileMap) -> PlaneSize {
        if tiles.is_full() {
            return self.size();
        }
        let Mosaic { width, height } = tiles.mosaic(self.scale);
        PlaneSize { width, height }
    }
}
