//! A picture that was super-resolved and stays on its GPU, so that it crosses the bus only once it is encoded.

use std::sync::Arc;

use windlass_types::tiles::TileMap;

use super::CudaError;
use super::driver::{Device, DeviceBuffer};

/// Memory of one resident picture.
#[derive(Debug)]
pub(super) struct ResidentMemory {
    /// HR, in 1/64 grey level, of 16 bits each.
    pub residual: DeviceBuffer,
    pub low: DeviceBuffer,
}

impl ResidentMemory {
    /// Memory on `device` for pictures of `low` low and `high` high samples.
    pub(super) fn new(device: &Arc<Device>, low: usize, high: usize) -> Result<Self, CudaError> {
        Ok(ResidentMemory {
            residual: DeviceBuffer::new(device, 2 * high)?,
            low: DeviceBuffer::new(device, low)?,
        })
    }

    /// Whether there is room for so many, and not for many more.
    pub(super) fn suits(&self, low: usize, high: usize) -> bool {
        let bytes = 2 * high;
        self.low.len() >= low && (bytes..=4 * bytes).contains(&self.residual.len())
    }
}

/// A picture on its GPU. Its memory is used again once this and all clones of it are gone.
#[derive(Debug, Clone)]
pub struct ResidentPicture {
    pub(super) memory: Arc<ResidentMemory>,
    /// The GPU's ordinal.
    pub(super) gpu: usize,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) scale: usize,
}

impl ResidentPicture {
    /// Width and height in HR samples.
    pub fn size(&self) -> (usize, usize) {
        (self.scale * self.width, self.scale * self.height)
    }

    /// Width and height of the image that is encoded of some of its tiles.
    pub fn image_size(&self, tiles: &TileMap) -> (usize, usize) {
        if tiles.is_full() { self.size() } else { tiles.mosaic(self.scale) }
    }
}
