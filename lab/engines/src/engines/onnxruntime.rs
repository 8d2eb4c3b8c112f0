//! onnxruntime, Microsoft's C++ runtime, through `ort`: loaded when the program runs, so that nothing is linked. Its
//! providers for GPUs are libraries beside it, which load CUDA, cuDNN and TensorRT; where one is missing, the session
//! says which.

use std::path::Path;
use std::sync::OnceLock;

use crate::onnx::{LOW, RESIDUAL};
use anyhow::{Context, Result, anyhow};
use ort::environment::Environment;
use ort::ep::{self, ExecutionProviderDispatch};
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::TensorRef;

use super::{Worker, unit};
use crate::args::Size;

/// The library, loaded once for the process. If loading fails, the error is kept.
static LIBRARY: OnceLock<Result<Environment, String>> = OnceLock::new();

/// The execution provider that runs a session's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// The provider for the CPU.
    Cpu,
    /// The provider for GPUs by cuDNN.
    Cuda,
    /// The provider for GPUs by TensorRT, in half precision. The engine that it builds for a network is kept in the
    /// folder of temporary files.
    Tensorrt,
}

impl Provider {
    /// The provider as onnxruntime takes it. If it cannot be had, that is an error: no other provider takes its
    /// place.
    fn dispatch(self) -> Vec<ExecutionProviderDispatch> {
        match self {
            Provider::Cpu => Vec::new(),
            Provider::Cuda => vec![ep::CUDA::default().build().error_on_failure()],
            Provider::Tensorrt => {
                let cache = std::env::temp_dir().join("windlass-engines-tensorrt");
                let tensorrt = ep::TensorRT::default().with_fp16(true).with_engine_cache(true);
                let tensorrt = tensorrt.with_engine_cache_path(cache.display());
                vec![tensorrt.build().error_on_failure()]
            }
        }
    }
}

/// A session with its input's memory.
pub(crate) struct Network {
    session: Session,
    shape: [usize; 4],
    samples: Vec<f32>,
}

impl Network {
    /// Makes a session for a network. The first call loads the library.
    pub(crate) fn new(
        library: &Path,
        file: &[u8],
        size: Size,
        threads: usize,
        provider: Provider,
    ) -> Result<Self> {
        // `ort` takes relative paths as relative to the program, not to where it was called from.
        let path = library.canonicalize();
        let path = path.with_context(|| format!("loading {}", library.display()))?;
        let environment = LIBRARY.get_or_init(|| load(&path).map_err(|e| format!("{e:#}")));
        let environment = environment.as_ref().map_err(|why| anyhow!(why.clone()))?;
        let builder = Session::builder(environment)?;
        let builder = builder.with_intra_threads(threads).map_err(plain)?;
        let builder = builder.with_execution_providers(provider.dispatch()).map_err(plain)?;
        let builder = builder.with_optimization_level(GraphOptimizationLevel::All);
        let session = builder.map_err(plain)?.commit_from_memory(file)?;
        let shape = [1, 1, size.height, size.width];
        Ok(Network { session, shape, samples: Vec::new() })
    }
}

/// The error without the builder that it carries.
fn plain(error: ort::Error<SessionBuilder>) -> ort::Error {
    error.into()
}

fn load(library: &Path) -> Result<Environment> {
    let environment = ort::init_from(library);
    Ok(environment.with_context(|| format!("loading {}", library.display()))?.build()?)
}

impl Worker for Network {
    fn infer(&mut self, luma: &[u8], read: &mut dyn FnMut(&[f32])) -> Result<()> {
        unit(luma, &mut self.samples);
        let input = TensorRef::from_array_view((self.shape, &self.samples[..]))?;
        let outputs = self.session.run(ort::inputs![LOW => input])?;
        let (_, residual) = outputs[RESIDUAL].try_extract_tensor::<f32>()?;
        read(residual);
        Ok(())
    }
}
