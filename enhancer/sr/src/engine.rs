//! What every backend does, and what it refuses.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::{Architecture, InferError, Input, Luma, MAX_SIDE, Model, Residual, cuda};

/// Why an engine refused weights.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SwapError {
    /// Only weights of the same architecture can be swapped.
    #[error("the engine runs {engine}, the weights are of {model}")]
    Architecture {
        /// Architecture that the engine was made for.
        engine: Architecture,
        /// Architecture of the weights that were given.
        model: Architecture,
    },
    /// The device failed.
    #[error("{0}")]
    Device(String),
    /// The device has no room for them now.
    #[error("{0}")]
    DeviceFull(String),
}

impl SwapError {
    /// Checks that weights have the engine's architecture.
    ///
    /// # Errors
    ///
    /// Fails if the weights are of another architecture than the engine's.
    pub fn check(engine: Architecture, model: &Model) -> Result<(), SwapError> {
        let model = model.architecture();
        if engine == model { Ok(()) } else { Err(SwapError::Architecture { engine, model }) }
    }
}

/// A backend that runs a network. Each worker thread has one. Memory is allocated at the first picture of a size, and
/// reused.
pub trait Engine: Send {
    /// Name of the backend, for logs and reports (`cpu-avx512`, …).
    fn backend(&self) -> &'static str;

    /// Whether the engine runs on the CPU, beside decoders and encoders.
    fn on_cpu(&self) -> bool {
        true
    }

    /// Number of accelerators that the engines share; so many pictures are under way at the same pace, however many
    /// engines ask. `None` if each engine works by itself.
    fn accelerators(&self) -> Option<usize> {
        None
    }

    /// Accelerator time that inference took since the last call, without the share of other engines. `None` if the time
    /// by the clock counts.
    fn take_time(&mut self) -> Option<Duration> {
        None
    }

    /// Architecture of the network that the engine was made for.
    fn architecture(&self) -> Architecture;

    /// Super-resolves pictures of one size, in order; each of `out` is resized to fit.
    ///
    /// # Errors
    ///
    /// Fails if the pictures differ in size, are too large, do not have the inputs that the network looks at, or are
    /// not as many as `out`, and if the device fails or has no room.
    fn infer_batch(&mut self, inputs: &[Input<'_>], out: &mut [Residual])
    -> Result<(), InferError>;

    /// Super-resolves a picture and leaves it on the accelerator, for [`SharedCoder`](cuda::coder::SharedCoder).
    /// Returns `None` if it cannot stay there; [`infer_batch`](Self::infer_batch) is then to be called.
    ///
    /// # Errors
    ///
    /// Fails if the picture cannot be super-resolved, as [`infer_batch`](Self::infer_batch) says.
    fn hold(&mut self, input: Input<'_>) -> Result<Option<cuda::ResidentPicture>, InferError> {
        let _ = input;
        Ok(None)
    }

    /// Replaces the weights by others of the same architecture, as fast as changing a pointer or one upload.
    ///
    /// # Errors
    ///
    /// Fails if the weights are of another architecture, or the device fails or has no room for them.
    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError>;

    /// Scale of the network: HR side over LR side.
    fn scale(&self) -> usize {
        self.architecture().scale
    }

    /// Distance in low samples, in each direction, up to which low samples affect a high sample.
    fn reach(&self) -> usize {
        self.architecture().reach()
    }

    /// Multiply-adds per low sample.
    fn macs(&self) -> u64 {
        self.architecture().macs()
    }

    /// Super-resolves one picture by a network that takes luma only.
    ///
    /// # Errors
    ///
    /// Fails where [`infer_batch`](Self::infer_batch) does.
    fn infer(&mut self, low: Luma<'_>, out: &mut Residual) -> Result<(), InferError> {
        self.infer_batch(&[Input { low, twin: None }], std::slice::from_mut(out))
    }

    /// Super-resolves one picture by a network that also takes the twin's picture.
    ///
    /// # Errors
    ///
    /// Fails where [`infer_batch`](Self::infer_batch) does.
    fn infer_fused(
        &mut self,
        low: Luma<'_>,
        twin: Luma<'_>,
        out: &mut Residual,
    ) -> Result<(), InferError> {
        self.infer_batch(&[Input { low, twin: Some(twin) }], std::slice::from_mut(out))
    }
}

/// Checks pictures against the contract of [`Engine::infer_batch`].
pub(crate) fn check(
    architecture: &Architecture,
    inputs: &[Input<'_>],
    out: &[Residual],
) -> Result<(), InferError> {
    let size = |luma: &Luma<'_>| (luma.width(), luma.height());
    let Some(first) = inputs.first().map(|input| size(&input.low)) else {
        return if out.is_empty() { Ok(()) } else { Err(InferError::Batch) };
    };
    let (width, height) = first;
    if width > MAX_SIDE || height > MAX_SIDE {
        return Err(InferError::Size { width, height });
    }
    if inputs.len() != out.len() || inputs.iter().any(|input| size(&input.low) != first) {
        return Err(InferError::Batch);
    }
    let scale = architecture.scale;
    let high = architecture.has_twin().then_some((scale * width, scale * height));
    if inputs.iter().any(|input| input.twin.as_ref().map(size) != high) {
        return Err(InferError::Twin(architecture.inputs));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inputs;

    #[test]
    fn batches_and_twins_that_do_not_fit_are_refused() {
        let samples = vec![0; 16_400];
        let luma = |width, height| Luma::packed(&samples, width, height).unwrap();
        let plain = Architecture::chain(2, 8, 2);
        let alone = |low| Input { low, twin: None };
        let (small, other) = (alone(luma(4, 4)), alone(luma(4, 5)));
        let out = [Residual::default(), Residual::default()];
        assert_eq!(check(&plain, &[small, small], &out), Ok(()));
        assert_eq!(check(&plain, &[], &[]), Ok(()));
        assert_eq!(check(&plain, &[small, other], &out), Err(InferError::Batch));
        assert_eq!(check(&plain, &[small], &out), Err(InferError::Batch));
        assert_eq!(check(&plain, &[], &out), Err(InferError::Batch));
        let wide = alone(luma(4_097, 4));
        assert!(matches!(check(&plain, &[wide], &out[..1]), Err(InferError::Size { .. })));
        let both = Input { low: luma(4, 4), twin: Some(luma(8, 8)) };
        assert_eq!(check(&plain, &[both], &out[..1]), Err(InferError::Twin(Inputs::Luma)));
        let fused = plain.with_twin();
        assert_eq!(check(&fused, &[both], &out[..1]), Ok(()));
        let wrong = Err(InferError::Twin(Inputs::LumaAndTwin));
        assert_eq!(check(&fused, &[small], &out[..1]), wrong);
        let both = Input { low: luma(4, 4), twin: Some(luma(8, 7)) };
        assert_eq!(check(&fused, &[both], &out[..1]), wrong);
    }
}
