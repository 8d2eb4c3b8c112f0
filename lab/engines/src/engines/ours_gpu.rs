//! Windlass's engine on a GPU.

use std::sync::Arc;

use anyhow::Result;
use windlass_sr::{CudaEngine, Input, Luma, Model};

use super::Worker;
use crate::args::Size;

/// One grey level in the residual's fixed point.
const ONE: f32 = 64.0;

/// An engine whose output is converted to single precision, as the others give theirs.
pub(crate) struct Network {
    engine: CudaEngine,
    size: Size,
    residual: Vec<f32>,
}

impl Network {
    /// An engine on a GPU; fails without a GPU and its driver.
    pub(crate) fn new(model: &Arc<Model>, size: Size) -> Result<Self> {
        Ok(Network { engine: CudaEngine::new(model)?, size, residual: Vec::new() })
    }
}

impl Worker for Network {
    fn infer(&mut self, luma: &[u8], read: &mut dyn FnMut(&[f32])) -> Result<()> {
        let low = Luma::packed(luma, self.size.width, self.size.height)?;
        let Network { engine, residual, .. } = self;
        engine.infer_each(&[Input { low, twin: None }], |_, samples| {
            residual.clear();
            residual.extend(samples.iter().map(|sample| f32::from(*sample) * (1.0 / ONE)));
        })?;
        read(residual);
        Ok(())
    }
}
