//! Networks by onnxruntime's providers for GPUs: TensorRT, or cuDNN.
//!
//! The library is looked for when an engine is made: where the environment's `ORT_DYLIB_PATH` says, else as `libonnxruntime.so` on
//! the dynamic linker's path; it loads its providers, CUDA, cuDNN and TensorRT itself. What is missing is said in its own words,
//! and nothing else happens. A session is of one network's weights and one size, and is shared by all engines, who take turns.
//! Other weights are another session: TensorRT builds for seconds what `cuda` takes by changing an address, so that learning
//! is not for these engines. What TensorRT built is kept in `$XDG_CACHE_HOME/windlass/tensorrt`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use ort::environment::Environment;
use ort::ep::{self, ExecutionProviderDispatch};
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::TensorRef;
use parking_lot::Mutex;
use thiserror::Error;
use windlass_hybrid::resample::{Scratch, lanczos};
use windlass_hybrid::simd::Isa;

use super::onnx::{self, ABOVE, LOW, RESIDUAL, TWIN};
use super::{
    Architecture, Engine, InferError, Input, Luma, Model, Residual, SwapError, cache_folder, check,
};

/// Sessions that are kept, of all networks and sizes; beyond, the one that was asked for longest ago goes.
const MOST_SESSIONS: usize = 24;

/// Why there is no engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuntimeError {
    /// No library, or one that is too old.
    #[error("onnxruntime is not found (ORT_DYLIB_PATH names its library): {0}")]
    Library(String),
    /// A provider is missing, or refused the network.
    #[error("onnxruntime's {provider}: {why}")]
    Provider {
        /// Which of them.
        provider: Provider,
        /// In its own words.
        why: String,
    },
}

/// What runs a session's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The processor, for tests of all that the others have in common.
    Processor,
    /// A GPU by cuDNN.
    Cuda,
    /// A GPU by TensorRT, in half precision.
    TensorRt,
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Provider::Processor => "processor",
            Provider::Cuda => "CUDA provider",
            Provider::TensorRt => "TensorRT provider",
        })
    }
}

impl Provider {
    /// As onnxruntime takes it; where it cannot be had, that is an error, not the processor in its place.
    fn dispatch(self) -> Vec<ExecutionProviderDispatch> {
        let provider = match self {
            Provider::Processor => return Vec::new(),
            Provider::Cuda => ep::CUDA::default().build(),
            Provider::TensorRt => {
                let tensorrt = ep::TensorRT::default().with_fp16(true);
                match cache_folder("tensorrt") {
                    Some(folder) => {
                        let kept = tensorrt.with_engine_cache(true).with_timing_cache(true);
                        let path = folder.display().to_string();
                        kept.with_engine_cache_path(&path).with_timing_cache_path(path)
                    }
                    None => tensorrt,
                }
                .build()
            }
        };
        vec![provider.error_on_failure()]
    }
}

/// A network of onnxruntime's.
pub struct OrtEngine {
    provider: Provider,
    model: Arc<Model>,
    samples: Samples,
    took: Duration,
}

/// What goes in, in single precision.
#[derive(Default)]
struct Samples {
    low: Vec<f32>,
    twin: Vec<f32>,
    above: Vec<f32>,
    base: Vec<i16>,
    scratch: Scratch,
}

type Shared = Arc<Mutex<Session>>;

/// A session that engines share.
struct Kept {
    provider: Provider,
    model: Weak<Model>,
    size: (usize, usize),
    session: Shared,
}

/// The last to be asked for comes last.
static SESSIONS: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

impl OrtEngine {
    /// Loads the library and tries the network on a small picture.
    pub fn new(model: Arc<Model>, provider: Provider) -> Result<Self, RuntimeError> {
        session(provider, &model, (16, 16))?;
        Ok(OrtEngine { provider, model, samples: Samples::default(), took: Duration::ZERO })
    }

    fn infer_one(&mut self, input: &Input<'_>, out: &mut Residual) -> Result<(), RuntimeError> {
        let (width, height) = (input.low.width(), input.low.height());
        let scale = self.architecture().scale;
        let session = session(self.provider, &self.model, (width, height))?;
        self.samples.fill(input, scale);
        let failed = |error: ort::Error| refused(self.provider, &error);
        let (low, high) = ([1, 1, height, width], [1, 1, scale * height, scale * width]);
        let tensor = |shape, samples| TensorRef::from_array_view((shape, samples)).map_err(failed);
        let x = tensor(low, &self.samples.low[..])?;
        // Who waits for its turn takes none of the GPU's time.
        let mut session = session.lock();
        let began = Instant::now();
        let outputs = if input.twin.is_some() {
            let t = tensor(high, &self.samples.twin[..])?;
            let d = tensor(high, &self.samples.above[..])?;
            session.run(ort::inputs![LOW => x, TWIN => t, ABOVE => d])
        } else {
            session.run(ort::inputs![LOW => x])
        };
        let outputs = outputs.map_err(failed)?;
        let (_, residual) = outputs[RESIDUAL].try_extract_tensor::<f32>().map_err(failed)?;
        out.data.clear();
        out.data.extend_from_slice(residual);
        self.took += began.elapsed();
        Ok(())
    }
}

impl Samples {
    fn fill(&mut self, input: &Input<'_>, scale: usize) {
        unit(&input.low, &mut self.low);
        let Some(twin) = &input.twin else { return };
        unit(twin, &mut self.twin);
        let low = input.low.samples();
        self.base.clear();
        self.base.resize(twin.width() * twin.height(), 0);
        lanczos(Isa::detect(), low, scale, 0..low.height, &mut self.base, &mut self.scratch);
        let shown = (0..twin.height()).flat_map(|y| twin.row(y));
        let above = shown.zip(&self.base).map(|(t, b)| f32::from(*t) - f32::from(*b) / 16.0);
        self.above.clear();
        self.above.extend(above);
    }
}

/// Samples as the networks were trained with them.
fn unit(plane: &Luma<'_>, samples: &mut Vec<f32>) {
    let all = (0..plane.height()).flat_map(|y| plane.row(y));
    samples.clear();
    samples.extend(all.map(|sample| f32::from(*sample) * (1.0 / 255.0) - 0.5));
}

/// The session of these weights and this size, which is made if there is none.
fn session(
    provider: Provider,
    model: &Arc<Model>,
    size: (usize, usize),
) -> Result<Shared, RuntimeError> {
    let environment = environment()?;
    // Whoever comes second waits for the first instead of building the same.
    let mut sessions = SESSIONS.lock();
    let known = sessions.iter().position(|kept| {
        (kept.provider, kept.size) == (provider, size) && kept.model.as_ptr() == Arc::as_ptr(model)
    });
    let kept = if let Some(at) = known {
        sessions.remove(at)
    } else {
        let session = build(environment, provider, model, size);
        let session = Arc::new(Mutex::new(session.map_err(|error| refused(provider, &error))?));
        Kept { provider, model: Arc::downgrade(model), size, session }
    };
    sessions.retain(|kept| kept.model.strong_count() > 0);
    if sessions.len() >= MOST_SESSIONS {
        sessions.remove(0);
    }
    let session = kept.session.clone();
    sessions.push(kept);
    Ok(session)
}

fn build(
    environment: &Environment,
    provider: Provider,
    model: &Model,
    size: (usize, usize),
) -> ort::Result<Session> {
    /// The error without the builder that it carries.
    fn plain(error: ort::Error<SessionBuilder>) -> ort::Error {
        error.into()
    }
    let builder = Session::builder(environment)?;
    let builder = builder.with_execution_providers(provider.dispatch()).map_err(plain)?;
    let builder = builder.with_optimization_level(GraphOptimizationLevel::All).map_err(plain)?;
    let mut builder = builder.with_intra_threads(1).map_err(plain)?;
    builder.commit_from_memory(&onnx::file(model, size))
}

fn refused(provider: Provider, error: &ort::Error) -> RuntimeError {
    RuntimeError::Provider { provider, why: error.to_string() }
}

/// The library, once for the process; what went wrong stays so.
fn environment() -> Result<&'static Environment, RuntimeError> {
    static LIBRARY: OnceLock<Result<Environment, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let path = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from);
        let path = path.unwrap_or_else(|| PathBuf::from("libonnxruntime.so"));
        load(&path)
    });
    library.as_ref().map_err(|why| RuntimeError::Library(why.clone()))
}

fn load(library: &Path) -> Result<Environment, String> {
    // `ort` takes relative paths as relative to the program, not to where it was called from.
    let path = library.canonicalize().unwrap_or_else(|_| library.to_owned());
    let environment = ort::init_from(path).map_err(|error| error.to_string())?;
    environment.build().map_err(|error| error.to_string())
}

impl Engine for OrtEngine {
    fn backend(&self) -> &'static str {
        match self.provider {
            Provider::Processor => "onnxruntime",
            Provider::Cuda => "onnxruntime-cuda",
            Provider::TensorRt => "tensorrt",
        }
    }

    fn on_processor(&self) -> bool {
        self.provider == Provider::Processor
    }

    fn accelerators(&self) -> Option<usize> {
        (!self.on_processor()).then_some(1)
    }

    fn take_time(&mut self) -> Option<Duration> {
        let took = std::mem::take(&mut self.took);
        (!self.on_processor()).then_some(took)
    }

    fn architecture(&self) -> Architecture {
        self.model.architecture()
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        let architecture = self.architecture();
        check(&architecture, inputs, out)?;
        for (input, out) in inputs.iter().zip(out) {
            let scale = architecture.scale;
            (out.width, out.height) = (scale * input.low.width(), scale * input.low.height());
            let done = self.infer_one(input, out);
            done.map_err(|error| InferError::Device(error.to_string()))?;
        }
        Ok(())
    }

    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
        SwapError::check(self.architecture(), model)?;
        self.model = model.clone();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::conformance::{self, Case};

    #[test]
    fn every_network_conforms_by_onnxruntime() {
        for case in Case::all() {
            let model = Arc::new(case.model());
            let mut engine = match OrtEngine::new(model, Provider::Processor) {
                Ok(engine) => engine,
                Err(why @ RuntimeError::Library(_)) => {
                    println!("skipped: {why}");
                    return;
                }
                Err(why) => panic!("{case}: {why}"),
            };
            let error = conformance::check(&mut engine, &case).expect("the contract is kept");
            println!("{case}: {error:.1e}");
            assert!(error < 1e-5, "{case}: {error}");
        }
    }

    #[test]
    fn a_provider_that_is_not_there_says_so() {
        let case = &Case::all()[0];
        for provider in [Provider::Cuda, Provider::TensorRt] {
            match OrtEngine::new(Arc::new(case.model()), provider) {
                Ok(mut engine) => {
                    // There is one: it must conform.
                    let error = conformance::check(&mut engine, case).expect("it is kept");
                    assert!(error < 1e-2, "{provider}: {error}");
                }
                Err(why) => {
                    println!("skipped: {why}");
                    assert!(why.to_string().contains("onnxruntime"), "{why}");
                }
            }
        }
    }

    #[test]
    fn sessions_of_other_weights_and_sizes_make_room_for_each_other() {
        let model = |seed| Arc::new(Model::random(Architecture::chain(2, 8, 2), seed).unwrap());
        let first = model(1);
        if let Err(why) = OrtEngine::new(first.clone(), Provider::Processor) {
            println!("skipped: {why}");
            return;
        }
        for width in 20..60 {
            session(Provider::Processor, &first, (width, 16)).unwrap();
        }
        assert!(SESSIONS.lock().len() <= MOST_SESSIONS);
        let gone = model(2);
        session(Provider::Processor, &gone, (20, 16)).unwrap();
        drop(gone);
        session(Provider::Processor, &first, (59, 16)).unwrap();
        assert!(SESSIONS.lock().iter().all(|kept| kept.model.strong_count() > 0));
    }
}
