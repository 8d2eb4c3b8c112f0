//! Buffers that exist both on the device and on the host.

use std::sync::Arc;

use crate::cuda::CudaError;
use crate::cuda::driver::{Device, DeviceBuffer, HostBuffer};

/// A buffer on the device, and one of the same size on the host for copies to or from it.
#[derive(Debug)]
pub(super) struct Twofold {
    pub device: DeviceBuffer,
    pub host: HostBuffer,
    room: usize,
}

impl Twofold {
    /// A buffer without room yet.
    pub(super) fn new(device: &Arc<Device>) -> Result<Self, CudaError> {
        let (on_device, on_host) = (DeviceBuffer::new(device, 0)?, HostBuffer::new(device, 0)?);
        Ok(Twofold { device: on_device, host: on_host, room: 0 })
    }

    /// Makes room for `bytes` bytes. After growth the content is undefined. No work that uses the buffer may be under
    /// way.
    pub(super) fn grow(&mut self, device: &Arc<Device>, bytes: usize) -> Result<(), CudaError> {
        if bytes > self.room {
            // The old ones go before the new ones come.
            *self = Twofold::new(device)?;
            self.device = DeviceBuffer::new(device, bytes)?;
            self.host = HostBuffer::new(device, bytes)?;
            self.room = bytes;
        }
        Ok(())
    }
}

/// Makes room for `bytes` bytes in memory of the device alone. After growth the content is undefined. No work that uses
/// the buffer may be under way.
pub(super) fn grow(
    buffer: &mut DeviceBuffer,
    device: &Arc<Device>,
    bytes: usize,
) -> Result<(), CudaError> {
    if bytes > buffer.len() {
        *buffer = DeviceBuffer::new(device, 0)?;
        *buffer = DeviceBuffer::new(device, bytes)?;
    }
    Ok(())
}

/// Writes the bytes of numbers one after the other.
pub(super) fn fill<const N: usize>(to: &mut [u8], numbers: impl Iterator<Item = [u8; N]>) {
    for (to, number) in to.as_chunks_mut::<N>().0.iter_mut().zip(numbers) {
        *to = number;
    }
}
