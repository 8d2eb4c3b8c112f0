//! tract, Sonos's runtime in Rust. Its convolutions are on one thread unless an executor is given.

use std::sync::Arc;

use anyhow::Result;
use tract_linalg::multithread::Executor;
use tract_onnx::prelude::{
    Framework, InferenceModelExt, RunOptions, Tensor, TypedSimplePlan, tvec,
};

use super::{Worker, unit};
use crate::args::Size;

/// An optimised plan of a network.
pub(crate) struct Network {
    plan: Arc<TypedSimplePlan>,
    shape: [usize; 4],
    samples: Vec<f32>,
}

impl Network {
    /// Loads an ONNX file.
    pub(crate) fn new(mut file: &[u8], size: Size, threads: usize) -> Result<Self> {
        let model = tract_onnx::onnx().model_for_read(&mut file)?.into_optimized()?;
        let executor =
            if threads > 1 { Executor::multithread(threads) } else { Executor::SingleThread };
        let options = RunOptions { executor: Some(executor), ..RunOptions::default() };
        let plan = model.into_runnable_with_options(&options)?;
        let shape = [1, 1, size.height, size.width];
        Ok(Network { plan, shape, samples: Vec::new() })
    }
}

impl Worker for Network {
    fn infer(&mut self, luma: &[u8], read: &mut dyn FnMut(&[f32])) -> Result<()> {
        unit(luma, &mut self.samples);
        let input = Tensor::from_shape(&self.shape, &self.samples)?;
        let outputs = self.plan.run(tvec!(input.into()))?;
        read(outputs[0].try_as_plain_ram()?.as_slice()?);
        Ok(())
    }
}
