//! Windlass's CPU engine on one instruction set. One thread works on a picture.

use std::sync::Arc;

use anyhow::{Context, Result};
use windlass_sr::{CpuEngine, Engine, Luma, Model, Residual, Simd};

use super::Worker;
use crate::args::Size;

/// Windlass's engine with the memory of its residual.
pub(crate) struct Network {
    engine: CpuEngine,
    size: Size,
    out: Residual,
}

impl Network {
    /// An engine on an instruction set; fails if the CPU lacks it.
    pub(crate) fn new(model: &Arc<Model>, simd: Simd, size: Size) -> Result<Self> {
        let engine = CpuEngine::with_simd(model.clone(), simd);
        let engine = engine.context("the CPU lacks the instruction set")?;
        Ok(Network { engine, size, out: Residual::default() })
    }
}

impl Worker for Network {
    fn infer(&mut self, luma: &[u8], read: &mut dyn FnMut(&[f32])) -> Result<()> {
        let luma = Luma::packed(luma, self.size.width, self.size.height)?;
        self.engine.infer(luma, &mut self.out)?;
        read(&self.out.data);
        Ok(())
    }
}
