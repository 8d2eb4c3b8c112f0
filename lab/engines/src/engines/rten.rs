//! rten, a runtime for ONNX in Rust, with weights packed beforehand.

use std::sync::Arc;

use anyhow::{Context, Result};
use rten::{Model, ModelOptions, RunOptions, ThreadPool};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};

use super::{Worker, unit};
use crate::args::Size;

/// A model with its threads.
pub(crate) struct Network {
    model: Model,
    options: RunOptions,
    shape: [usize; 4],
    samples: Vec<f32>,
}

impl Network {
    /// Loads an ONNX file.
    pub(crate) fn new(file: Vec<u8>, size: Size, threads: usize) -> Result<Self> {
        let model = ModelOptions::with_all_ops().prepack_weights(true).load(file)?;
        let pool = Arc::new(ThreadPool::with_num_threads(threads));
        let options = RunOptions::default().with_thread_pool(Some(pool));
        let shape = [1, 1, size.height, size.width];
        Ok(Network { model, options, shape, samples: Vec::new() })
    }
}

impl Worker for Network {
    fn infer(&mut self, luma: &[u8], read: &mut dyn FnMut(&[f32])) -> Result<()> {
        unit(luma, &mut self.samples);
        let input = NdTensorView::from_data(self.shape, &self.samples[..]);
        let output = self.model.run_one(input.into(), Some(self.options.clone()))?;
        let output: NdTensor<f32, 4> = output.try_into()?;
        read(output.data().context("the output has gaps")?);
        Ok(())
    }
}
