//! The engine of a variant of the kernels.

use std::sync::Arc;

use anyhow::Result;
use windlass_sr::cuda::Variant;
use windlass_sr::{CudaEngine, CudaError, Model};

/// An engine of a variant, or of the one that a server would take. `None` where the network or the GPU has no such
/// variant.
pub(super) fn engine(model: &Arc<Model>, variant: Option<Variant>) -> Result<Option<CudaEngine>> {
    let made = match variant {
        None => CudaEngine::new(model),
        Some(variant) => CudaEngine::with_variant(model, variant),
    };
    match made {
        Err(CudaError::NoPlan | CudaError::OldDevice(_)) if variant.is_some() => {
            eprintln!("left out: the network, or the GPU, has no such variant");
            Ok(None)
        }
        made => Ok(Some(made?)),
    }
}
