//! Why a detail was not encoded on a GPU.

use thiserror::Error;
use windlass_hybrid::anchor::codec::AnchorCodecError;

use super::CoderError;
use crate::cuda::CudaError;

/// Why a detail was not encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnchorError {
    /// The detail cannot be encoded, not even on the CPU.
    #[error(transparent)]
    Codec(#[from] AnchorCodecError),
    /// The GPU failed, or had no time or room for the detail.
    #[error(transparent)]
    Device(#[from] CudaError),
}

impl From<CoderError> for AnchorError {
    fn from(error: CoderError) -> Self {
        match error {
            CoderError::Pictures => AnchorError::Codec(AnchorCodecError::Encode),
            CoderError::Device(why) => AnchorError::Device(why),
        }
    }
}
