//! Chooses the backend of the networks, by the operator's configuration and the machine's GPUs.
//!
//! If a GPU is missing, or fails during calls (lost, silent), another GPU or the CPU takes over for good, and the log
//! has a line. A GPU whose memory is full is not used for a while.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cuda::{self, ResidentPicture};
use crate::{
    Architecture, CpuEngine, CudaEngine, CudaError, Engine, InferError, Input, Model, Residual,
    SwapError,
};

/// The operator's choice of what runs the networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// The GPUs where there are any that work, else the CPU.
    Auto,
    /// The CPU only: the default.
    #[default]
    Cpu,
    /// The GPUs; without one, a warning and the CPU.
    Cuda,
}

impl EngineChoice {
    /// All choices.
    pub const ALL: [EngineChoice; 3] = [EngineChoice::Auto, EngineChoice::Cpu, EngineChoice::Cuda];

    /// The choice's name in the configuration.
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
        match on_a_gpu(&model) {
            Ok(gpu) => {
                let cpu = CpuEngine::new(model);
                return Box::new(GpuStills::new(gpu, cpu, Box::new(on_a_gpu)));
            }
            Err(why) if self == EngineChoice::Auto => {
                tracing::debug!(%why, "no GPU to run the network: the CPU runs it");
            }
            Err(why) => {
                tracing::warn!(%why, "no engine on a GPU: the network runs on the CPU; check with `windlass devices`, or set `device` to `cpu`");
            }
        }
        Box::new(CpuEngine::new(model))
    }
}

/// Creates an engine on the GPU that has the fewest engines.
fn on_a_gpu(model: &Arc<Model>) -> Result<CudaEngine, CudaError> {
    let mut engine = CudaEngine::new(model)?;
    engine.set_timeout(cuda::timeout());
    let device = engine.device();
    tracing::debug!(
        gpu = device.ordinal,
        name = device.name,
        plan = device.plan,
        "the network runs on a GPU"
    );
    Ok(engine)
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
        found.ok_or_else(|| {
            let names = EngineChoice::ALL.map(EngineChoice::name).join(", ");
            format!("engine: `{text}` is none of {names}")
        })
    }
}

/// Time after which a GPU whose memory was full is tried again.
const REST: Duration = Duration::from_secs(10);

/// Makes an engine on another GPU.
type Replace<G> = Box<dyn Fn(&Arc<Model>) -> Result<G, CudaError> + Send>;

/// Engine that runs a network on a GPU while that works, then on another GPU, and on the CPU if there is none.
struct GpuStills<G> {
    gpu: Option<G>,
    replace: Replace<G>,
    /// Time until which the GPU is left alone, because its memory was full.
    rests: Option<Instant>,
    /// Whether the full memory has been logged.
    logged: bool,
    /// Whether the CPU made the last picture.
    stood_in: bool,
    /// Engine that takes over on the CPU. It holds no memory but its weights until then; its weights are those that the
    /// GPU should have.
    cpu: CpuEngine,
}

impl<G: Engine> GpuStills<G> {
    fn new(gpu: G, cpu: CpuEngine, replace: Replace<G>) -> Self {
        GpuStills { gpu: Some(gpu), replace, rests: None, logged: false, stood_in: false, cpu }
    }

    /// Replaces a failed GPU by another, if there is one.
    fn give_up(&mut self, why: &str) {
        self.gpu = (self.replace)(self.cpu.model()).ok();
        if self.gpu.is_some() {
            tracing::warn!(
                why,
                "GPU failed: the network continues on another GPU; check the failed one with `nvidia-smi`, and restart to use it again"
            );
        } else {
            tracing::warn!(
                why,
                "GPU failed: the network continues on the CPU; check the GPU with `nvidia-smi`, and restart to use it again"
            );
        }
    }

    /// Leaves the GPU alone for [`REST`], because its memory is full.
    fn rest(&mut self, why: &str) {
        if !self.logged {
            tracing::warn!(
                why,
                "GPU memory or queue full: the CPU takes over for 10 s at a time; lower `max-enhanced`, or end other programs on the GPU"
            );
        }
        (self.logged, self.rests) = (true, Some(Instant::now() + REST));
    }

    fn works(&self) -> bool {
        self.gpu.is_some() && self.rests.is_none_or(|until| until <= Instant::now())
    }

    /// Infers the pictures on the GPU; `None` if the CPU has to.
    fn by_gpu(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Option<Result<(), InferError>> {
        while self.works() {
            let gpu = self.gpu.as_mut()?;
            let ran = match gpu.swap(self.cpu.model()) {
                Ok(()) => gpu.infer_batch(inputs, out),
                Err(SwapError::DeviceFull(why)) => Err(InferError::DeviceFull(why)),
                Err(why) => Err(InferError::Device(why.to_string())),
            };
            match ran {
                Err(InferError::Device(why)) => self.give_up(&why),
                Err(InferError::DeviceFull(why)) => self.rest(&why),
                other => return Some(other),
            }
        }
        None
    }
}

impl<G: Engine> Engine for GpuStills<G> {
    fn backend(&self) -> &'static str {
        self.gpu.as_ref().map_or(self.cpu.backend(), Engine::backend)
    }

    fn on_cpu(&self) -> bool {
        !self.works() || self.gpu.as_ref().is_none_or(Engine::on_cpu)
    }

    fn accelerators(&self) -> Option<usize> {
        self.gpu.as_ref().and_then(Engine::accelerators)
    }

    fn take_time(&mut self) -> Option<Duration> {
        let took = self.gpu.as_mut().and_then(Engine::take_time);
        took.filter(|_| !self.stood_in)
    }

    fn architecture(&self) -> Architecture {
        self.cpu.architecture()
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        let done = self.by_gpu(inputs, out);
        self.stood_in = done.is_none();
        done.unwrap_or_else(|| self.cpu.infer_batch(inputs, out))
    }

    fn hold(&mut self, input: Input<'_>) -> Result<Option<ResidentPicture>, InferError> {
        let works = self.works();
        let Some(gpu) = self.gpu.as_mut().filter(|_| works) else { return Ok(None) };
        // Where it fails, `infer_batch` will notice, and do something about it.
        if gpu.swap(self.cpu.model()).is_err() {
            return Ok(None);
        }
        let resident = gpu.hold(input)?;
        self.stood_in &= resident.is_none();
        Ok(resident)
    }

    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
        if Arc::ptr_eq(self.cpu.model(), model) {
            return Ok(());
        }
        // The GPU is given them with its next picture.
        self.cpu.swap(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Luma, embedded_model};

    /// A GPU that does what the CPU does, until it fails.
    struct Failing {
        inner: CpuEngine,
        /// Pictures that it can still do.
        left: usize,
        why: InferError,
    }

    impl Engine for Failing {
        fn backend(&self) -> &'static str {
            "failing"
        }

        fn on_cpu(&self) -> bool {
            false
        }

        fn take_time(&mut self) -> Option<Duration> {
            Some(Duration::from_millis(3))
        }

        fn architecture(&self) -> Architecture {
            self.inner.architecture()
        }

        fn infer_batch(
            &mut self,
            inputs: &[Input<'_>],
            out: &mut [Residual],
        ) -> Result<(), InferError> {
            let Some(left) = self.left.checked_sub(inputs.len()) else {
                return Err(self.why.clone());
            };
            self.left = left;
            self.inner.infer_batch(inputs, out)
        }

        fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
            match self.why {
                InferError::Batch => Err(SwapError::Device("lost".to_owned())),
                _ => self.inner.swap(model),
            }
        }
    }

    fn cpu() -> CpuEngine {
        CpuEngine::new(embedded_model().unwrap())
    }

    /// GPUs that can do one picture each, so many of them.
    fn failing(why: &InferError, others: usize) -> GpuStills<Failing> {
        let gpu = |why: &InferError| Failing { inner: cpu(), left: 1, why: why.clone() };
        let (left, first) = (std::cell::Cell::new(others), gpu(why));
        let why = why.clone();
        let replace = move |_: &Arc<Model>| {
            left.set(left.get().checked_sub(1).ok_or(CudaError::NoDevice)?);
            Ok(gpu(&why))
        };
        GpuStills::new(first, cpu(), Box::new(replace))
    }

    fn lost() -> InferError {
        InferError::Device("lost".to_owned())
    }

    #[test]
    fn another_gpu_takes_over_and_then_the_cpu() {
        let low = [70; 12 * 9];
        let luma = Luma::packed(&low, 12, 9).unwrap();
        let (mut first, mut next) = (Residual::default(), Residual::default());
        let mut engine = failing(&lost(), 1);
        engine.infer(luma, &mut first).unwrap();
        engine.infer(luma, &mut next).unwrap();
        assert_eq!((engine.backend(), engine.on_cpu()), ("failing", false));
        assert_eq!(engine.take_time(), Some(Duration::from_millis(3)));
        assert_eq!(first, next);
        engine.infer(luma, &mut next).unwrap();
        assert!(engine.backend().starts_with("cpu") && engine.on_cpu());
        assert_eq!(engine.take_time(), None);
        assert_eq!(first, next);
        // What no backend takes is no failure of the GPU's.
        let mut engine = failing(&lost(), 0);
        assert_eq!(engine.infer_batch(&[], &mut [Residual::default()]), Err(InferError::Batch));
        assert_eq!(engine.backend(), "failing");
    }

    #[test]
    fn the_cpu_stands_in_for_a_gpu_without_room() {
        let low = [70; 12 * 9];
        let luma = Luma::packed(&low, 12, 9).unwrap();
        let mut out = Residual::default();
        let mut engine = failing(&InferError::DeviceFull("full".to_owned()), 0);
        engine.infer(luma, &mut out).unwrap();
        engine.infer(luma, &mut out).unwrap();
        assert_eq!((engine.backend(), engine.on_cpu()), ("failing", true));
        assert_eq!(engine.take_time(), None, "it was the processor's time");
        engine.gpu.as_mut().unwrap().left = 1;
        engine.rests = Some(Instant::now());
        engine.infer(luma, &mut out).unwrap();
        assert_eq!(engine.take_time(), Some(Duration::from_millis(3)));
    }

    #[test]
    fn weights_that_the_gpu_does_not_take_run_on_the_cpu() {
        let low = [70; 12 * 9];
        let luma = Luma::packed(&low, 12, 9).unwrap();
        let (mut out, mut wanted) = (Residual::default(), Residual::default());
        let mut engine = failing(&InferError::Batch, 0);
        let other = Arc::new(Model::random(engine.architecture(), 9).unwrap());
        engine.swap(&other).unwrap();
        engine.infer(luma, &mut out).unwrap();
        assert!(engine.backend().starts_with("cpu"));
        CpuEngine::new(other).infer(luma, &mut wanted).unwrap();
        assert_eq!(out, wanted);
        let mut engine = failing(&lost(), 0);
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
