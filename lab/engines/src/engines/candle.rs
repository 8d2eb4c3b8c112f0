//! candle, Hugging Face's tensors in Rust: it has no graph, so the layers are called one by one.

use crate::onnx::{Steps, take};
use anyhow::{Context, Result, bail, ensure};
use candle_core::{Device, Storage, Tensor};
use rayon::{ThreadPool, ThreadPoolBuilder};
use windlass_sr::{Architecture, Model};

use super::{Worker, unit};
use crate::args::Size;

/// A network's weights as tensors.
pub(crate) struct Layers {
    convs: Vec<(Tensor, Tensor)>,
}

impl Layers {
    /// Takes over a network's weights.
    pub(crate) fn new(model: &Model) -> Result<Self> {
        let architecture = model.architecture();
        let convs = model.convs().iter().enumerate().map(|(n, conv)| {
            let (outputs, inputs) = architecture.shape(n);
            let shape = (outputs, inputs, 3, 3);
            let weights = Tensor::from_slice(&conv.weights, shape, &Device::Cpu)?;
            Ok((weights, Tensor::from_slice(&conv.bias, (1, outputs, 1, 1), &Device::Cpu)?))
        });
        Ok(Layers { convs: convs.collect::<Result<_>>()? })
    }
}

/// A picture's samples as a tensor.
pub(crate) fn tensor(samples: &[f32], size: Size) -> Result<Tensor> {
    Ok(Tensor::from_slice(samples, (1, 1, size.height, size.width), &Device::Cpu)?)
}

impl Steps for Layers {
    type Value = Tensor;
    type Error = anyhow::Error;

    fn conv(&mut self, n: usize, x: &Tensor, relu: bool) -> Result<Tensor> {
        let (weights, bias) = self.convs.get(n).context("no such convolution")?;
        let sum = x.conv2d(weights, 1, 1, 1, 1)?.broadcast_add(bias)?;
        Ok(if relu { sum.relu()? } else { sum })
    }

    fn add(&mut self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        Ok((a + b)?)
    }
}

/// A network with its threads.
pub(crate) struct Network {
    layers: Layers,
    architecture: Architecture,
    size: Size,
    /// The threads: candle's convolutions share out their work to the pool in which they are called.
    pool: ThreadPool,
}

impl Network {
    /// Takes over a network's weights.
    pub(crate) fn new(model: &Model, size: Size, threads: usize) -> Result<Self> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
        Ok(Network { layers: Layers::new(model)?, architecture: model.architecture(), size, pool })
    }
}

impl Worker for Network {
    fn infer(&mut self, luma: &[u8], read: &mut dyn FnMut(&[f32])) -> Result<()> {
        let Network { layers, architecture, size, pool } = self;
        let residual = pool.install(|| -> Result<Tensor> {
            let mut samples = Vec::new();
            unit(luma, &mut samples);
            let input = tensor(&samples, *size)?;
            let channels = take(*architecture, layers, &input)?;
            Ok(candle_nn::ops::pixel_shuffle(&channels, architecture.scale)?)
        })?;
        let (storage, layout) = residual.storage_and_layout();
        let Storage::Cpu(storage) = &*storage else { bail!("the residual is on a device") };
        ensure!(layout.is_contiguous(), "the residual has gaps");
        read(&storage.as_slice::<f32>()?[layout.start_offset()..]);
        Ok(())
    }
}
