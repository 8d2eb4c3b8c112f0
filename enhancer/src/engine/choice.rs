//! Which backend runs the networks: what the operator wants, and what the machine has.
//!
//! A GPU that is missing, or fails while calls go on (out of memory, lost), costs a line in the log: the processor takes
//! over, and stays.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{
    Architecture, CpuEngine, CudaEngine, Engine, InferError, Input, Model, Residual, SwapError,
};

/// What the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// The GPU where there is one that works, else the processor.
    Auto,
    /// The processor: the default until a real GPU has run the kernels.
    #[default]
    Cpu,
    /// The GPU; without one, a warning and the processor.
    Cuda,
}

impl EngineChoice {
    /// All of them.
    pub const ALL: [EngineChoice; 3] = [EngineChoice::Auto, EngineChoice::Cpu, EngineChoice::Cuda];

    /// As in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            EngineChoice::Auto => "auto",
            EngineChoice::Cpu => "cpu",
            EngineChoice::Cuda => "cuda",
        }
    }

    /// An engine for the network; never fails.
    pub fn engine(self, model: Arc<Model>) -> Box<dyn Engine> {
        if self == EngineChoice::Cpu {
            return Box::new(CpuEngine::new(model));
        }
        match CudaEngine::new(&model) {
            Ok(engine) => {
                let device = engine.device();
                tracing::debug!(
                    device = device.name,
                    plan = device.plan,
                    "the network runs on the GPU"
                );
                Box::new(OnGpu { gpu: Some(engine), cpu: CpuEngine::new(model) })
            }
            Err(why) => {
                if self == EngineChoice::Cuda {
                    tracing::warn!(%why, "no GPU to be used: the network runs on the processor");
                } else {
                    tracing::debug!(%why, "the network runs on the processor");
                }
                Box::new(CpuEngine::new(model))
            }
        }
    }
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = EngineChoice::ALL.into_iter().find(|choice| choice.name() == text);
        found.ok_or_else(|| format!("engine: `{text}` is none of auto, cpu, cuda"))
    }
}

/// A network on a GPU while that works, and on the processor after that.
struct OnGpu<G> {
    gpu: Option<G>,
    /// Without pictures it has no memory but its weights'.
    cpu: CpuEngine,
}

impl<G: Engine> OnGpu<G> {
    fn give_up(&mut self, why: &str) {
        tracing::warn!(why, "the GPU is given up: the network goes on on the processor");
        self.gpu = None;
    }
}

impl<G: Engine> Engine for OnGpu<G> {
    fn backend(&self) -> &'static str {
        self.gpu.as_ref().map_or(self.cpu.backend(), Engine::backend)
    }

    fn on_processor(&self) -> bool {
        self.gpu.as_ref().is_none_or(Engine::on_processor)
    }

    fn architecture(&self) -> Architecture {
        self.cpu.architecture()
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        if let Some(gpu) = &mut self.gpu {
            match gpu.infer_batch(inputs, out) {
                Err(InferError::Device(why)) => self.give_up(&why),
                other => return other,
            }
        }
        self.cpu.infer_batch(inputs, out)
    }

    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
        // The GPU has what the processor has: nothing to upload.
        if Arc::ptr_eq(self.cpu.model(), model) {
            return Ok(());
        }
        self.cpu.swap(model)?;
        if let Some(Err(why)) = self.gpu.as_mut().map(|gpu| gpu.swap(model)) {
            self.give_up(&why.to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Luma, embedded_model};

    /// A GPU that fails at its second picture.
    struct Failing {
        inner: CpuEngine,
        pictures: usize,
    }

    impl Engine for Failing {
        fn backend(&self) -> &'static str {
            "failing"
        }

        fn architecture(&self) -> Architecture {
            self.inner.architecture()
        }

        fn infer_batch(
            &mut self,
            inputs: &[Input<'_>],
            out: &mut [Residual],
        ) -> Result<(), InferError> {
            self.pictures += inputs.len();
            if self.pictures > 1 {
                return Err(InferError::Device("out of memory".to_owned()));
            }
            self.inner.infer_batch(inputs, out)
        }

        fn swap(&mut self, _: &Arc<Model>) -> Result<(), SwapError> {
            Err(SwapError::Device("lost".to_owned()))
        }
    }

    fn failing() -> OnGpu<Failing> {
        let model = embedded_model().unwrap();
        let cpu = || CpuEngine::new(model.clone());
        OnGpu { gpu: Some(Failing { inner: cpu(), pictures: 0 }), cpu: cpu() }
    }

    #[test]
    fn the_processor_takes_over_where_the_gpu_fails() {
        let low = [70; 12 * 9];
        let luma = Luma::packed(&low, 12, 9).unwrap();
        let (mut first, mut second) = (Residual::default(), Residual::default());
        let mut engine = failing();
        engine.infer(luma, &mut first).unwrap();
        assert_eq!(engine.backend(), "failing");
        engine.infer(luma, &mut second).unwrap();
        assert!(engine.backend().starts_with("cpu"));
        assert_eq!(first, second);
        // What no backend takes is no failure of the GPU's.
        let mut engine = failing();
        assert_eq!(engine.infer_batch(&[], &mut [Residual::default()]), Err(InferError::Batch));
        assert_eq!(engine.backend(), "failing");
    }

    #[test]
    fn weights_that_the_gpu_does_not_take_run_on_the_processor() {
        let mut engine = failing();
        let other = Model::random(engine.architecture(), 9).unwrap();
        engine.swap(&Arc::new(other)).unwrap();
        assert!(engine.backend().starts_with("cpu"));
        let mut engine = failing();
        let wider = Model::random(Architecture::chain(2, 8, 5), 9).unwrap();
        assert!(engine.swap(&Arc::new(wider)).is_err());
        assert_eq!(engine.backend(), "failing");
    }

    #[test]
    fn every_choice_gives_an_engine_and_has_a_name() {
        let model = embedded_model().unwrap();
        for choice in EngineChoice::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
            assert_eq!(choice.engine(model.clone()).architecture(), model.architecture());
        }
        assert!("gpu".parse::<EngineChoice>().unwrap_err().contains("auto, cpu, cuda"));
    }
}
